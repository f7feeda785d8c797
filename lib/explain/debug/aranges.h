/*
 * aranges: finds the unit of the code at an address by .debug_aranges.
 *
 * Not every compiler writes this section.  So a missing address proves nothing,
 * unless the section is known to cover each unit that has code.
 */
#ifndef EX_ARANGES_H
#define EX_ARANGES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "module/range.h"

struct ex_aranges {		/* all zero: empty */
	struct ex_ranges code;	/* what: where the unit begins */
	size_t units;		/* units that have code here; 0: not known */
};

/* Read a section.  Damaged parts are left out. */
void ex_aranges_read(struct ex_aranges *, const uint8_t *bytes, size_t size);
void ex_aranges_free(struct ex_aranges *);

/* What the abbreviation tables of a file's units contain. */
struct ex_abbrevs {
	size_t units;		/* tables for units, type units apart */
	size_t coded;		/* ... for those with code of their own */
	bool references;	/* a unit may refer to another */
};

/* Read .debug_abbrev.  False: it is damaged. */
bool ex_abbrevs_read(struct ex_abbrevs *, const uint8_t *bytes, size_t size);

/* The number of line tables in a .debug_line; SIZE_MAX: it is damaged. */
size_t ex_line_tables(const uint8_t *bytes, size_t size);

#endif
