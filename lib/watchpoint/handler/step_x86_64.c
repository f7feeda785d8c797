/* step_x86_64: data is trapped after the access, and the kernel sets the resume
   flag where execution was trapped: there is nothing to step over. */
#include "handler/step.h"

#include "handler/capture.h"

uint64_t
wp_cpu_next(const ucontext_t *context)
{
	return wp_cpu_pc(context);
}

bool
wp_cpu_at_syscall(const ucontext_t *context)
{
	(void)context;
	return false;
}
