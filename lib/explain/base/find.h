/*
 * find: searches much memory for a few bytes.
 *
 * memmem(3) examines most positions one by one where the bytes are few, and
 * compares at many of them where they end in zeros, as addresses do.
 */
#ifndef EX_FIND_H
#define EX_FIND_H

#include <stddef.h>

/* As memmem(3), for bytes of which there is at least one. */
const void *ex_find(const void *in, size_t size, const void *bytes,
    size_t len);

#endif
