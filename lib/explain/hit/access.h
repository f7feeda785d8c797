/*
 * access: what a hit's access did, and which of the watched bytes it touched.
 */
#ifndef EX_ACCESS_H
#define EX_ACCESS_H

#include "hit/hit.h"

/* "write", "read", "execute"; "access": it is not known which. */
const char *ex_access_text(const struct ex_hit *);

/* Whether it is a write where only reads are watched. */
bool ex_access_is_dropped(const struct ex_hit *);

/* Add the bytes of one of the slots that an instruction hit: those that it may
   have touched, if no more is known of it. */
void ex_access_slot(struct ex_hit *, const struct ex_slot *);

/* The bytes that an exactly known instruction touched are those, and no
   more. */
void ex_access_narrow(struct ex_hit *);

/* Add the bytes that the kernel touched, by the first sample of a hit or
   another: those of the slot that its one store has, or that are in the call's
   buffer; or, if a copy is sampled at each byte (*stepping: the first sample
   shows it), the last of these. */
void ex_access_kernel(struct ex_hit *, struct ex_space *,
    const struct ex_slot *, const struct ex_record *, bool first,
    bool *stepping);

/* A buffer that does not hold all that was touched is not the only one. */
void ex_access_check_buffer(struct ex_hit *);

#endif
