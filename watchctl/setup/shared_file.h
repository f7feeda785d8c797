/*
 * shared_file: the file or shared memory of a SPEC, and the physical memory
 * that holds its bytes.
 *
 * The kernel reports the physical address of each access.  It proves that the
 * access was to these bytes, even if the process has changed its mappings since
 * they were listed: munmap(2) and mremap(2) leave no record.
 */
#ifndef SHARED_FILE_H
#define SHARED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spec;
struct wp_proc_map;

enum { SHARED_PAGES = 3 };	/* as many as the bytes of all slots can be
				   in */

struct shared_file {
	const struct spec *spec;
	int fd;			/* kept open, so that no other file gets its
				   inode number */
	void *map;		/* watchctl's own mapping of these pages */
	uint64_t off, len;	/* the watched bytes of the file; len 0: none */
	int pagemap;		/* that of watchctl */
	uint64_t phys[SHARED_PAGES];	/* their addresses when last looked up;
					   0: not known */
	unsigned maj, min;	/* the file, as mappings name it */
	uint64_t ino;
	uint64_t recorded;	/* its inode in records of mappings, which
				   differs on overlayfs; 0: the same */
};

/* Open the file of a SPEC.  0; or -EINVAL after a line on stderr: it does not
   exist, is too short, or access is denied. */
int shared_file_open(struct shared_file *, const struct spec *);
void shared_file_close(struct shared_file *);

/* Whether a mapping is shared and has all of the SPEC's bytes, at *addr. *part:
   it has some of them. */
bool shared_file_in(const struct shared_file *, const struct wp_proc_map *,
    uint64_t *addr, bool *part);

/* Whether an access to this physical address was one to the file's byte at
   off. */
enum shared_access {
	SHARED_SAME,		/* that byte */
	SHARED_OTHER,		/* certainly another one */
	SHARED_UNKNOWN,		/* the kernel moved the page meanwhile */
};
enum shared_access shared_file_access(struct shared_file *, uint64_t off,
    uint64_t phys);

/* Learn from the record of watchctl's own mapping how records name the file. */
void shared_file_learn(struct shared_file *, uint64_t addr, uint64_t ino);

/* Look up the physical addresses again: the file may have been shorter
   meanwhile. */
void shared_file_refresh(struct shared_file *);

/* Read n current bytes from offset off.  Result: how many, or -errno. */
ssize_t shared_file_read(const struct shared_file *, uint64_t off, void *to,
    size_t n);

#endif
