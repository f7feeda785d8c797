/*
 * gdb_index: finds units with the code at an address, or a variable of a given
 * name, by .gdb_index.
 *
 * Linkers and gdb write this section.  It may be wrong or incomplete.
 */
#ifndef EX_GDB_INDEX_H
#define EX_GDB_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module/range.h"

/* Parts of a section, which must outlive it; all zero: there is none. */
struct ex_gdb_index {
	const uint8_t *units, *code, *names, *pool;
	size_t nunits, ncode;
	size_t nnames;		/* size of the name table: a power of two */
	size_t pool_size;	/* bytes */
};

/* False: it is damaged, or of a version that is not known. */
bool ex_gdb_index_open(struct ex_gdb_index *, const uint8_t *bytes,
    size_t size);

/* Add its code ranges; what: the unit's offset.  False: out of memory. */
bool ex_gdb_index_code(const struct ex_gdb_index *, struct ex_ranges *);

/* The next unit that has a variable of this name; *at is 0 at first.  False:
   there is no more. */
bool ex_gdb_index_variable(const struct ex_gdb_index *, const char *name,
    size_t *at, uint64_t *unit);

#endif
