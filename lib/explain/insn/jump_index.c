/*
 * jump_index: which jumps lead to a function.
 *
 * All that looks like a jump to a function's start, at any byte of a module's
 * code, is put into a table once.  What is found there is believed if code that
 * is read from its function's start has that jump.
 */
#include "insn/jump_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn/jump.h"
#include "debug/fde.h"
#include "module/module_private.h"
#include "debug/symbol.h"
#include "base/array.h"

#define WAY_MAX 64		/* functions that are asked about */
#define NAMES_MAX 128		/* of one function */
#define JUMPS_MAX (1U << 22)	/* of one module */

/* Order by target, then by place. */
struct table {
	struct ex_jump *jump;
	size_t n, cap;
	bool full;		/* there are more */
};

static void
table_release(void *table)
{
	free(((struct table *)table)->jump);
}

static int
compare(const void *a, const void *b)
{
	const struct ex_jump *x = a, *y = b;

	return x->target != y->target ? ex_compare(x->target, y->target) :
	    ex_compare(x->at, y->at);
}

static bool
add(struct table *table, struct ex_jump jump)
{
	if (!EX_ARRAY_ROOM(table, jump, JUMPS_MAX))
		return false;
	table->jump[table->n++] = jump;
	return true;
}

/* Where functions begin in a segment: a bit for each byte. */
struct starts {
	const struct ex_segment *segment;
	uint8_t *bit;
};

static void
add_start(void *arg, uint64_t vaddr)
{
	const struct starts *starts = arg;
	const uint64_t at = vaddr - starts->segment->vaddr;

	if (at < starts->segment->filesz)
		starts->bit[at / 8] |= (uint8_t)(1u << at % 8);
}

static int
add_symbol(void *arg, const struct ex_symbol *symbol)
{
	if (symbol->function)
		add_start(arg, symbol->value);
	return 0;
}

static bool
is_start(const struct starts *starts, uint64_t vaddr)
{
	const uint64_t at = vaddr - starts->segment->vaddr;

	return at < starts->segment->filesz &&
	    (starts->bit[at / 8] >> at % 8 & 1) != 0;
}

/* Go through the code of one segment. */
static bool
scan(struct ex_module *m, const struct ex_segment *s, struct table *table)
{
	const uint8_t *code = m->image + s->offset;
	struct starts starts = {s, calloc(1, s->filesz / 8 + 1)};
	bool room = starts.bit != NULL;

	if (!room)
		return false;
	ex_fde_each(m, add_start, &starts);
	(void)ex_symbol_each(m, add_symbol, &starts);
	for (uint64_t i = 0; i < s->filesz && room; i++) {
		struct ex_jump jump;

		room = !ex_jump_looks_like(code + i, s->filesz - i,
		    s->vaddr + i, &jump) || !is_start(&starts, jump.target) ||
		    add(table, jump);
	}
	free(starts.bit);
	return room;
}

/* The module's jumps; NULL: out of memory. */
static const struct table *
table_of(struct ex_module *m)
{
	bool is_new;
	struct table *table = ex_module_cache(m, EX_CACHE_JUMPS,
	    sizeof(*table), table_release, &is_new);

	if (table == NULL || !is_new)
		return table;
	for (unsigned i = 0; ex_module_open(m) && i < m->nsegments; i++) {
		const struct ex_segment *s = &m->segment[i];

		if ((s->flags & PF_X) != 0 && !scan(m, s, table))
			table->full = true;
	}
	if (table->n > 0)
		qsort(table->jump, table->n, sizeof(*table->jump), compare);
	return table;
}

/* --- from one function to those that jump to it --- */

struct jump_search {
	struct ex_module *const *in;
	unsigned n;		/* modules */
	int (*fn)(void *, struct ex_module *, uint64_t);
	void *arg;
	struct {
		struct ex_module *module;
		uint64_t start;	/* vaddr of a function */
	} way[WAY_MAX];
	unsigned nway;
};

static int
add_way(struct jump_search *s, struct ex_module *m, uint64_t start)
{
	for (unsigned i = 0; i < s->nway; i++) {
		if (s->way[i].module == m && s->way[i].start == start)
			return 0;
	}
	if (s->nway == WAY_MAX)
		return -E2BIG;
	s->way[s->nway].module = m;
	s->way[s->nway++].start = start;
	return 0;
}

/* The jumps of one module to an address in it, but for those of the function
   there itself. */
static int
jumps_to(struct jump_search *s, struct ex_module *m, uint64_t target)
{
	const struct table *table = table_of(m);
	uint64_t start;
	size_t low;
	int result = 0;

	if (table == NULL || table->full)
		return -E2BIG;
	low = target == 0 ? 0 :
	    EX_ARRAY_UPTO(table->jump, table->n, target, target - 1);
	for (; low < table->n && result == 0 &&
	    table->jump[low].target == target; low++) {
		const struct ex_jump *jump = &table->jump[low];

		if (!ex_symbol_function_start(m, jump->at, &start) ||
		    start == target || !ex_jump_is_code(m, jump))
			continue;
		result = s->fn(s->arg, m, jump->at);
		if (result == 0)
			result = add_way(s, m, start);
	}
	return result;
}

/* Names by which other modules may reach a function, or of a function. */
struct names {
	uint64_t value;
	const struct names *own;	/* its own; NULL: these are */
	const char *name[NAMES_MAX];
	unsigned n;
};

static int
add_own_name(void *arg, const struct ex_symbol *symbol)
{
	struct names *names = arg;

	if (symbol->function && symbol->value == names->value &&
	    names->n < NAMES_MAX)
		names->name[names->n++] = symbol->name;
	return 0;
}

/* Whether a symbol whose code chooses a function for the processor may choose
   this one: of strcpy it is called __strcpy_evex.  Of one without a name it
   may. */
static bool
may_choose(const struct ex_symbol *symbol, const struct names *own)
{
	const size_t len = strlen(symbol->name);

	for (unsigned i = 0; i < own->n; i++) {
		const char *name = own->name[i];

		if (strncmp(name, "__", 2) == 0 &&
		    strncmp(name + 2, symbol->name, len) == 0 &&
		    name[2 + len] == '_')
			return true;
	}
	return own->n == 0;
}

static int
add_name(void *arg, const struct ex_symbol *symbol)
{
	struct names *names = arg;

	if (symbol->global && symbol->function && names->n < NAMES_MAX &&
	    (symbol->value == names->value ||
	    (symbol->indirect && may_choose(symbol, names->own))))
		names->name[names->n++] = symbol->name;
	return 0;
}

struct stubs {
	struct jump_search *search;
	struct ex_module *module;
};

static int
add_stub(void *arg, const struct ex_symbol *symbol)
{
	struct stubs *stubs = arg;

	return jumps_to(stubs->search, stubs->module, symbol->value);
}

/* The jumps to stubs that lead to a function. */
static int
jumps_to_stubs(struct jump_search *s, struct ex_module *of, uint64_t start)
{
	struct names own = {.value = start};
	struct names names = {.value = start, .own = &own};
	int result = 0;

	(void)ex_symbol_each(of, add_own_name, &own);
	(void)ex_symbol_each(of, add_name, &names);
	for (unsigned i = 0; i < names.n; i++) {
		char *stub;

		if (asprintf(&stub, "%s@plt", names.name[i]) < 0)
			return -ENOMEM;
		for (unsigned k = 0; k < s->n && result == 0; k++)
			result = ex_symbol_find_raw(s->in[k], stub, add_stub,
			    &(struct stubs){s, s->in[k]});
		free(stub);
	}
	return result;
}

int
ex_jump_index_each(struct ex_module *const *in, unsigned n,
    struct ex_module *of,
    uint64_t vaddr, int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	struct jump_search s = {.in = in, .n = n, .fn = fn, .arg = arg};
	uint64_t start;
	int result = 0;

	if (!ex_symbol_function_start(of, vaddr, &start))
		return 0;
	(void)add_way(&s, of, start);
	for (unsigned i = 0; i < s.nway && result == 0; i++) {
		result = jumps_to(&s, s.way[i].module, s.way[i].start);
		if (result == 0)
			result = jumps_to_stubs(&s, s.way[i].module,
			    s.way[i].start);
	}
	return result;
}
