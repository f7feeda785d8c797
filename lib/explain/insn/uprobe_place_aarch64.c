/* uprobe_place_aarch64: the first instruction: functions begin with one that
   stores to the stack, or that is a nop to the kernel. */
#include "insn/uprobe_place.h"

uint64_t
ex_uprobe_place(struct ex_module *m, uint64_t vaddr)
{
	(void)m;
	return vaddr;
}
