/*
 * compressed: the sizes that an ELF file claims for its compressed sections.
 *
 * elfutils makes room for what a section claims and unpacks it, before anything
 * could be asked.  A file of a few megabytes can claim, and hold, gigabytes.
 */
#ifndef EX_COMPRESSED_H
#define EX_COMPRESSED_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* What is not believed. */
struct ex_compressed {
	uint64_t stored;	/* bytes in the file */
	uint64_t size;		/* bytes that they are to become; UINT64_MAX:
				   they do not even say */
};

/* Whether what a file's sections claim, each and together, is what debug
   information might be.  *claim is what is not.  Nothing is unpacked. */
bool ex_compressed_plausible(Elf *, struct ex_compressed *claim);

/* Hide debug sections, and any that are compressed, from elfutils. */
void ex_compressed_hide(Elf *);

#endif
