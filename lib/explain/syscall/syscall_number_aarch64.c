/* syscall_number_aarch64: not needed: accesses that the kernel makes are not
   trapped there (hw_breakpoint.c of arch/arm64). */
#include "syscall/syscall_number.h"

int
ex_syscall_number(struct ex_process *process, const struct ex_sample *sample)
{
	(void)process, (void)sample;
	return -1;
}

bool
ex_syscall_first(struct ex_process *process, const struct ex_sample *sample,
    uint32_t *value)
{
	(void)process, (void)sample, (void)value;
	return false;
}
