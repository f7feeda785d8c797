/*
 * memory_image: reads an ELF file from a process's memory, where there is no
 * file to open: the vDSO, and deleted files.
 */
#ifndef EX_MEMORY_IMAGE_H
#define EX_MEMORY_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The vDSO mapped at start in a process; our own if that process is gone (or
 * pid is 0) and the lengths are equal.  Malloc'd; NULL: none, or no memory.
 */
void *ex_image_of_vdso(pid_t pid, uint64_t start, uint64_t len, size_t *size);

/*
 * The loaded parts of the ELF file mapped at start, at their offsets in the
 * file, without section headers.  They include program headers, dynamic symbols
 * and .eh_frame.  Malloc'd; NULL: not available.
 */
void *ex_image_of_file(pid_t pid, uint64_t start, size_t *size);

#endif
