/* uprobe_place_aarch64: the first instruction: functions begin with one that
   stores to the stack, or that is a nop to the kernel. */
#include "insn/uprobe_place.h"
#include "symbol/symbol.h"

uint64_t
ex_uprobe_place(struct ex_module *m, uint64_t vaddr)
{
	(void)m;
	return vaddr;
}

/* Elsewhere in a function constants may lie. */
bool
ex_uprobe_fits(struct ex_module *m, uint64_t vaddr)
{
	uint64_t start;

	return ex_symbol_function_start(m, vaddr, &start) && start == vaddr;
}
