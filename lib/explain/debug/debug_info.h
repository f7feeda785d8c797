/*
 * debug_info: a module's debug information, unit by unit.
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

/* The unit that begins at *at, 0 for the first, and where the next one does; of
   one that is split off, if it is there, what was split off.  *types: it has
   types only.  False: there is none. */
bool ex_unit_next(struct ex_module *, uint64_t *at, Dwarf_Die *unit,
    bool *types);

/* The unit that begins there, as the file has it.  False: none begins there. */
bool ex_unit_at(struct ex_module *, uint64_t offset, Dwarf_Die *unit);

/* The unit of a DIE is read as a whole: what is unpacked for that is kept for
   the next time (index.h). */
void ex_unit_use(struct ex_module *, Dwarf_Die *);

/* Where the next one begins; 0: none begins at this place. */
uint64_t ex_unit_behind(struct ex_module *, uint64_t offset);

/* Where the first unit at or behind *at begins that holds these bytes; behind
   it is where to go on, *at.  False: there is none, or they cannot be
   searched. */
bool ex_unit_search(struct ex_module *, uint64_t *at, const void *bytes,
    size_t len, uint64_t *unit);

/* A search for units that have an entry of a name; all zero but for that. */
struct ex_unit_names {
	const char *name;
	unsigned phase;		/* what is being sought; debug_info.c's own */
	uint64_t string, at;	/* ... from where on */
	unsigned strings;
	bool all;		/* after the last one: units may be left that
				   have names in another way */
};

/* Where the next unit begins that may have one.  False: there is none. */
bool ex_unit_named(struct ex_module *, struct ex_unit_names *, uint64_t *unit);

/* Where the next unit begins that is said to have a variable of this name; *at
   is 0 at first.  False: none is said to. */
bool ex_unit_variable(struct ex_module *, const char *name, size_t *at,
    uint64_t *unit);

/* The same of a function, or one that was made of it ("name.part.0"). */
bool ex_unit_function(struct ex_module *, const char *name, size_t *at,
    uint64_t *unit);

/* No unit is said to have a function of this name; and it would be. */
bool ex_unit_no_function(struct ex_module *, const char *name);

/* Where the unit begins that is said to have the code at vaddr. */
enum ex_code_unit {
	EX_CODE_UNIT,		/* so it is said; the unit knows better */
	EX_CODE_UNKNOWN,	/* that of any unit may be there */
	EX_CODE_NONE,		/* no unit has any there */
};
enum ex_code_unit ex_unit_of_code(struct ex_module *, uint64_t vaddr,
    uint64_t *unit);

/* Code that a unit says to have, while ex_unit_of_code says that it is unknown;
   and that this was all code of all units. */
void ex_unit_code(struct ex_module *, uint64_t start, uint64_t end,
    uint64_t unit);
void ex_unit_code_end(struct ex_module *);

/* Have what lists of locations refer to there: called before one is read.
   False: it is damaged. */
bool ex_unit_locations(struct ex_module *);

/* Call frame information of .debug_frame.  *bias is what to add to a vaddr.
   NULL: none. */
Dwarf_CFI *ex_module_debug_frame(struct ex_module *, uint64_t *bias);

#endif
