/*
 * access: determines what a hit's access did, and which of the watched bytes it
 * touched.
 */
#ifndef EX_ACCESS_H
#define EX_ACCESS_H

#include "hit/hit.h"

struct ex_space;

/* "write", "read", "execute"; "access": unknown which. */
const char *ex_access_text(const struct ex_hit *);

/* Whether the hit is a write although only reads are watched. */
bool ex_access_is_dropped(const struct ex_hit *);

/* Add the bytes of one of the slots that an instruction hit: it may have
   touched these, if no more is known. */
void ex_access_slot(struct ex_hit *, const struct ex_slot *);

/* Reduce the bytes to those that an exactly known instruction touched. */
void ex_access_narrow(struct ex_hit *);

/* Add the bytes that the kernel touched, by a sample of a hit: those of the
   slot that its single store covers, or that are in the call's buffer; or, if a
   copy is sampled at each byte (*stepping, which the first sample shows), the
   last of these. */
void ex_access_kernel(struct ex_hit *, struct ex_space *,
    const struct ex_slot *, const struct ex_record *, bool first,
    bool *stepping);

/* Drop the call's buffer as the bound if it does not contain everything that
   was touched. */
void ex_access_check_buffer(struct ex_hit *);

#endif
