/*
 * index: an index of a file of debug information, kept for later runs.
 *
 * It contains unpacked sections, or points from which they can be unpacked;
 * where units begin, and which have code at which addresses; and where bytes
 * were found.  It is valid for one file, identified by its build id and by
 * fstat(2).  The caller decides where it is kept.  It is read like any other
 * untrusted file: its contents may be wrong, but never lead outside of it.
 */
#ifndef EX_INDEX_H
#define EX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What keeps them.  A key is a build id, in lower-case hex.  Functions return
   0, or -errno; nothing of a new index is there before the end of it. */
struct ex_index_store {
	int (*open)(const char *key);	/* a descriptor, to read */
	int (*begin)(const char *key);	/* write a new one, */
	int (*put)(const void *bytes, size_t len);
	int (*end)(bool good);		/* and that was all of it; or forget
					   it */
};

/* From here on, what is found out is kept there.  Without it, nothing is. */
void ex_index_store(const struct ex_index_store *);

/* Something was found out, which is kept when its module is freed; and whether
   that has been said. */
void ex_index_note(void);
bool ex_index_noted(void);

/* Enough for a unit's header, and for what libdw reads behind it. */
enum { EX_INDEX_HEAD = 128, EX_INDEX_SOUGHT = 16, EX_INDEX_WINDOW = 32768 };

/* Bytes of a section as they are when unpacked. */
struct ex_index_bytes {
	uint64_t size;		/* of the section when unpacked */
	uint64_t at, len;	/* in the section; at: at a page */
	uint64_t file;		/* in the index; at a page */
	char name[24];		/* of the section; ends with NUL */
};

/* From where .debug_info can be unpacked: a block of its stream. */
struct ex_index_point {
	uint64_t at;		/* unpacked bytes before it */
	uint64_t packed;	/* packed bytes before it, the one that it
				   begins in among them */
	uint64_t bits;		/* of that one, that are its own; 0 to 7 */
	uint64_t window;	/* the EX_INDEX_WINDOW unpacked bytes before it,
				   in the index */
};

/* A unit of .debug_info. */
struct ex_index_unit {
	uint64_t at, end;
	uint8_t head[EX_INDEX_HEAD];	/* as far as it goes */
};

/* Bytes that were searched from a place on. */
struct ex_index_sought {
	uint64_t from;
	uint64_t unit, end;	/* the first unit that has them; end 0: none
				   has */
	uint64_t len;		/* at most EX_INDEX_SOUGHT */
	uint8_t bytes[EX_INDEX_SOUGHT];
};

/* Code of a unit. */
struct ex_index_code {
	uint64_t start, end, unit;
};

/* All zero: empty.  bytes, points and units are in the order of their
   places. */
struct ex_index {
	uint8_t *image;		/* mapped; NULL: what follows is not of a file,
				   but collected for one */
	size_t size;
	int fd;			/* to map bytes again; of a file only */
	struct ex_index_list {
		void *at;	/* malloc'd, unless of a file */
		size_t n, cap;
	} bytes, points, units, sought, code;
	bool all_code;		/* code has all that any unit has */
};

/* The one that is kept for a file; false: none is, or it is not that file's. */
bool ex_index_read(struct ex_index *, const char *key, const struct stat *);
void ex_index_free(struct ex_index *);

/* Add to one that is collected; false: out of memory. */
bool ex_index_add(struct ex_index_list *, const void *one, size_t size);

/* Keep one that was collected.  Of bytes and points, file and window are
   addresses in this process. */
void ex_index_write(const struct ex_index *, const char *key,
    const struct stat *);

#endif
