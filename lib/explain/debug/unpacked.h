/*
 * unpacked: the debug sections of an ELF file, unpacked in memory.
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

/* Of a file whose compressed sections are plausible (compressed.h); it has to
   outlive this, and so has what an index of it, which may be empty, says.
   NULL: .debug_info is not packed, or not by zlib; or the file is of 32 bits,
   or shares information with another (.gnu_debugaltlink); or out of memory.
   Then libelf may do as it does. */
struct ex_unpacked *ex_unpacked_new(Elf *, const struct ex_index *);
void ex_unpacked_free(struct ex_unpacked *);

/* The file in memory. */
Elf *ex_unpacked_elf(struct ex_unpacked *);

/* Unpack a part of .debug_info.  Result: where what is there ends; less than
   upto: there is no more. */
uint64_t ex_unpacked_info(struct ex_unpacked *, uint64_t from, uint64_t upto);

/* Have lists of locations there, as a whole: until then they are all zero.
   False: they are damaged. */
bool ex_unpacked_locations(struct ex_unpacked *);

/* Look at no more than so many bytes of .debug_info, *len; without unpacking
   them there.  They are valid until the next call of any function here; *len is
   how many there are, fewer only if there are no more.  NULL: none. */
enum { EX_UNPACKED_PEEK = 256 << 10 };
const uint8_t *ex_unpacked_peek(struct ex_unpacked *, uint64_t at, size_t *len);

/* Bytes of .debug_info that are known, to be read until they are unpacked. */
void ex_unpacked_head(struct ex_unpacked *, uint64_t at, const uint8_t *bytes,
    size_t len);

/* A part of .debug_info is read: unpack it, and have it in the next index.
   True: the last one does not have it. */
bool ex_unpacked_use(struct ex_unpacked *, uint64_t from, uint64_t end);

/* Add what is known to an index that is collected. */
void ex_unpacked_keep(const struct ex_unpacked *, struct ex_index *);

#endif
