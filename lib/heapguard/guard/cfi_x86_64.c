/* cfi_x86_64: finds callers by call frame information.  See cfi.h. */
#include "guard/cfi.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "guard/state.h"

enum { REG_BP = 6, REG_SP = 7, REG_RA = 16 };

_Atomic uint64_t hg_rules[HG_RULES];

/* --- reading DWARF --- */

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t
take(struct cursor *c, unsigned n)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < n) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, n);
	c->at += n;
	return value;
}

static uint64_t
take_leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) != 0 && !c->bad);
	if (is_signed && shift < 64 && (byte & 0x40) != 0)
		value |= UINT64_MAX << shift;
	return value;
}

static uint64_t
take_unsigned(struct cursor *c)
{
	return take_leb(c, false);
}

static void
skip(struct cursor *c, uint64_t n)
{
	if ((uint64_t)(c->end - c->at) < n)
		c->bad = true;
	else
		c->at += n;
}

/* Read an address, in one of the encodings that compilers use here. */
static uint64_t
take_pointer(struct cursor *c, uint8_t encoding)
{
	const uint64_t here = (uintptr_t)c->at;
	uint64_t value;

	switch (encoding & 0x0f) {
	case 0x00:			/* DW_EH_PE_absptr */
	case 0x04:			/* udata8 */
	case 0x0c:			/* sdata8 */
		value = take(c, 8);
		break;
	case 0x03:			/* udata4 */
		value = take(c, 4);
		break;
	case 0x0b:			/* sdata4 */
		value = (uint64_t)(int64_t)(int32_t)take(c, 4);
		break;
	default:
		c->bad = true;
		return 0;
	}
	return value + ((encoding & 0x70) == 0x10 ? here : 0);
}

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;	/* of an FDE's addresses */
	bool augmented;		/* FDEs have augmentation data */
	bool signal;
	const uint8_t *code, *end;
};

static void
take_augmentation(struct cursor *c, const char *text, struct cie *cie)
{
	for (; *text != '\0' && !c->bad; text++) {
		if (*text == 'R')
			cie->encoding = (uint8_t)take(c, 1);
		else if (*text == 'P')
			(void)take_pointer(c, (uint8_t)take(c, 1) & 0x0f);
		else if (*text == 'L')
			(void)take(c, 1);
		else if (*text == 'S')
			cie->signal = true;
	}
}

static bool
parse_cie(const uint8_t *at, struct cie *cie)
{
	struct cursor c = {at, at + 4, false};
	const char *text;
	uint64_t len = take(&c, 4), more;

	*cie = (struct cie){0};
	if (len == 0 || len >= 0xfffffff0)
		return false;
	cie->end = c.end = at + 4 + len;
	if (take(&c, 4) != 0)
		return false;
	(void)take(&c, 1);			/* version */
	text = (const char *)c.at;
	while (take(&c, 1) != 0 && !c.bad)
		;
	cie->code_align = take_unsigned(&c);
	cie->data_align = (int64_t)take_leb(&c, true);
	(void)take_unsigned(&c);		/* return address register */
	if (*text == 'z') {
		cie->augmented = true;
		more = take_unsigned(&c);
		cie->code = c.at + more;
		take_augmentation(&c, text + 1, cie);
		return !c.bad && cie->code <= cie->end;
	}
	cie->code = c.at;
	return *text == '\0' && !c.bad;
}

/* --- rows --- */

struct row {
	int64_t cfa;
	uint64_t reg;
	int64_t bp;		/* 0: unchanged */
	bool bad;		/* no rule of struct hg_rule expresses it */
	bool last;		/* the frame is the outermost: its return
				   address is undefined */
};

struct rows {
	struct row now, first, kept[4];
	unsigned nkept;
	uint64_t pc;		/* where the row begins */
};

static void
set_offset(struct row *row, uint64_t reg, int64_t offset)
{
	if (reg == REG_BP)
		row->bp = offset;
	else if (reg == REG_RA && offset != -8)
		row->bad = true;
}

static void
restore(struct rows *r, uint64_t reg)
{
	if (reg == REG_BP)
		r->now.bp = r->first.bp;
}

/* Whether the register is rbp or the return address, for which the instruction
   gives no simple rule. */
static void
set_other(struct row *row, uint64_t reg)
{
	if (reg == REG_BP || reg == REG_RA)
		row->bad = true;
}

static void
remember(struct rows *r)
{
	if (r->nkept < sizeof(r->kept) / sizeof(r->kept[0]))
		r->kept[r->nkept++] = r->now;
	else
		r->now.bad = true;
}

static void
recall(struct rows *r)
{
	if (r->nkept > 0)
		r->now = r->kept[--r->nkept];
	else
		r->now.bad = true;
}

/* Execute an extended instruction that sets the rule of a register. */
static void
step_register(struct rows *r, struct cursor *c, uint8_t op,
    const struct cie *cie)
{
	const uint64_t reg = take_unsigned(c);

	switch (op) {
	case 0x05:				/* offset_extended */
		set_offset(&r->now, reg,
		    (int64_t)take_unsigned(c) * cie->data_align);
		break;
	case 0x06:				/* restore_extended */
		restore(r, reg);
		break;
	case 0x07:				/* undefined */
		r->now.last = r->now.last || reg == REG_RA;
		break;
	case 0x08:				/* same_value */
		if (reg == REG_BP)
			r->now.bp = 0;
		break;
	case 0x09:				/* register */
		set_other(&r->now, reg);
		(void)take_unsigned(c);
		break;
	default:				/* expression, val_expression */
		set_other(&r->now, reg);
		skip(c, take_unsigned(c));
	}
}

/* Execute an extended instruction. */
static void
step_extended(struct rows *r, struct cursor *c, uint8_t op,
    const struct cie *cie)
{
	switch (op) {
	case 0x00:				/* nop */
		break;
	case 0x02:				/* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		r->pc += take(c, 1U << (op - 2)) * cie->code_align;
		break;
	case 0x05 ... 0x09:
	case 0x10:
	case 0x16:
		step_register(r, c, op, cie);
		break;
	case 0x0a:
		remember(r);
		break;
	case 0x0b:
		recall(r);
		break;
	case 0x0c:				/* def_cfa */
		r->now.reg = take_unsigned(c);
		r->now.cfa = (int64_t)take_unsigned(c);
		break;
	case 0x0d:				/* def_cfa_register */
		r->now.reg = take_unsigned(c);
		break;
	case 0x0e:				/* def_cfa_offset */
		r->now.cfa = (int64_t)take_unsigned(c);
		break;
	case 0x2e:				/* GNU_args_size */
		(void)take_unsigned(c);
		break;
	default:		/* def_cfa_expression and rare ones */
		r->now.bad = true;
		c->bad = true;
	}
}

/* Execute instructions up to the row that applies at pc. */
static bool
run(struct rows *r, struct cursor *c, uint64_t pc, const struct cie *cie)
{
	uint64_t reg;

	while (c->at < c->end && !c->bad && r->pc <= pc) {
		const struct row before = r->now;
		const uint8_t op = (uint8_t)take(c, 1);

		switch (op >> 6) {
		case 1:
			r->pc += (op & 0x3f) * cie->code_align;
			break;
		case 2:
			reg = op & 0x3f;
			set_offset(&r->now, reg,
			    (int64_t)take_unsigned(c) * cie->data_align);
			break;
		case 3:
			restore(r, op & 0x3f);
			break;
		default:
			step_extended(r, c, op, cie);
		}
		if (r->pc > pc)
			r->now = before;
	}
	return !c->bad && !r->now.bad;
}

/* --- finding the FDE --- */

/* The address of a module's table of FDEs; NULL: there is none. */
static const uint8_t *
find_header(uint64_t pc, uint64_t *end)
{
	struct dl_find_object found;

	if (_dl_find_object((void *)(uintptr_t)pc, &found) != 0 ||
	    found.dlfo_eh_frame == NULL)
		return NULL;
	*end = (uintptr_t)found.dlfo_map_end;
	return found.dlfo_eh_frame;
}

/* Find the FDE of an address in the sorted table. */
static const uint8_t *
find_fde(const uint8_t *header, uint64_t pc)
{
	struct { int32_t begin, fde; } entry;
	const uint8_t *table;
	uint32_t low = 0, high;

	if (header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b)
		return NULL;
	table = header + ((header[1] & 0x0f) == 0x0b ||
	    (header[1] & 0x0f) == 0x03 ? 8 : 12);
	memcpy(&high, table, sizeof(high));
	table += sizeof(high);
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		memcpy(&entry, table + (size_t)middle * sizeof(entry),
		    sizeof(entry));
		if ((uintptr_t)header + (uint64_t)(int64_t)entry.begin <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	memcpy(&entry, table + (size_t)(low - 1) * sizeof(entry),
	    sizeof(entry));
	return header + entry.fde;
}

static bool
find_row(const uint8_t *fde, uint64_t pc, struct row *row)
{
	struct cursor c = {fde, fde + 4, false}, initial;
	struct rows rows = {0};
	struct cie cie;
	uint64_t len = take(&c, 4), begin, range;
	const uint8_t *id = c.at;
	uint32_t distance;

	if (len == 0 || len >= 0xfffffff0)
		return false;
	c.end = fde + 4 + len;
	distance = (uint32_t)take(&c, 4);
	if (!parse_cie(id - distance, &cie) || cie.signal)
		return false;
	begin = take_pointer(&c, cie.encoding);
	range = take_pointer(&c, cie.encoding & 0x0f);
	if (cie.augmented)
		skip(&c, take_unsigned(&c));
	if (c.bad || pc < begin || pc - begin >= range)
		return false;
	rows.pc = 0;
	initial = (struct cursor){cie.code, cie.end, false};
	if (!run(&rows, &initial, 0, &cie))
		return false;
	rows.first = rows.now;
	rows.pc = begin;
	if (!run(&rows, &c, pc, &cie))
		return false;
	*row = rows.now;
	return true;
}

/* The rule of a return address is that of the call before it. */
static struct hg_rule
find_rule(uint64_t pc)
{
	struct hg_rule rule = {.high = (uint32_t)(pc / HG_RULES)};
	struct row row;
	uint64_t end;
	const uint8_t *header = find_header(pc - 1, &end);
	const uint8_t *fde = header == NULL ? NULL : find_fde(header, pc - 1);

	if (fde == NULL || !find_row(fde, pc - 1, &row))
		return rule;
	if (row.last) {
		rule.how = HG_OUTERMOST;
		return rule;
	}
	if ((row.reg != REG_SP && row.reg != REG_BP) || row.cfa < 8 ||
	    row.cfa >= 8 << 16 || row.cfa % 8 != 0 || row.bp > 0 ||
	    row.bp <= -(8 << 14) || row.bp % 8 != 0)
		return rule;
	rule.cfa = (uint16_t)(row.cfa / 8);
	rule.bp = (uint16_t)(-row.bp / 8) & 0x3fff;
	rule.how = row.reg == REG_SP ? HG_FROM_SP : HG_FROM_BP;
	return rule;
}

struct hg_rule
hg_rule_learn(uint64_t pc)
{
	struct hg_rule rule = {0};
	uint64_t word;

	if (pc >= UINT64_C(1) << 47)	/* not in user space */
		return rule;
	rule = find_rule(pc);
	memcpy(&word, &rule, sizeof(word));
	atomic_store_explicit(&hg_rules[pc % HG_RULES], word,
	    memory_order_relaxed);
	return rule;
}

void
hg_frame_forget(void)
{
	for (size_t i = 0; i < HG_RULES; i++)
		atomic_store_explicit(&hg_rules[i], 0, memory_order_relaxed);
	(void)atomic_fetch_add(&hg_state.forgotten, 1);
}
