/* loader: where a starting program stops to have its libraries mapped. */
#include "run/loader.h"

#include <elf.h>

#include "os/proc.h"
#include "module/symbol.h"

struct search {
	uint64_t addr;		/* 0: not found */
	uint64_t base;		/* of the module being looked at */
};

static int
take(void *arg, const struct ex_symbol *symbol)
{
	struct search *search = arg;

	if (!symbol->function)
		return 0;
	search->addr = search->base + symbol->value;
	return 1;
}

/* The function that debuggers stop at too, in glibc and in musl. */
static int
look_into(void *arg, struct ex_module *module, uint64_t base)
{
	struct search *search = arg;

	search->base = base;
	return ex_symbol_find(module, "_dl_debug_state", take, search);
}

void
loader_find(pid_t pid, struct ex_process *process, struct loader *loader)
{
	struct search search = {0};

	(void)ex_process_modules(process, look_into, &search);
	loader->hook = search.addr;
	if (wp_proc_auxv(pid, AT_ENTRY, &loader->entry) < 0)
		loader->entry = 0;
}
