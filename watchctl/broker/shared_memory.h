/*
 * shared_memory: memory that watchctl shares with an explainer.
 *
 * It is a file (memfd_create(2)).  Where the limit of file sizes
 * (RLIMIT_FSIZE), which is meant for others, forbids that, it is a segment
 * (shmget(2)), which also goes with its last user.
 */
#ifndef SHARED_MEMORY_H
#define SHARED_MEMORY_H

#include <stddef.h>

struct shared_memory {
	void *at;		/* where it is mapped here, writable; NULL:
				   none */
	size_t size;
	int fd;			/* of the file, which cannot shrink; -1: it is a
				   segment */
	int id;			/* of the segment; -1: it is a file */
};

/* Make shared memory of zeros, which both processes may write.  0 or -errno. */
int shared_memory_make(struct shared_memory *, const char *name, size_t size);

/* The same, which others can only read.  Where no file can be made, it has
   neither descriptor nor id, and is not shared. */
int shared_memory_make_readable(struct shared_memory *, const char *name,
    size_t size);

/* Unmap it here; other processes keep it. */
void shared_memory_free(struct shared_memory *);

/* In the other process: map the memory of this descriptor or, unless id is -1,
   of this segment.  NULL, with errno: it is not possible. */
void *shared_memory_map(int fd, int id, size_t size, int writable);

#endif
