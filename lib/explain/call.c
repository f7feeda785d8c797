/* call: the system call that a kernel sample was taken in. */
#include "call.h"

#include <string.h>

/* The name that programs know: newfstat serves fstat, and newuname uname; only
   newfstatat is called that. */
static const char *
call_name(const char *name)
{
	return strncmp(name, "new", 3) == 0 && strcmp(name, "newfstatat") != 0 ?
	    name + 3 : name;
}

/* A kernel function's name as that of the system call it serves, or NULL:
   "__x64_sys_read", "ksys_read", "do_sys_openat2" are the entries' forms. */
static const char *
syscall_name(const char *function)
{
	static const char *const prefix[] = {
		"__x64_sys_", "__ia32_sys_", "__do_sys_", "__se_sys_",
		"__arm64_sys_", "ksys_",
	};

	for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++) {
		size_t len = strlen(prefix[i]);

		if (strncmp(function, prefix[i], len) == 0)
			return call_name(function + len);
	}
	return NULL;
}

static const char *
syscall_of(const struct ex_stack *stack)
{
	const char *name = NULL;

	for (unsigned i = 0; stack != NULL && i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];
		const char *found;

		if (!frame->kernel)
			break;
		if (frame->function != NULL &&
		    (found = syscall_name(frame->function)) != NULL)
			name = found;
	}
	return name;
}

void
ex_call_explain(struct ex_process *process, const struct ex_sample *sample,
    const struct ex_stack *stack, uint64_t addr, bool live,
    struct ex_call *out)
{
	(void)process, (void)sample, (void)addr, (void)live;
	*out = (struct ex_call){.name = syscall_of(stack)};
}
