/*
 * debug_info: reads a module's debug information unit by unit.
 *
 * Compressed sections are unpacked only up to the last unit that was requested
 * (unpacked.c).  So only these functions may step from unit to unit, or go to
 * an offset in .debug_info.  References to other units still work: a file that
 * has any is unpacked completely.
 */
#ifndef EX_DEBUG_INFO_H
#define EX_DEBUG_INFO_H

#include <elfutils/libdw.h>

#include "module/module.h"

/* The unit at *at, 0 for the first; *at becomes the start of the next one.  For
   a skeleton unit it is the split-off unit, if that exists. *types: it only has
   types.  False: there is no more. */
bool ex_unit_next(struct ex_module *, uint64_t *at, Dwarf_Die *unit,
    bool *types);

/* The unit at this offset of the file, even if it is a skeleton.  False: none
   begins there. */
bool ex_unit_at(struct ex_module *, uint64_t offset, Dwarf_Die *unit);

/* Note that the unit of a DIE is read completely: what is unpacked for it is
   kept for later runs (index.h). */
void ex_unit_use(struct ex_module *, Dwarf_Die *);

/* The start of the unit after the one at this offset; 0: none begins at this
   offset. */
uint64_t ex_unit_behind(struct ex_module *, uint64_t offset);

/* Find the first unit at or after *at that contains these bytes; *at becomes
   the place to continue from.  False: there is none, or the units cannot be
   searched. */
bool ex_unit_search(struct ex_module *, uint64_t *at, const void *bytes,
    size_t len, uint64_t *unit);

/* A search for units that have an entry with a name; all zero except the
   name. */
struct ex_unit_names {
	const char *name;
	unsigned phase;		/* phase of the search; private to
				   debug_info.c */
	uint64_t string, at;	/* ... and its position */
	unsigned strings;
	bool all;		/* set after the last one: there may be other
				   units that store the name in another way */
};

/* The next unit that may have such an entry.  False: there is no more. */
bool ex_unit_named(struct ex_module *, struct ex_unit_names *, uint64_t *unit);

/* The next unit that an index lists for a variable of this name; *at is 0 at
   first.  False: there is no more. */
bool ex_unit_variable(struct ex_module *, const char *name, size_t *at,
    uint64_t *unit);

/* The same for a function, or a part of one ("name.part.0"). */
bool ex_unit_function(struct ex_module *, const char *name, size_t *at,
    uint64_t *unit);

/* Whether the index is complete, and lists no unit for a function of this
   name. */
bool ex_unit_no_function(struct ex_module *, const char *name);

/* The unit that an index lists for the code at vaddr. */
enum ex_code_unit {
	EX_CODE_UNIT,		/* it is listed; the unit itself is more
				   reliable */
	EX_CODE_UNKNOWN,	/* the code may be of any unit */
	EX_CODE_NONE,		/* no unit has code there */
};
enum ex_code_unit ex_unit_of_code(struct ex_module *, uint64_t vaddr,
    uint64_t *unit);

/* Add code of a unit, while ex_unit_of_code does not know it; and note that
   this was all code of all units. */
void ex_unit_code(struct ex_module *, uint64_t start, uint64_t end,
    uint64_t unit);
void ex_unit_code_end(struct ex_module *);

/* Unpack what location lists refer to; call this before one is read.  False: it
   is damaged. */
bool ex_unit_locations(struct ex_module *);

/* Call frame information of .debug_frame.  *bias is what to add to a vaddr.
   NULL: none. */
Dwarf_CFI *ex_module_debug_frame(struct ex_module *, uint64_t *bias);

#endif
