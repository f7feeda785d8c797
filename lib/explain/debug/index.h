/*
 * index: an index of a file of debug information, kept for later runs.
 *
 * It contains unpacked sections, or points from which they can be unpacked; the
 * offsets of units and the addresses of their code; and results of searches for
 * bytes.  It is valid for one file, identified by its build id and by
 * fstat(2).  The caller decides where it is kept.  It is read like any other
 * untrusted file: its contents may be wrong, but never lead outside of it.
 */
#ifndef EX_INDEX_H
#define EX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Where indexes are kept.  A key is a build id in lower-case hex.  Functions
   return 0, or -errno; a new index does not exist before its end. */
struct ex_index_store {
	int (*open)(const char *key);	/* a descriptor, to read */
	int (*begin)(const char *key);	/* begin a new one, */
	int (*put)(const void *bytes, size_t len);
	int (*end)(bool good);		/* complete it, or discard it */
};

/* From here on keep indexes there; without this call nothing is kept. */
void ex_index_store(const struct ex_index_store *);

/* Note that there is something new, which is kept when its module is freed; and
   whether that was noted. */
void ex_index_note(void);
bool ex_index_noted(void);

/* Large enough for a unit's header, and for what libdw reads after it. */
enum { EX_INDEX_HEAD = 128, EX_INDEX_SOUGHT = 16, EX_INDEX_WINDOW = 32768 };

/* Unpacked bytes of a section. */
struct ex_index_bytes {
	uint64_t size;		/* of the section when unpacked */
	uint64_t at, len;	/* offset in the section, page-aligned, and
				   length */
	uint64_t file;		/* offset in the index, page-aligned */
	char name[24];		/* of the section; ends with NUL */
};

/* A point from which .debug_info can be unpacked: a block of its stream. */
struct ex_index_point {
	uint64_t at;		/* unpacked bytes before it */
	uint64_t packed;	/* packed bytes before it, including the one
				   that it begins in */
	uint64_t bits;		/* bits of that byte that belong to it; 0 to
				   7 */
	uint64_t window;	/* offset in the index of the EX_INDEX_WINDOW
				   unpacked bytes before it */
};

/* A unit of .debug_info. */
struct ex_index_unit {
	uint64_t at, end;
	uint8_t head[EX_INDEX_HEAD];	/* up to the unit's end */
};

/* The result of a search for bytes from an offset on. */
struct ex_index_sought {
	uint64_t from;
	uint64_t unit, end;	/* the first unit that contains them; end 0:
				   none */
	uint64_t len;		/* at most EX_INDEX_SOUGHT */
	uint8_t bytes[EX_INDEX_SOUGHT];
};

/* Code of a unit. */
struct ex_index_code {
	uint64_t start, end, unit;
};

/* All zero: empty. bytes, points and units are sorted by offset. */
struct ex_index {
	uint8_t *image;		/* mapped; NULL: the index is not from a file,
				   but being collected */
	size_t size;
	int fd;			/* for mapping bytes again; -1: none */
	struct ex_index_list {
		void *at;	/* malloc'd, unless from a file */
		size_t n, cap;
	} bytes, points, units, sought, code;
	bool all_code;		/* code has the code of all units */
};

/* Read the index that is kept for a file; false: there is none, or it is
   another file's. */
bool ex_index_read(struct ex_index *, const char *key, const struct stat *);
void ex_index_free(struct ex_index *);

/* Close its file, if it has one.  What is mapped remains. */
void ex_index_close(struct ex_index *);

/* Add to an index that is being collected; false: out of memory. */
bool ex_index_add(struct ex_index_list *, const void *one, size_t size);

/* Keep an index that was collected.  In bytes and points, file and window are
   addresses in this process. */
void ex_index_write(const struct ex_index *, const char *key,
    const struct stat *);

#endif
