/*
 * unpacked: the debug sections of an ELF file, unpacked in memory.
 *
 * libelf unpacks whole sections, and libdw has it unpack all of them before the
 * first is read.  Most of the time goes there, and most of what comes of it is
 * never read.  So libdw is given a file in memory that has the sections as they
 * are when they are unpacked, apart from some that are never read; and the
 * largest, .debug_info, only up to where somebody asks for it.
 */
#ifndef EX_UNPACKED_H
#define EX_UNPACKED_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

struct ex_unpacked;

/* Of a file whose compressed sections are plausible (compressed.h); it has to
   outlive this.  NULL: .debug_info is not packed, or not by zlib; or the file
   is of 32 bits, or shares information with another (.gnu_debugaltlink); or out
   of memory.  Then libelf may do as it does. */
struct ex_unpacked *ex_unpacked_new(Elf *);
void ex_unpacked_free(struct ex_unpacked *);

/* The file in memory. */
Elf *ex_unpacked_elf(struct ex_unpacked *);

/* How many bytes of .debug_info are there, at least up to this one if the file
   has so many. */
uint64_t ex_unpacked_info(struct ex_unpacked *, uint64_t upto);

#endif
