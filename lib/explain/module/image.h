/*
 * image: an ELF file as it is in a process's memory, for when there is no file
 * to open: the vDSO, and deleted files.
 */
#ifndef EX_IMAGE_H
#define EX_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The vDSO mapped at start in a process; ours instead when that process is gone
 * (or pid is 0) and ours has that length.  Malloc'd; NULL: none, or no memory.
 */
void *ex_image_of_vdso(pid_t pid, uint64_t start, uint64_t len, size_t *size);

/*
 * The loaded parts of the ELF file of which a mapping begins at start, put
 * where they are in the file, without section headers.  It has its program
 * headers, dynamic symbols and .eh_frame.  Malloc'd; NULL: it is not available.
 */
void *ex_image_of_file(pid_t pid, uint64_t start, size_t *size);

#endif
