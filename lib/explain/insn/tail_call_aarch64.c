/*
 * tail_call_aarch64: where a caller may be missing on 64-bit Arm.
 *
 * The instruction before the return address says which function was called.  If
 * that is not the one that runs, the functions between them are not looked for:
 * there is a gap.
 */
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"
#include "insn/tail_call.h"

#ifdef __aarch64__	/* static checks see it elsewhere, too */

#define STUB "@plt"

/* Whether a function of the process by a name is the one that runs. */
struct named {
	struct ex_module *module;
	const char *name;
	struct ex_module *running;
	uint64_t start;		/* vaddr of the function that runs */
	bool is_running;
	bool chosen;		/* which one is called is chosen at run time */
};

static int
look_at(void *arg, const struct ex_symbol *symbol)
{
	struct named *named = arg;

	if (!symbol->function)
		return 0;
	named->chosen |= symbol->indirect;
	named->is_running |= named->module == named->running &&
	    symbol->value == named->start;
	return 0;
}

static int
look_through(void *arg, struct ex_module *module, uint64_t base)
{
	struct named *named = arg;

	(void)base;
	named->module = module;
	return ex_symbol_find_raw(module, named->name, look_at, named);
}

/* Whether the function that a stub leads to runs.  *chosen: that cannot be
   known. */
static bool
stub_leads_to(struct ex_process *process, const char *stub,
    struct ex_module *running, uint64_t start, bool *chosen)
{
	struct named named = {.running = running, .start = start};
	char *name = strndup(stub, strlen(stub) - strlen(STUB));

	named.name = name;
	if (name != NULL)
		(void)ex_process_modules(process, look_through, &named);
	free(name);
	*chosen = named.chosen || name == NULL;
	return named.is_running;
}

static bool
is_stub(const char *name)
{
	const size_t len = strlen(name), end = strlen(STUB);

	return len > end && strcmp(name + len - end, STUB) == 0;
}

/* What the table keeps: that a caller may be missing behind the function that
   was entered here. */
static const struct ex_tail *
gap_at(struct ex_table *answers, uint64_t entry)
{
	const uint64_t hash = ex_hash(0, entry);
	struct ex_tail *tail;
	size_t i = 0;

	while ((tail = ex_table_next(answers, hash, &i)) != NULL)
		if (tail->caller[0].entry == entry)
			return tail;
	if (!ex_table_reserve(answers, 1) ||
	    (tail = calloc(1, sizeof(*tail))) == NULL)
		return NULL;
	tail->n = 1;
	tail->caller[0].entry = entry;
	tail->gap = true;
	ex_table_put(answers, hash, tail);
	return tail;
}

/* The target of the bl in front of a return address; 0: it is none, and so went
   through a pointer. */
static uint64_t
called_by(struct ex_module *module, uint64_t back)
{
	uint32_t insn;
	uint8_t code[sizeof(insn)];

	if (ex_module_bytes(module, back - sizeof(code), code,
	    sizeof(code)) != sizeof(code))
		return 0;
	memcpy(&insn, code, sizeof(insn));
	if ((insn & 0xfc000000) != 0x94000000)
		return 0;
	return back - sizeof(code) +
	    (uint64_t)((int64_t)((uint64_t)insn << 38) >> 36);
}

const struct ex_tail *
ex_tail_find(struct ex_table *answers, struct ex_process *process,
    uint64_t pc, uint64_t back, bool *pointer)
{
	struct ex_module *running, *calling;
	struct ex_symbol symbol;
	uint64_t at, vaddr, called, start, entry;

	*pointer = false;
	running = ex_process_module(process, pc, &at);
	calling = ex_process_module(process, back - 1, &vaddr);
	if (running == NULL || calling == NULL)
		return NULL;
	vaddr++;
	if (!ex_symbol_function_start(running, at, &start) ||
	    (called = called_by(calling, vaddr)) == 0) {
		*pointer = true;
		return NULL;
	}
	if (ex_symbol_at(calling, called, &symbol) && is_stub(symbol.name)) {
		if (stub_leads_to(process, symbol.name, running, start,
		    pointer) || *pointer)
			return NULL;
	} else if (calling == running && ex_symbol_function_start(running,
	    called, &entry) && entry == start) {
		return NULL;
	}
	return gap_at(answers, back - vaddr + called);
}

#endif
