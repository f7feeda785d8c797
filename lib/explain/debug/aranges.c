/*
 * aranges: finds the unit of the code at an address by .debug_aranges.
 *
 * A set of it, for one unit:
 *
 *	u32 length, or u32 -1 and u64 length; u16 version = 2
 *	u32 or u64: where the unit begins; u8 bytes of an address, u8 0
 *	pairs of address and length, aligned to the size of one
 */
#include "debug/aranges.h"

#include <dwarf.h>

#include "record/cursor.h"

enum { SET_VERSION = 2, ADDRESS = 8 };

/* --- .debug_aranges --- */

/* Read the pairs of a set.  Empty pairs do not end it: the linker leaves them
   for code that it discarded.  Returns false if there is no memory. */
static bool
read_pairs(struct ex_aranges *a, struct cursor *c, uint64_t unit, bool *any)
{
	while (c->left >= 2 * ADDRESS) {
		uint64_t start = take64(c), len = take64(c);

		*any |= len != 0;
		if (start != 0 && !ex_ranges_add(&a->code, start, start + len,
		    unit))
			return false;
	}
	return true;
}

/* Read a set.  Returns false if the rest cannot be read. */
static bool
read_set(struct ex_aranges *a, struct cursor *c, uint64_t *last, bool *ordered)
{
	const uint8_t *set = c->p;
	uint64_t length = take32(c), unit;
	size_t offset = 4;
	struct cursor body;
	bool any = false;

	if (length == UINT32_MAX) {
		length = take64(c);
		offset = 8;
	}
	body = (struct cursor){.p = c->p, .left = length};
	if (take(c, length, 1) == NULL || take16(&body) != SET_VERSION)
		return false;
	unit = take_offset(&body, offset);
	if (take8(&body) != ADDRESS || take8(&body) != 0)
		return false;
	while ((size_t)(body.p - set) % (2 * (size_t)ADDRESS) != 0 &&
	    !body.bad)
		(void)take8(&body);
	if (body.bad || !read_pairs(a, &body, unit, &any))
		return false;
	*ordered &= unit > *last || a->units == 0;
	*last = unit;
	a->units += any;
	return true;
}

void
ex_aranges_read(struct ex_aranges *a, const uint8_t *bytes, size_t size)
{
	struct cursor c = {.p = bytes, .left = size};
	uint64_t last = 0;
	bool ordered = true;

	while (c.left > 0) {
		if (!read_set(a, &c, &last, &ordered)) {
			ordered = false;
			break;
		}
	}
	if (!ordered)
		a->units = 0;
	ex_ranges_sort(&a->code);
}

void
ex_aranges_free(struct ex_aranges *a)
{
	ex_ranges_free(&a->code);
}

/* --- .debug_abbrev --- */

/* Read the attributes of an abbreviation.  Returns whether they describe
   code. */
static bool
read_attributes(struct ex_abbrevs *abbrevs, struct cursor *c)
{
	bool coded = false;

	while (!c->bad) {
		uint64_t name = take_leb128(c), form = take_leb128(c);

		if (name == 0 && form == 0)
			break;
		if (form == DW_FORM_implicit_const)
			(void)take_leb128(c);
		coded |= name == DW_AT_low_pc || name == DW_AT_ranges;
		/* an indirect form may be any */
		abbrevs->references |= form == DW_FORM_ref_addr ||
		    form == DW_FORM_ref_sig8 || form == DW_FORM_indirect;
	}
	return coded;
}

bool
ex_abbrevs_read(struct ex_abbrevs *abbrevs, const uint8_t *bytes, size_t size)
{
	struct cursor c = {.p = bytes, .left = size};
	bool coded = false, unit = false;

	*abbrevs = (struct ex_abbrevs){0};
	while (c.left > 0) {
		uint64_t tag;
		bool code;

		if (take_leb128(&c) == 0) {
			abbrevs->units += unit;
			abbrevs->coded += coded;
			coded = unit = false;
			continue;
		}
		tag = take_leb128(&c);
		(void)take8(&c);
		code = read_attributes(abbrevs, &c);
		if (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit ||
		    tag == DW_TAG_partial_unit) {
			unit = true;
			coded |= code && tag != DW_TAG_partial_unit;
		}
	}
	return !c.bad && !unit;
}

/* --- .debug_line --- */

size_t
ex_line_tables(const uint8_t *bytes, size_t size)
{
	struct cursor c = {.p = bytes, .left = size};
	size_t n = 0;

	for (; c.left > 0 && !c.bad; n++) {
		uint64_t length = take32(&c);

		if (length == UINT32_MAX)
			length = take64(&c);
		(void)take(&c, length, 1);
	}
	return c.bad ? SIZE_MAX : n;
}
