/*
 * line: finds the source position of an address by DWARF: its line, and the
 * calls that were inlined there.
 */
#ifndef EX_LINE_H
#define EX_LINE_H

#include <elfutils/libdw.h>

#include "module/module.h"

#define EX_LINES_MAX 64		/* most levels of inlining */

/* One level: a function, and the place in it. */
struct ex_line {
	const char *function;	/* linkage name, else qualified name; NULL:
				   unknown */
	uint64_t start;		/* of the function; last level only */
	const char *file;	/* its path (source_path.h); NULL: unknown */
	int line, column;	/* 0: unknown */
	bool partial;		/* inlining there is unknown: the part of the
				   debug information that the compiler split off
				   is missing, or does not name what was
				   inlined */
};

/*
 * The levels at vaddr, the innermost inlined function first, the containing
 * function last.  Result: their number; 0: no debug information there.  Strings
 * live as long as the module.
 */
unsigned ex_lines_at(struct ex_module *, uint64_t vaddr,
    struct ex_line out[EX_LINES_MAX]);

/* The function at vaddr: its DIE, the start of its code there, and what to add
   to a vaddr for libdw.  False: unknown. */
bool ex_line_function(struct ex_module *, uint64_t vaddr, Dwarf_Die *,
    uint64_t *start, uint64_t *bias);

/* The unit of the code at vaddr, with its lines.  False: as above. */
bool ex_line_unit(struct ex_module *, uint64_t vaddr, Dwarf_Die *,
    uint64_t *bias);

/* What debug information says about a jump that leads, or may lead, out of its
   function: whether it is a tail call. */
enum ex_jump {
	EX_JUMP_UNKNOWN,
	EX_JUMP_INSIDE,		/* no call: a jump within its function */
	EX_JUMP_CALL,		/* a tail call */
};

/* The same for the instruction of len bytes at */
enum ex_jump ex_line_jump(struct ex_module *, uint64_t vaddr, unsigned len);

#endif
