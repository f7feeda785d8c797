/* argument: the arguments of a function, by their locations in DWARF. */
#include "hit/argument.h"

#include <dwarf.h>
#include <string.h>

#include "insn/spilled.h"
#include "space/space.h"
#include "symbol/code_place.h"
#include "debug/debug_info.h"
#include "debug/die.h"
#include "symbol/line.h"
#include "module/module_private.h"
#include "type/declared_object.h"
#include "type/type_name.h"
#include "unwind/cfi.h"
#include "unwind/expr.h"

enum {
	OPS_MAX = 16,		/* most operations in a location */
	BYTES_MAX = 32,		/* most bytes of an argument */
};

/* The place at which a thread was sampled. */
struct place {
	struct ex_process *process;
	const struct ex_sample *sample;
	struct ex_module *module;
	struct ex_regs regs;
	uint64_t vaddr, bias;	/* the pc, and the bias to add for libdw */
	bool first;  /* the pc is at the first instruction of its function, */
	uint64_t start;		/* which starts here */
	Dwarf_Die function;
	uint64_t base;		/* load address of the module */
	uint64_t cfa, frame;	/* the canonical frame address and the frame
				   base */
	bool has_cfa, has_frame;
};

/* Only the copy of the stack is from the time of the sample; other memory has
   changed since. */
static bool
read_stack(void *arg, uint64_t addr, void *to, size_t len)
{
	const struct place *p = arg;
	const uint64_t start = p->regs.value[EX_REG_SP];

	if (addr < start || len > p->sample->stack_len ||
	    addr - start > p->sample->stack_len - len)
		return false;
	memcpy(to, p->sample->stack + (addr - start), len);
	return true;
}

/* --- expressions --- */

static int
evaluate(const struct place *p, const Dwarf_Op *ops, size_t n, uint64_t *value)
{
	struct place *reads = (struct place *)(uintptr_t)p;
	const struct ex_expr_env env = {
		.regs = &p->regs, .cfa = p->has_cfa ? &p->cfa : NULL,
		.base = p->base - p->bias, .read = read_stack, .arg = reads,
	};

	return ex_expr_eval(ops, n, &env, value);
}

/* Whether the operation is a plain register location; *reg is set to its
   number. */
static bool
is_register(const Dwarf_Op *op, uint64_t *reg)
{
	*reg = op->atom == DW_OP_regx ? op->number :
	    (uint64_t)op->atom - DW_OP_reg0;
	return op->atom == DW_OP_regx ||
	    (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31);
}

static bool
register_value(const struct place *p, const Dwarf_Op *op, uint64_t *value)
{
	uint64_t reg;
	unsigned number;

	if (!is_register(op, &reg))
		return false;
	number = ex_regs_number(p->regs.narrow, reg);
	if (!ex_regs_known(&p->regs, number))
		return false;
	*value = p->regs.value[number];
	return true;
}

/* The entry value of a register is its current one, as the sample is taken at
   the entry of the function. */
static bool
entry_value(const struct place *p, Dwarf_Attribute *location,
    const Dwarf_Op *op, uint64_t *value)
{
	Dwarf_Attribute inner;
	Dwarf_Op *ops;
	size_t n;

	return p->first && dwarf_getlocation_attr(location, op, &inner) == 0 &&
	    dwarf_getlocation(&inner, &ops, &n) == 0 && n == 1 &&
	    register_value(p, &ops[0], value);
}

/* Replace operations that depend on the function (frame base, CFA, entry
   values) by constants.  Returns false if one of those is not known. */
static bool
replace(const struct place *p, Dwarf_Attribute *location, Dwarf_Op *op)
{
	uint64_t value;

	switch (op->atom) {
	case DW_OP_fbreg:
		if (!p->has_frame)
			return false;
		value = p->frame + op->number;
		break;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		if (!entry_value(p, location, op, &value))
			return false;
		break;
	default:
		return true;
	}
	op->atom = DW_OP_constu;
	op->number = value;
	return true;
}

/* --- values --- */

/* A stack slot has the value of a register that the preceding code stored
   there.  32-bit code passes its arguments on the stack anyway. */
static bool
spilled_value(const struct place *p, uint64_t addr, uint64_t size,
    uint64_t *value)
{
	unsigned reg;

	if (p->regs.narrow || size > sizeof(*value) ||
	    !ex_regs_known(&p->regs, EX_REG_FP) ||
	    !ex_spilled(p->module, p->start, p->vaddr, (int64_t)(addr -
	    p->regs.value[EX_REG_FP]), size, &reg) ||
	    !ex_regs_known(&p->regs, reg))
		return false;
	*value = p->regs.value[reg];
	return true;
}

/* Read the bytes of an argument from its location. */
static bool
take_bytes(const struct place *p, Dwarf_Attribute *location, Dwarf_Op *given,
    size_t n, uint8_t bytes[BYTES_MAX], uint64_t size)
{
	Dwarf_Op ops[OPS_MAX];
	uint64_t value;
	bool is_value = false;

	if (n == 0 || n > OPS_MAX || size == 0 || size > BYTES_MAX)
		return false;
	memcpy(ops, given, n * sizeof(*ops));
	if (n == 1 && register_value(p, &ops[0], &value)) {
		is_value = true;
	} else {
		for (size_t i = 0; i < n; i++)
			if (!replace(p, location, &ops[i]))
				return false;
		is_value = ops[n - 1].atom == DW_OP_stack_value;
		if (evaluate(p, ops, n, &value) != 0)
			return false;
	}
	if (!is_value && read_stack((struct place *)(uintptr_t)p, value, bytes,
	    size))
		return true;
	if (!is_value && !spilled_value(p, value, size, &value))
		return false;
	if (size > sizeof(value))
		return false;
	memcpy(bytes, &value, size);
	return true;
}

/* Find the location for this pc, which may hold for the whole function or come
   from a location list.  Returns false if there is none. */
static bool
location_at(const struct place *p, Dwarf_Attribute *attr, Dwarf_Op **ops,
    size_t *n, bool *everywhere)
{
	*everywhere = dwarf_getlocation(attr, ops, n) == 0;
	return *everywhere || (attr != NULL && ex_unit_locations(p->module) &&
	    dwarf_getlocation_addr(attr, p->vaddr + p->bias, ops, n, 1) == 1);
}

/* Find the location of an argument at this pc.  Returns false if it has
   none. */
static bool
location_of(const struct place *p, Dwarf_Die *parameter, Dwarf_Attribute *attr,
    Dwarf_Op **ops, size_t *n)
{
	bool everywhere;

	/* a location for the whole function does not hold at its first
	   instruction */
	return location_at(p, dwarf_attr(parameter, DW_AT_location, attr), ops,
	    n, &everywhere) && !(everywhere && p->first && ex_code_is_put(
	    (Dwarf_Die *)(uintptr_t)&p->function, *ops, *n));
}

static void
put_value(const struct place *p, const struct ex_type *type, uint64_t size,
    const uint8_t *bytes, struct ex_argument *arg)
{
	const struct ex_object object = {
		.path = arg->name, .type = arg->type, .size = size,
		.layout = type->layout,
	};

	if (!ex_object_text(p->process, &object, bytes, arg->text,
	    sizeof(arg->text)))
		arg->text[0] = '\0';
	arg->has_value = size <= sizeof(arg->value);
	if (arg->has_value)
		memcpy(&arg->value, bytes, size);
}

static bool
take_argument(const struct place *p, Dwarf_Die *parameter,
    struct ex_argument *arg)
{
	uint8_t bytes[BYTES_MAX] = {0};
	Dwarf_Attribute attr, location;
	struct ex_type type;
	Dwarf_Op *ops;
	uint64_t size;
	size_t n;

	*arg = (struct ex_argument){.name = dwarf_formstring(
	    dwarf_attr_integrate(parameter, DW_AT_name, &attr))};
	if (arg->name == NULL)
		arg->name = "";
	if (!ex_type_of(p->module, parameter, &type) || type.layout == NULL)
		return false;
	size = ex_type_size(&type);
	arg->type = ex_type_name(p->module, &type.die, 0, 0, type.tags);
	if (arg->type == NULL || !location_of(p, parameter, &location, &ops,
	    &n) || !take_bytes(p, &location, ops, n, bytes, size))
		return false;
	put_value(p, &type, size, bytes, arg);
	return arg->has_value || *arg->text != '\0';
}

/* --- where it is --- */

static void
find_cfa(struct place *p)
{
	const struct ex_cfi_row *row = ex_cfi_row(p->module, p->vaddr, true);

	if (row == NULL || row->cfa.how != EX_CFI_VALUE ||
	    !ex_regs_known(&p->regs, row->cfa.base))
		return;
	p->cfa = p->regs.value[row->cfa.base] + (uint64_t)row->cfa.offset;
	if (p->regs.narrow)
		p->cfa = (uint32_t)p->cfa;
	p->has_cfa = true;
}

static void
find_frame(struct place *p)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	bool everywhere;

	if (!location_at(p, dwarf_attr_integrate(&p->function,
	    DW_AT_frame_base, &attr), &ops, &n, &everywhere))
		return;
	p->has_frame = (n == 1 && register_value(p, &ops[0], &p->frame)) ||
	    evaluate(p, ops, n, &p->frame) == 0;
}

/* Whether a function begins there. */
static bool
find_place(struct place *p, uint64_t pc)
{
	uint64_t start;

	p->module = ex_process_module(p->process, pc, &p->vaddr);
	if (p->module == NULL || !ex_line_function(p->module, p->vaddr,
	    &p->function, &start, &p->bias) ||
	    (p->vaddr != start &&
	    p->vaddr != ex_code_entry(p->module, start)) ||
	    !ex_regs_read(&p->sample->user, &p->regs))
		return false;
	p->base = pc - p->vaddr;
	p->first = p->vaddr == start;
	p->start = start;
	find_cfa(p);
	find_frame(p);
	return true;
}

void
ex_arguments_take(struct ex_process *process, const struct ex_sample *sample,
    uint64_t pc, struct ex_arguments *args)
{
	struct place p = {.process = process, .sample = sample};
	Dwarf_Die child;

	args->n = 0;
	if (!find_place(&p, pc) || dwarf_child(&p.function, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter &&
		    take_argument(&p, &child, &args->arg[args->n]))
			args->n++;
	} while (args->n < EX_ARGUMENTS_MAX && ex_die_next(&child));
}
