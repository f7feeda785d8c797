/* variable: a table of variables by address, made unit by unit. */
#include "type/variable.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "module/die.h"
#include "module/module_private.h"
#include "module/symbol.h"
#include "base/array.h"

/* More than the largest programs have; a damaged file may claim any number. */
#define VARIABLES_MAX ((size_t)1 << 22)

struct ex_variables {
	struct ex_module *module;
	Dwarf *dwarf;		/* NULL: no debug information, or all is read */
	uint64_t bias;		/* DWARF's address less vaddr */
	Dwarf_CU *unit;		/* read last; NULL: none yet */
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
	variables->dwarf = ex_module_dwarf(m, &variables->bias);
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
	free(variables->at);
	free(variables);
}

/* Whether variables with a place of their own may be found inside. */
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

/* The address of a variable that has one for good: DW_OP_addr alone, or an
   index into the unit's addresses.  False: it lies elsewhere, or nowhere. */
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
		if (block.length != 1 + sizeof(*addr))
			return false;
		/* elfutils does not take Go's for a location */
		memcpy(addr, block.data + 1, sizeof(*addr));
		return true;
	}
	if ((block.data[0] != DW_OP_addrx &&
	    block.data[0] != DW_OP_GNU_addr_index) ||
	    dwarf_getlocation(&attr, &op, &n) != 0 || n != 1)
		return false;
	return dwarf_getlocation_attr(&attr, op, &at) == 0 &&
	    dwarf_formaddr(&at, addr) == 0;
}

/* Variables that the linker threw away remain in DWARF, at 0 or outside. */
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

/* Read the next unit.  False: there is none. */
static bool
read_unit(struct ex_variables *variables)
{
	struct ex_die_walk walk;
	Dwarf_Die unit, *die;
	bool types;

	if (variables->dwarf == NULL || !ex_die_unit(variables->module,
	    variables->dwarf, &variables->unit, &unit, &types)) {
		variables->dwarf = NULL;
		return false;
	}
	if (types)
		return true;
	for (die = ex_die_walk(&walk, &unit); die != NULL;
	    die = ex_die_walk_on(&walk, holds_variables)) {
		if (!add_variable(variables, die)) {
			variables->dwarf = NULL;
			return false;
		}
	}
	return true;
}

static int
variable_compare(const void *pa, const void *pb)
{
	const struct ex_variable *a = pa, *b = pb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->die.addr > b->die.addr) - (a->die.addr < b->die.addr);
}

/* Of those that are read, the one that begins nearest at or below vaddr. */
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

/* Read on until the variable at this address has shown, or everything is
   read. */
static void
read_until(struct ex_variables *variables, uint64_t vaddr)
{
	size_t from = variables->n;

	while (read_unit(variables)) {
		for (; from < variables->n; from++) {
			if (variables->at[from].vaddr == vaddr)
				return;
		}
	}
}

struct ex_variable *
ex_variables_find(struct ex_variables *variables, uint64_t vaddr)
{
	struct ex_variable *found = nearest(variables, vaddr);
	struct ex_symbol symbol;

	if (variables->dwarf == NULL)
		return found;
	if (!ex_symbol_at(variables->module, vaddr, &symbol))
		read_until(variables, UINT64_MAX);
	else if (found == NULL || found->vaddr != symbol.value)
		read_until(variables, symbol.value);
	return nearest(variables, vaddr);
}
