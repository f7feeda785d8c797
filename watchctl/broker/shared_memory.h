/*
 * shared_memory: memory that watchctl shares with an explainer.
 *
 * It is a file (memfd_create(2)).  Where the limit of file sizes
 * (RLIMIT_FSIZE), which is meant for others, forbids that, it is a segment
 * (shmget(2)), which goes with its last user, too.
 */
#ifndef SHARED_MEMORY_H
#define SHARED_MEMORY_H

#include <stddef.h>

struct shared_memory {
	void *at;		/* here, read and written; NULL: none */
	size_t size;
	int fd;			/* of the file, which cannot be made smaller;
				   -1: it is a segment */
	int id;			/* of the segment; -1: it is a file */
};

/* Make some, of zeros, which both may write.  0 or -errno. */
int shared_memory_make(struct shared_memory *, const char *name, size_t size);

/* The same, which others can only read; it has neither descriptor nor id where
   there may be no file: then it is not shared. */
int shared_memory_make_readable(struct shared_memory *, const char *name,
    size_t size);

/* It is not needed here any more; others keep theirs. */
void shared_memory_free(struct shared_memory *);

/* In the other process: map what has this descriptor, or else this id (-1: it
   is the descriptor), to be written or not.  NULL, with errno: it is not
   possible. */
void *shared_memory_map(int fd, int id, size_t size, int writable);

#endif
