/*
 * debug_names: finds units with a variable or function of a given name by
 * .debug_names (DWARF 5).
 *
 * Compilers write a table for each unit, and linkers concatenate them; gdb
 * writes a single one.  The tables may be wrong or incomplete.
 */
#ifndef EX_DEBUG_NAMES_H
#define EX_DEBUG_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* The sections, which must outlive it; all zero: there are none. */
struct ex_debug_names {
	const uint8_t *bytes;	/* .debug_names */
	size_t size;
	const uint8_t *strings;	/* .debug_str */
	size_t strings_size;
};

/* The units with an entry of this name and tag (DW_TAG_variable,
   DW_TAG_subprogram), each once: at most max, in the order of the tables.
   Result: their number. */
size_t ex_debug_names_find(const struct ex_debug_names *, const char *name,
    unsigned tag, uint64_t *unit, size_t max);

/* The number of units with functions, if all tables list each name of their
   units, as LLVM's do.  0: there are other tables, too. */
size_t ex_debug_names_whole(const struct ex_debug_names *);

#endif
