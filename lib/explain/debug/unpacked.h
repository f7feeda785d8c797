/*
 * unpacked: unpacks the debug sections of an ELF file in memory.
 *
 * libelf unpacks whole sections, and libdw makes it unpack all of them before
 * it reads the first.  That takes most of the time, and most of the result is
 * never read.  So libdw gets a file in memory that contains the sections in
 * unpacked form, without some that are never read; of the largest, .debug_info,
 * it has only the requested parts.  Data that must be unpacked on the way to
 * these is examined in passing, and not kept.
 */
#ifndef EX_UNPACKED_H
#define EX_UNPACKED_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "debug/index.h"

struct ex_unpacked;

/* Create one for a file whose compressed sections are plausible (compressed.h);
   the file must outlive it, and so must the contents of its index, which may be
   empty.  NULL: .debug_info is not packed by zlib; or the file is a 32-bit one,
   or shares information with another (.gnu_debugaltlink); or out of memory.
   Then libelf unpacks it. */
struct ex_unpacked *ex_unpacked_new(Elf *, const struct ex_index *);
void ex_unpacked_free(struct ex_unpacked *);

/* The file in memory. */
Elf *ex_unpacked_elf(struct ex_unpacked *);

/* Unpack a part of .debug_info.  Result: the end of what is unpacked; less than
   upto: there is no more. */
uint64_t ex_unpacked_info(struct ex_unpacked *, uint64_t from, uint64_t upto);

/* Unpack the location lists completely; until then they are all zero.  False:
   they are damaged. */
bool ex_unpacked_locations(struct ex_unpacked *);

/* Examine at most *len bytes of .debug_info without unpacking them in place.
   They are valid until the next call of any function here; *len becomes their
   number, which is smaller only at the end.  NULL: none. */
enum { EX_UNPACKED_PEEK = 256 << 10 };
const uint8_t *ex_unpacked_peek(struct ex_unpacked *, uint64_t at, size_t *len);

/* Set known bytes of .debug_info, which can be read until they are unpacked. */
void ex_unpacked_head(struct ex_unpacked *, uint64_t at, const uint8_t *bytes,
    size_t len);

/* Unpack a part of .debug_info that is read, and have it in the next index.
   True: the last index does not have it. */
bool ex_unpacked_use(struct ex_unpacked *, uint64_t from, uint64_t end);

/* Add what is unpacked to an index that is being collected. */
void ex_unpacked_keep(const struct ex_unpacked *, struct ex_index *);

#endif
