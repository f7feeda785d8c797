/* split: finding what the compiler split off. */
#include "split.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

bool
ex_split_tree(struct ex_module *m, Dwarf_Die *unit)
{
	Dwarf_Die split;
	uint8_t type;

	(void)m;
	if (dwarf_cu_info(unit->cu, NULL, &type, NULL, NULL, NULL, NULL,
	    NULL) != 0 || type != DW_UT_skeleton)
		return true;
	if (dwarf_cu_info(unit->cu, NULL, NULL, NULL, &split, NULL, NULL,
	    NULL) != 0 || dwarf_tag(&split) == DW_TAG_invalid)
		return false;
	*unit = split;
	return true;
}
