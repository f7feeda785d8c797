/*
 * compressed: checks the sizes that an ELF file claims for its compressed
 * sections.
 *
 * elfutils allocates what a section claims and unpacks it, before anybody can
 * check.  A file of a few megabytes can claim, and contain, gigabytes.
 */
#ifndef EX_COMPRESSED_H
#define EX_COMPRESSED_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* A claim that is not plausible. */
struct ex_compressed {
	uint64_t stored;	/* bytes in the file */
	uint64_t size;		/* bytes claimed after unpacking; UINT64_MAX:
				   unreadable */
};

/* Whether the sizes that a file's sections claim, each and together, are
   plausible for debug information; else *claim is one that is not.  Nothing is
   unpacked. */
bool ex_compressed_plausible(Elf *, struct ex_compressed *claim);

/* Hide debug sections, and any that are compressed, from elfutils. */
void ex_compressed_hide(Elf *);

#endif
