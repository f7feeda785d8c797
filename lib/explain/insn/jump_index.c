/*
 * jump_index: which jumps lead to a function.
 *
 * All that looks like a jump to a function's start, at any byte of a module's
 * code, is put into a table once.  What is found there is believed if code that
 * is read from its function's start has that jump.
 *
 * Jumps through pointers are found in the same way, and so are the functions
 * that something may point to.
 */
#include "insn/jump_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn/jump.h"
#include "symbol/fde.h"
#include "module/module_private.h"
#include "module/section.h"
#include "symbol/symbol.h"
#include "base/array.h"

#define WAY_MAX 1024		/* functions that are examined */
#define WAY_ALL_MAX 64	/* of those, if stubs have to be found for each */
#define NAMES_MAX 128		/* of one function */
#define JUMPS_MAX (1U << 22)	/* of one module */
#define SLOT_JUMP 6		/* bytes of a jump through a slot */

/* Sorted by target, then by place. */
struct jump_list {
	struct ex_direct_jump *jump;
	size_t n, cap;
	bool full;		/* there are more */
};

static void
table_release(void *table)
{
	free(((struct jump_list *)table)->jump);
}

static int
compare(const void *a, const void *b)
{
	const struct ex_direct_jump *x = a, *y = b;

	return x->target != y->target ? ex_compare(x->target, y->target) :
	    ex_compare(x->at, y->at);
}

static bool
add(struct jump_list *table, struct ex_direct_jump jump)
{
	if (!EX_ARRAY_ROOM(table, jump, JUMPS_MAX))
		return false;
	table->jump[table->n++] = jump;
	return true;
}

/* The starts of functions in a segment: a bit for each byte. */
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

/* Find the starts.  Returns false if there is no memory. */
static bool
starts_find(struct starts *starts, struct ex_module *m,
    const struct ex_segment *segment)
{
	starts->segment = segment;
	starts->bit = calloc(1, segment->filesz / 8 + 1);
	if (starts->bit == NULL)
		return false;
	ex_fde_each(m, add_start, starts);
	(void)ex_symbol_each(m, add_symbol, starts);
	return true;
}

/* Scan the code of a segment for jumps. */
static bool
scan(struct ex_module *m, const struct ex_segment *s, struct jump_list *table)
{
	const uint8_t *code = m->image.at + s->offset;
	struct starts starts;
	bool room = starts_find(&starts, m, s);

	for (uint64_t i = 0; i < s->filesz && room; i++) {
		struct ex_direct_jump jump;

		room = !ex_jump_looks_like(code + i, s->filesz - i,
		    s->vaddr + i, &jump) || !is_start(&starts, jump.target) ||
		    add(table, jump);
	}
	free(starts.bit);
	return room;
}

/* The jumps of a module, or NULL if there is no memory. */
static const struct jump_list *
table_of(struct ex_module *m)
{
	bool is_new;
	struct jump_list *table = ex_module_cache(m, EX_CACHE_JUMPS,
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

/* --- pointers --- */

struct addresses {
	uint64_t *at;
	size_t n, cap;
};

/* How a module uses pointers to functions. */
struct pointers {
	struct addresses ends;	/* ends of code that looks like a jump
				   through a pointer */
	struct addresses pointed;  /* functions that it may point to, sorted */
	struct addresses exported;	/* functions that others find by
					   name, sorted */
	bool incomplete;	/* there are more */
};

static void
pointers_release(void *data)
{
	struct pointers *p = data;

	free(p->ends.at);
	free(p->pointed.at);
	free(p->exported.at);
}

static void
add_address(struct pointers *p, struct addresses *to, uint64_t vaddr)
{
	if (!EX_ARRAY_ROOM(to, at, JUMPS_MAX))
		p->incomplete = true;
	else
		to->at[to->n++] = vaddr;
}

static int
compare_addresses(const void *a, const void *b)
{
	return ex_compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

static void
sort(struct addresses *a)
{
	if (a->n > 0)
		qsort(a->at, a->n, sizeof(*a->at), compare_addresses);
}

static bool
has(const struct addresses *a, uint64_t vaddr)
{
	return a->n > 0 && bsearch(&vaddr, a->at, a->n, sizeof(*a->at),
	    compare_addresses) != NULL;
}

/* State of the search for pointers into the code of a segment. */
struct pointing {
	struct ex_module *module;
	struct pointers *to;
	struct starts starts;
	bool fixed;		/* the module cannot be relocated */
};

static void
may_point(struct pointing *s, uint64_t vaddr)
{
	if (is_start(&s->starts, vaddr))
		add_address(s->to, &s->to->pointed, vaddr);
}

static void
scan_code(struct pointing *s, const struct ex_segment *in)
{
	const uint8_t *code = s->module->image.at + in->offset;
	uint64_t address[EX_ADDRESSES], end;

	for (uint64_t i = 0; i < in->filesz; i++) {
		unsigned n = ex_jump_addresses(code + i, in->filesz - i,
		    in->vaddr + i, s->fixed, address);

		while (n > 0)
			may_point(s, address[--n]);
		if (in == s->starts.segment && ex_jump_looks_like_pointer(
		    code + i, in->filesz - i, in->vaddr + i, &end))
			add_address(s->to, &s->to->ends, end);
	}
}

static void
scan_data(struct pointing *s, const struct ex_segment *in)
{
	const uint8_t *data = s->module->image.at + in->offset;
	uint64_t word;

	for (uint64_t i = (0 - in->vaddr) % sizeof(word);
	    i + sizeof(word) <= in->filesz; i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		may_point(s, word);
	}
}

/* Relocations may contain addresses that are not in the data. */
static void
scan_relocations(struct pointing *s, Elf *elf)
{
	uint64_t budget = s->module->image.size;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;
	GElf_Rela rela;

	while ((scn = ex_section_loaded(elf, scn, SHT_RELA, &sh, &name,
	    &budget)) != NULL) {
		Elf_Data *data = elf_getdata(scn, NULL);

		for (int i = 0; data != NULL &&
		    gelf_getrela(data, i, &rela) != NULL; i++)
			may_point(s, (uint64_t)rela.r_addend);
	}
}

static void
scan_exported(struct pointing *s, Elf *elf)
{
	uint64_t budget = s->module->image.size;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr sh;
	GElf_Sym sym;

	while ((scn = ex_section_loaded(elf, scn, SHT_DYNSYM, &sh, &name,
	    &budget)) != NULL) {
		Elf_Data *data = elf_getdata(scn, NULL);

		for (int i = 0; data != NULL &&
		    gelf_getsym(data, i, &sym) != NULL; i++)
			if (sym.st_shndx != SHN_UNDEF &&
			    is_start(&s->starts, sym.st_value))
				add_address(s->to, &s->to->exported,
				    sym.st_value);
	}
}

/* Find everything that points into a segment. */
static void
scan_pointers(struct ex_module *m, const struct ex_segment *segment,
    struct pointers *to)
{
	struct pointing s = {.module = m, .to = to};
	Elf *elf = ex_module_elf(m);
	GElf_Ehdr eh;

	if (elf == NULL || gelf_getehdr(elf, &eh) == NULL ||
	    !starts_find(&s.starts, m, segment)) {
		to->incomplete = true;
		return;
	}
	s.fixed = eh.e_type == ET_EXEC;
	for (unsigned i = 0; i < m->nsegments; i++) {
		if ((m->segment[i].flags & PF_X) != 0)
			scan_code(&s, &m->segment[i]);
		scan_data(&s, &m->segment[i]);
	}
	scan_relocations(&s, elf);
	scan_exported(&s, elf);
	free(s.starts.bit);
}

/* The pointers of a module, or NULL if there is no memory. */
static const struct pointers *
pointers_of(struct ex_module *m)
{
	bool is_new;
	struct pointers *p = ex_module_cache(m, EX_CACHE_POINTERS, sizeof(*p),
	    pointers_release, &is_new);

	if (p == NULL || !is_new)
		return p;
	for (unsigned i = 0; ex_module_open(m) && i < m->nsegments; i++)
		if ((m->segment[i].flags & PF_X) != 0)
			scan_pointers(m, &m->segment[i], p);
	sort(&p->pointed);
	sort(&p->exported);
	return p;
}

static bool
is_exported(struct ex_module *m, uint64_t start)
{
	const struct pointers *p = pointers_of(m);

	return p == NULL || p->incomplete || has(&p->exported, start);
}

/* Whether a function may be called through a pointer. */
static bool
is_pointed(struct ex_module *m, uint64_t start)
{
	const struct pointers *p = pointers_of(m);

	return is_exported(m, start) || !ex_jump_sees_addresses(m) ||
	    has(&p->pointed, start);
}

/* --- from one function to those that jump to it --- */

struct jump_search {
	struct ex_module *const *in;
	unsigned n;		/* modules */
	int (*fn)(void *, struct ex_module *, uint64_t);
	void *arg;
	bool within;		/* only by jumps within a module */
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
	if (s->nway == (s->within ? WAY_MAX : WAY_ALL_MAX))
		return -E2BIG;
	s->way[s->nway].module = m;
	s->way[s->nway++].start = start;
	return 0;
}

/* Whether code is a stub's.  Its direct jump leads to the first stub, which has
   the dynamic linker find the function that it is for. */
static bool
is_stub(struct ex_module *m, uint64_t vaddr)
{
	struct ex_symbol symbol;
	size_t len;

	return ex_symbol_at(m, vaddr, &symbol) &&
	    (len = strlen(symbol.name)) > 4 &&
	    strcmp(symbol.name + len - 4, "@plt") == 0;
}

/* The jumps of one module to an address in it, but for those of the function
   there itself. */
static int
jumps_to(struct jump_search *s, struct ex_module *m, uint64_t target)
{
	const struct jump_list *table = table_of(m);
	uint64_t start;
	size_t low;
	int result = 0;

	if (table == NULL || table->full)
		return -E2BIG;
	low = target == 0 ? 0 :
	    EX_ARRAY_UPTO(table->jump, table->n, target, target - 1);
	for (; low < table->n && result == 0 &&
	    table->jump[low].target == target; low++) {
		const struct ex_direct_jump *jump = &table->jump[low];

		if (!ex_symbol_function_start(m, jump->at, &start) ||
		    start == target || is_stub(m, jump->at) ||
		    !ex_jump_is_code(m, jump))
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

static bool
is_among(const struct names *names, const char *name)
{
	for (unsigned i = 0; i < names->n; i++)
		if (strcmp(names->name[i], name) == 0)
			return true;
	return false;
}

/* The jumps of one module that do without a stub. */
static int
jumps_through_slots(struct jump_search *s, struct ex_module *m,
    const struct names *names)
{
	const struct pointers *p = pointers_of(m);
	const char *name;
	uint64_t start;
	int result = 0;

	if (p == NULL || p->incomplete)
		return -E2BIG;
	for (size_t i = 0; i < p->ends.n && result == 0; i++) {
		const uint64_t end = p->ends.at[i];

		name = ex_jump_slot(m, end);
		if (name == NULL || !is_among(names, name) ||
		    is_stub(m, end - SLOT_JUMP) ||
		    !ex_symbol_function_start(m, end - 1, &start) ||
		    !ex_jump_is_code(m, &(struct ex_direct_jump){
		    .at = end - SLOT_JUMP, .end = end}))
			continue;
		result = s->fn(s->arg, m, end - SLOT_JUMP);
		if (result == 0)
			result = add_way(s, m, start);
	}
	return result;
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
	for (unsigned k = 0; k < s->n && result == 0 && names.n > 0; k++)
		result = jumps_through_slots(s, s->in[k], &names);
	return result;
}

/* Go back from a function. */
static int
go_back(struct jump_search *s, struct ex_module *of, uint64_t start)
{
	int result = 0;

	s->nway = 0;
	(void)add_way(s, of, start);
	for (unsigned i = 0; i < s->nway && result == 0; i++) {
		result = jumps_to(s, s->way[i].module, s->way[i].start);
		if (result == 0 && !s->within)
			result = jumps_to_stubs(s, s->way[i].module,
			    s->way[i].start);
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

	return !ex_symbol_function_start(of, vaddr, &start) ? 0 :
	    go_back(&s, of, start);
}

/* --- from jumps that may lead anywhere --- */

/* A search that goes all the way. */
struct asking {
	int (*fn)(void *, struct ex_module *, uint64_t);
	void *arg;
	bool found;		/* fn's result was not zero once */
};

static int
ask(void *arg, struct ex_module *m, uint64_t jump)
{
	struct asking *asking = arg;

	asking->found = asking->found || asking->fn(asking->arg, m, jump) != 0;
	return 0;
}

/* The ways to one function. */
struct ways {
	uint64_t start;
	bool found, pointed;	/* fn says so; something points to one of the
				   functions */
};

static void
find_ways(struct jump_search *s, struct ex_module *m, uint64_t start,
    struct ways *ways)
{
	struct asking *asking = s->arg;
	bool all;

	asking->found = false;
	all = go_back(s, m, start) == 0;
	*ways = (struct ways){start, asking->found || !all, !all};
	for (unsigned i = 0; i < s->nway && !ways->pointed; i++)
		ways->pointed = is_pointed(s->way[i].module, s->way[i].start);
}

/* Whether a jump that ends there may lead anywhere, by such a way.  To read the
   code from its function's start takes longest, and is done last. */
static bool
may_lead(struct jump_search *s, struct ex_module *m, uint64_t end,
    struct ways *ways)
{
	struct asking *asking = s->arg;
	uint64_t start, jump;

	if (!ex_symbol_function_start(m, end - 1, &start))
		return false;
	if (start != ways->start)
		find_ways(s, m, start, ways);
	asking->found = ways->found;
	return ways->pointed && ask(asking, m, end - 1) == 0 &&
	    asking->found && ex_jump_leads_anywhere(m, start, end, &jump);
}

bool
ex_jump_index_anywhere(struct ex_module *const *in, unsigned n,
    int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	struct asking asking = {.fn = fn, .arg = arg};
	struct jump_search s = {.in = in, .n = n, .fn = ask, .arg = &asking,
	    .within = true};

	for (unsigned k = 0; k < n; k++) {
		const struct pointers *p = pointers_of(in[k]);
		struct ways ways = {.start = UINT64_MAX};

		if (p == NULL || p->incomplete)
			return true;
		for (size_t i = 0; i < p->ends.n; i++)
			if (may_lead(&s, in[k], p->ends.at[i], &ways))
				return true;
	}
	return false;
}
