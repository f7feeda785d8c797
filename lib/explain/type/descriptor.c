/* descriptor: see descriptor.h. */
#include "type/descriptor.h"

#include <dwarf.h>
#include <errno.h>

#include "debug/die.h"
#include "module/module.h"
#include "type/subobject.h"
#include "unwind/expr.h"

bool
ex_descriptor_is(const struct ex_type *type)
{
	Dwarf_Die die;

	if (type->pointers > 0 || type->ndims > 0 || type->layout == NULL)
		return false;
	die = type->layout->type;
	return die.addr != NULL && dwarf_tag(&die) == DW_TAG_array_type &&
	    dwarf_hasattr(&die, DW_AT_data_location);
}

/* The value of an attribute: a number, or computed from the descriptor. */
static int
describe(Dwarf_Die *die, unsigned name, const struct ex_expr_env *env,
    uint64_t *value)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	int err;

	if (ex_die_number(die, name, value))
		return 0;
	if (dwarf_attr(die, name, &attr) == NULL ||
	    dwarf_getlocation(&attr, &ops, &n) != 0)
		return -ENOTSUP;
	err = ex_expr_eval(ops, n, env, value);
	return err == 0 || err == -EFAULT ? err : -ENOTSUP;
}

/* One more dimension, which has to begin where the elements of those before it
   end: *size bytes after each other. */
static int
add_dimension(Dwarf_Die *range, const struct ex_expr_env *env,
    struct ex_type *elements, uint64_t *size)
{
	uint64_t first, last, stride = *size, count;
	int err;

	if (elements->ndims == EX_DIMENSIONS)
		return -ENOTSUP;
	if ((err = describe(range, DW_AT_upper_bound, env, &last)) < 0)
		return err;
	if (!dwarf_hasattr(range, DW_AT_lower_bound))
		first = ex_die_lower_bound(range);
	else if ((err = describe(range, DW_AT_lower_bound, env, &first)) < 0)
		return err;
	if (dwarf_hasattr(range, DW_AT_byte_stride) &&
	    (err = describe(range, DW_AT_byte_stride, env, &stride)) < 0)
		return err;
	count = (int64_t)last < (int64_t)first ? 0 : last - first + 1;
	if ((count > 1 && stride != *size) ||
	    __builtin_mul_overflow(*size, count, size))
		return -ENOTSUP;
	elements->first[elements->ndims] = first;
	elements->count[elements->ndims++] = count;
	return 0;
}

int
ex_descriptor_elements(const struct ex_type *type, uint64_t addr,
    bool (*read)(void *arg, uint64_t addr, void *to, size_t len), void *arg,
    struct ex_type *elements, uint64_t *at)
{
	const struct ex_regs regs = {
		.narrow = ex_module_is_narrow(type->module),
	};
	const struct ex_expr_env env = {
		.regs = &regs, .object = &addr, .read = read, .arg = arg,
	};
	const struct ex_module_types *types = ex_module_types(type->module);
	Dwarf_Die array = type->layout->type, range;
	uint64_t size;
	int err;

	*elements = *type;
	if (types == NULL || !ex_die_ref(&array, DW_AT_type, &elements->die) ||
	    dwarf_child(&array, &range) != 0)
		return -ENOTSUP;
	elements->layout = ex_layout_of(types->layouts, &elements->die);
	size = ex_type_size(elements);
	if ((err = describe(&array, DW_AT_data_location, &env, at)) < 0)
		return err;
	do {
		if (dwarf_tag(&range) == DW_TAG_subrange_type &&
		    (err = add_dimension(&range, &env, elements, &size)) < 0)
			return err;
	} while (ex_die_next(&range));
	return elements->ndims > 0 && size > 0 ? 0 : -ENOTSUP;
}
