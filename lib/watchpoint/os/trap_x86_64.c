/* trap_x86_64: data is trapped after the access, whether the program or the
   kernel makes it. */
#include "os/trap_cpu.h"

bool
wp_cpu_traps_before(void)
{
	return false;
}

bool
wp_cpu_kernel_steps(void)
{
	return false;
}

bool
wp_cpu_traps_kernel(void)
{
	return true;
}

bool
wp_cpu_watches_narrow(void)
{
	return true;
}
