/* doctor_private: the findings of doctor and the conclusions from them, for
   text and JSON. */
#ifndef DOCTOR_PRIVATE_H
#define DOCTOR_PRIVATE_H

#include <stddef.h>

#include "doctor.h"

/* The names of features; the last is all zero. */
struct doctor_feature {
	const char *name;
	size_t offset;		/* of the bool in struct wp_features */
};
extern const struct doctor_feature doctor_features[];
bool doctor_has_feature(const struct doctor *, const struct doctor_feature *);

/* How hits are delivered, as watchctl reports it at its start, NULL: not at
   all; and why it is not bpf. */
const char *doctor_delivery(const struct doctor *);
const char *doctor_delivery_reason(const struct doctor *);

/* Whether breakpoints work for rings. */
bool doctor_breaks(const struct doctor *);

/* The best way that works; DOCTOR_WAYS: none. */
int doctor_best_way(const struct doctor *);

/* Whether the explainer can do nothing but compute.  Where a user namespace has
   no user nobody, it is root there, but without capabilities. */
bool doctor_is_sandboxed(const struct doctor *);

/* Append what it can still do, and its messages. */
void doctor_describe_box(const struct doctor *, struct buffer *);

/* Whether free and all slots are known. */
bool doctor_knows_slots(const struct doctor *);

const char *doctor_seccomp_name(int mode);

#endif
