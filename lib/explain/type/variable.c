/* variable: a table of variables by address, built unit by unit. */
#include "type/variable.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "debug/debug_info.h"
#include "debug/die.h"
#include "module/module_private.h"
#include "symbol/symbol.h"
#include "base/array.h"
#include "base/table.h"

/* More than the largest programs have; a damaged file may claim any number. */
#define VARIABLES_MAX ((size_t)1 << 22)

struct ex_variables {
	struct ex_module *module;
	uint64_t bias;		/* DWARF's address less vaddr */
	bool complete;		/* all units are read, or as many as there may
				   be variables of */
	uint64_t next;		/* where the next unit is, of those that are
				   read in their order */
	struct ex_table read;	/* units read before their turn, by offset */
	struct ex_variable *at;
	size_t n, cap;
	bool sorted;
};

struct ex_variables *
ex_variables_new(struct ex_module *m)
{
	struct ex_variables *variables = calloc(1, sizeof(*variables));

	if (variables == NULL)
		return NULL;
	variables->module = m;
	variables->complete = ex_module_dwarf(m, &variables->bias) == NULL;
	variables->sorted = true;
	return variables;
}

void
ex_variables_free(struct ex_variables *variables)
{
	if (variables == NULL)
		return;
	for (size_t i = 0; i < variables->n; i++)
		free(variables->at[i].declared);
	ex_table_free(&variables->read, NULL);
	free(variables->at);
	free(variables);
}

/* Whether variables with a static address may be declared inside. */
static bool
holds_variables(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_common_block:
		return true;
	default:
		return false;
	}
}

/* Get the address of a variable that always has the same: DW_OP_addr alone, or
   an index into the unit's addresses.  False: it lies elsewhere, or nowhere. */
static bool
static_place(Dwarf_Die *die, Dwarf_Addr *addr)
{
	Dwarf_Attribute attr, at;
	Dwarf_Block block;
	Dwarf_Op *op;
	size_t n;

	if (dwarf_attr(die, DW_AT_location, &attr) == NULL ||
	    dwarf_formblock(&attr, &block) != 0 || block.length < 2)
		return false;
	if (block.data[0] == DW_OP_addr) {
		if (block.length != 1 + sizeof(*addr) &&
		    block.length != 1 + sizeof(uint32_t))
			return false;
		/* elfutils does not recognize Go's form of a location */
		*addr = 0;
		memcpy(addr, block.data + 1, block.length - 1);
		return true;
	}
	if ((block.data[0] != DW_OP_addrx &&
	    block.data[0] != DW_OP_GNU_addr_index) ||
	    dwarf_getlocation(&attr, &op, &n) != 0 || n != 1)
		return false;
	return dwarf_getlocation_attr(&attr, op, &at) == 0 &&
	    dwarf_formaddr(&at, addr) == 0;
}

/* Variables that the linker has removed remain in DWARF, at address 0 or
   outside the module. */
static bool
add_variable(struct ex_variables *variables, Dwarf_Die *die)
{
	Dwarf_Addr addr;
	uint64_t vaddr;

	if (dwarf_tag(die) != DW_TAG_variable || !static_place(die, &addr))
		return true;
	vaddr = addr - variables->bias;
	if (vaddr == 0 || ex_module_segment(variables->module, vaddr) == NULL)
		return true;
	if (!EX_ARRAY_ROOM(variables, at, VARIABLES_MAX))
		return false;
	variables->at[variables->n++] = (struct ex_variable){
		.vaddr = vaddr, .die = *die,
	};
	variables->sorted = false;
	return true;
}

/* False: there is no room for more. */
static bool
add_unit(struct ex_variables *variables, Dwarf_Die *unit)
{
	struct ex_die_walk walk;
	Dwarf_Die *die;

	for (die = ex_die_walk(&walk, unit); die != NULL;
	    die = ex_die_walk_on(&walk, holds_variables)) {
		if (!add_variable(variables, die))
			return false;
	}
	return true;
}

/* Read the next unit.  False: there is none. */
static bool
read_unit(struct ex_variables *variables)
{
	uint64_t offset = variables->next;
	Dwarf_Die unit;
	bool types;

	if (variables->complete || !ex_unit_next(variables->module,
	    &variables->next, &unit, &types) || (!types &&
	    ex_table_get(&variables->read, offset) == NULL &&
	    !add_unit(variables, &unit)))
		variables->complete = true;
	return !variables->complete;
}

static int
variable_compare(const void *pa, const void *pb)
{
	const struct ex_variable *a = pa, *b = pb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->die.addr > b->die.addr) - (a->die.addr < b->die.addr);
}

/* The variable, of those that have been read, that begins nearest at or below
   vaddr. */
static struct ex_variable *
nearest(struct ex_variables *variables, uint64_t vaddr)
{
	size_t low;

	if (!variables->sorted)
		qsort(variables->at, variables->n, sizeof(*variables->at),
		    variable_compare);
	variables->sorted = true;
	low = EX_ARRAY_UPTO(variables->at, variables->n, vaddr, vaddr);
	return low > 0 ? &variables->at[low - 1] : NULL;
}

/* Whether a variable that was read after the first n begins at this address. */
static bool
is_read(const struct ex_variables *variables, size_t n, uint64_t vaddr)
{
	for (; n < variables->n; n++) {
		if (variables->at[n].vaddr == vaddr)
			return true;
	}
	return false;
}

/* The usual location of a variable: DW_OP_addr with its address.  Returns the
   length. */
static size_t
usual_place(const struct ex_variables *variables, uint64_t vaddr,
    uint8_t place[10])
{
	const uint64_t addr = vaddr + variables->bias;
	const uint8_t size = ex_module_is_narrow(variables->module) ? 4 : 8;

	place[0] = 1 + size;
	place[1] = DW_OP_addr;
	memcpy(place + 2, &addr, size);
	return 2 + size;
}

/* Read a unit before its turn, unless it has been read.  Returns whether it has
   the variable. */
static bool
read_early(struct ex_variables *variables, uint64_t offset, uint64_t vaddr)
{
	const size_t n = variables->n;
	uint64_t next = offset;
	Dwarf_Die unit;
	bool types;

	if (offset < variables->next ||
	    ex_table_get(&variables->read, offset) != NULL ||
	    !ex_table_reserve(&variables->read, 1) || !ex_unit_next(
	    variables->module, &next, &unit, &types))
		return false;
	ex_unit_use(variables->module, &unit);
	ex_table_put(&variables->read, offset, variables);
	if (!types && !add_unit(variables, &unit))
		variables->complete = true;
	return is_read(variables, n, vaddr);
}

/* Read the units that an index lists for this name, until one has the variable.
   Returns false if none does. */
static bool
read_named(struct ex_variables *variables, const char *name, uint64_t vaddr)
{
	uint64_t offset;
	size_t at = 0;

	while (!variables->complete && ex_unit_variable(variables->module,
	    name, &at, &offset))
		if (read_early(variables, offset, vaddr))
			return true;
	return false;
}

/* Read the units that contain the bytes of the variable's location, until one
   has it.  Returns false if none does. */
static bool
read_likely(struct ex_variables *variables, uint64_t vaddr)
{
	uint8_t place[10];
	const size_t len = usual_place(variables, vaddr, place);
	uint64_t at = 0, offset;

	while (!variables->complete && ex_unit_search(variables->module, &at,
	    place, len, &offset))
		if (read_early(variables, offset, vaddr))
			return true;
	return false;
}

/* Read units until one has the variable at this address, or all are read.
   name: of its symbol, or NULL. */
static void
read_until(struct ex_variables *variables, const char *name, uint64_t vaddr)
{
	size_t n = variables->n;

	if (name != NULL && (read_named(variables, name, vaddr) ||
	    read_likely(variables, vaddr)))
		return;
	while (read_unit(variables)) {
		if (is_read(variables, n, vaddr))
			return;
		n = variables->n;
	}
}

struct ex_variable *
ex_variables_find(struct ex_variables *variables, uint64_t vaddr)
{
	struct ex_variable *found = nearest(variables, vaddr);
	struct ex_symbol symbol;

	if (variables->complete)
		return found;
	if (!ex_symbol_at(variables->module, vaddr, &symbol))
		read_until(variables, NULL, UINT64_MAX);
	else if (found == NULL || found->vaddr != symbol.value)
		read_until(variables, symbol.name, symbol.value);
	return nearest(variables, vaddr);
}
