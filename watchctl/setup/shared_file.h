/*
 * shared_file: the file or shared memory of a SPEC, and the physical memory
 * that holds its bytes.
 *
 * The kernel says with each hit which physical address was accessed.  That is
 * the proof that it was these bytes, whatever the process has mapped there
 * since it was looked at: munmap(2) and mremap(2) leave no record.
 */
#ifndef SHARED_FILE_H
#define SHARED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spec;
struct wp_proc_map;

enum { SHARED_PAGES = 3 };	/* that so many bytes as slots have can be in */

struct shared_file {
	const struct spec *spec;
	int fd;			/* open: nothing else gets its inode */
	void *map;		/* our own mapping of these pages, */
	uint64_t off, len;	/* of the file; len 0: there is none */
	int pagemap;		/* of ours */
	uint64_t phys[SHARED_PAGES];	/* where they were when that was looked
					   at last; 0: not known */
	unsigned maj, min;	/* the file, as mappings name it */
	uint64_t ino;
	uint64_t recorded;	/* its inode, as records of mappings name it,
				   which on overlayfs is another; 0: the
				   same */
};

/* 0; or -EINVAL after a line on stderr: there is none, it is too short, or it
   is not permitted. */
int shared_file_open(struct shared_file *, const struct spec *);
void shared_file_close(struct shared_file *);

/* Whether a mapping has all of the SPEC's bytes and is shared: *addr is where.
   *part: it has some of them. */
bool shared_file_in(const struct shared_file *, const struct wp_proc_map *,
    uint64_t *addr, bool *part);

/* What was accessed at this physical address, in place of the file's byte at
   off. */
enum shared_access {
	SHARED_SAME,		/* that byte */
	SHARED_OTHER,		/* certainly another one */
	SHARED_UNKNOWN,		/* the kernel has moved the page meanwhile */
};
enum shared_access shared_file_access(struct shared_file *, uint64_t off,
    uint64_t phys);

/* What records of mappings say of ours: how they name the file. */
void shared_file_learn(struct shared_file *, uint64_t addr, uint64_t ino);

/* Look where the pages are now: the file may have been shorter meanwhile. */
void shared_file_refresh(struct shared_file *);

/* Read n bytes from one of the SPEC's on, as they are now.  How many, or
   -errno. */
ssize_t shared_file_read(const struct shared_file *, uint64_t off, void *to,
    size_t n);

#endif
