/*
 * file_image: an ELF file in memory.
 *
 * It takes no descriptor, and next to no private memory: only the pages with
 * section headers can be written, because libelf changes these in place when
 * it uncompresses a section.
 */
#ifndef EX_FILE_IMAGE_H
#define EX_FILE_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct ex_file_image {
	uint8_t *at;		/* NULL: none */
	size_t size;
	struct stat st;		/* of the file that was mapped */
};

/* Map a file, which the caller may then close.  0; -ENOEXEC: it is not an ELF
   file; or -errno. */
int ex_file_image_map(struct ex_file_image *, int fd);

/* Unmap it; nothing, if there is none. */
void ex_file_image_unmap(struct ex_file_image *);

#endif
