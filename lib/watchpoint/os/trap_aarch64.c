/* trap_aarch64: data is trapped before the access, and only if the program
   itself makes it. */
#include "os/trap_cpu.h"

bool
wp_cpu_traps_before(void)
{
	return true;
}

bool
wp_cpu_kernel_steps(void)
{
	return true;
}

/* arch/arm64/kernel/hw_breakpoint.c, watchpoint_handler */
bool
wp_cpu_traps_kernel(void)
{
	return false;
}

/* Those make every atomic access by ldrex and strex, which would never succeed
   on a word that is watched, and their code is not decoded here. */
bool
wp_cpu_watches_narrow(void)
{
	return false;
}
