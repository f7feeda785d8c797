/*
 * line: the source position of an address, by DWARF: its line, and the calls
 * that were inlined there.
 */
#ifndef EX_LINE_H
#define EX_LINE_H

#include <elfutils/libdw.h>

#include "module/module.h"

#define EX_LINES_MAX 64		/* levels of inlining that are reported */

/* One level: a function, and the place in it. */
struct ex_line {
	const char *function;	/* linkage name, else qualified name; NULL:
				   unknown */
	uint64_t start;		/* of the function; only the last level's */
	const char *file;	/* its path (source_path.h); NULL: unknown */
	int line, column;	/* 0: unknown */
	bool partial;		/* what was inlined there is not known, though
				   there is debug information: a part of that,
				   split off by the compiler, is not there */
};

/*
 * The levels at vaddr, the innermost inlined function first, the function that
 * has code of its own last.  Result: how many; 0: no debug information there.
 * Strings live as long as the module.
 */
unsigned ex_lines_at(struct ex_module *, uint64_t vaddr,
    struct ex_line out[EX_LINES_MAX]);

/* The function whose code lies at vaddr: its entry in debug information, where
   its code there begins, and what to add to a vaddr for libdw.  False: none is
   known. */
bool ex_line_function(struct ex_module *, uint64_t vaddr, Dwarf_Die *,
    uint64_t *start, uint64_t *bias);

/* The unit of that code, with its lines.  False: as above. */
bool ex_line_unit(struct ex_module *, uint64_t vaddr, Dwarf_Die *,
    uint64_t *bias);

/* What debug information says of a jump that leads, or may lead, out of its
   function: is it a call, and the function's end? */
enum ex_jump {
	EX_JUMP_UNKNOWN,
	EX_JUMP_INSIDE,		/* it is none: a jump inside of its function */
	EX_JUMP_CALL,		/* a tail call */
};

/* The same of the instruction of len bytes at vaddr. */
enum ex_jump ex_line_jump(struct ex_module *, uint64_t vaddr, unsigned len);

#endif
