/* tail_graph: which functions can be reached from one by jumps. */
#include "insn/tail_graph.h"

#include <string.h>

#include "module/module_private.h"
#include "space/space.h"
#include "symbol/fde.h"
#include "symbol/symbol.h"

/* --- places --- */

bool
ex_tail_place_at(struct ex_process *process, uint64_t addr,
    struct ex_tail_place *out)
{
	out->module = ex_process_module(process, addr, &out->vaddr);
	out->base = addr - out->vaddr;
	return out->module != NULL;
}

uint64_t
ex_tail_address_of(const struct ex_tail_place *place)
{
	return place->base + place->vaddr;
}

bool
ex_tail_extent_of(const struct ex_tail_place *place, uint64_t *start,
    uint64_t *end)
{
	const struct ex_segment *segment;
	struct ex_function function;

	if (!ex_fde_find(place->module, place->vaddr, start, end)) {
		if (!ex_symbol_function(place->module, place->vaddr,
		    &function) || !function.sized)
			return false;
		*start = function.start;
		*end = function.end;
	}
	segment = ex_module_segment(place->module, place->vaddr);
	if (segment != NULL && *end > segment->vaddr + segment->memsz)
		*end = segment->vaddr + segment->memsz;
	return segment != NULL;
}

/* The end of the code that is to be looked at from a place on: unwind entries
   end at the latest where the next begins, symbols where they do. */
static uint64_t
end_of(const struct ex_tail_place *place, uint64_t start, uint64_t end)
{
	struct ex_symbol symbol;

	if (!ex_symbol_at(place->module, start, &symbol) || symbol.object ||
	    symbol.value != start ||
	    place->vaddr - start >= symbol.size || symbol.size >= end - start)
		return end;
	return start + symbol.size;
}

/* --- what stubs lead to --- */

struct named_function {
	struct ex_module *module;
	uint64_t base;
	struct ex_tail_place place;
	unsigned n;		/* functions with the name, at different
				   places */
	bool chosen;		/* one of them is chosen at run time */
};

static int
add_named(void *arg, const struct ex_symbol *symbol)
{
	struct named_function *named = arg;
	const struct ex_tail_place place = {named->module, symbol->value,
	    named->base};

	if (!symbol->function)
		return 0;
	named->chosen |= symbol->indirect;
	if (named->n == 0 ||
	    ex_tail_address_of(&place) != ex_tail_address_of(&named->place))
		named->n++;
	named->place = place;
	return 0;
}

struct name_search {
	const char *name;
	struct named_function named;
};

static int
search_module(void *arg, struct ex_module *module, uint64_t base)
{
	struct name_search *search = arg;

	search->named.module = module;
	search->named.base = base;
	return ex_symbol_find_raw(module, search->name, add_named,
	    &search->named);
}

/* The only function of the process with a name. */
static bool
function_called(struct ex_process *process, const char *name,
    struct ex_tail_place *out)
{
	struct name_search search = {.name = name};

	(void)ex_process_modules(process, search_module, &search);
	*out = search.named.place;
	return search.named.n == 1 && !search.named.chosen;
}

bool
ex_tail_slot_target(struct ex_tail_graph *g, const struct ex_tail_place *slot,
    const char *name, struct ex_tail_place *out)
{
	uint64_t value = 0;

	if (ex_process_read(g->process, ex_tail_address_of(slot), &value,
	    ex_module_is_narrow(slot->module) ? 4 : 8) &&
	    ex_tail_place_at(g->process, value, out) &&
	    !ex_tail_is_unbound(out))
		return true;
	return *name != '\0' && function_called(g->process, name, out);
}

/* --- the graph --- */

int
ex_tail_whole_of(const struct ex_tail_graph *g, int node)
{
	while (g->node[node].part_of != node)
		node = g->node[node].part_of;
	return node;
}

static void
join(struct ex_tail_graph *g, int a, int b)
{
	a = ex_tail_whole_of(g, a);
	b = ex_tail_whole_of(g, b);
	if (a < b)
		g->node[b].part_of = a;
	else
		g->node[a].part_of = b;
}

/* The name without what is appended to it for a part. */
static bool
name_of(const struct ex_tail_place *place, struct ex_symbol *symbol,
    size_t *len)
{
	const char *end;

	if (!ex_symbol_at(place->module, place->vaddr, symbol) ||
	    symbol->object)
		return false;
	end = strstr(symbol->name, ".cold");
	*len = end != NULL ? (size_t)(end - symbol->name) :
	    strlen(symbol->name);
	return true;
}

bool
ex_tail_are_parts(const struct ex_tail_place *a, const struct ex_tail_place *b)
{
	struct ex_symbol x, y;
	size_t nx, ny;

	return a->module == b->module && name_of(a, &x, &nx) &&
	    name_of(b, &y, &ny) && nx == ny &&
	    (x.name[nx] != '\0') != (y.name[ny] != '\0') &&
	    strncmp(x.name, y.name, nx) == 0;
}

int
ex_tail_node_at(struct ex_tail_graph *g, const struct ex_tail_place *place)
{
	struct ex_tail_node *node = &g->node[g->nnodes];

	for (int i = 0; i < g->nnodes; i++) {
		const struct ex_tail_node *there = &g->node[i];

		if (there->entry.module == place->module &&
		    there->entry.base == place->base &&
		    place->vaddr >= there->start && place->vaddr < there->end)
			return i;
	}
	if (g->nnodes == NODES_MAX) {
		g->full = true;
		return ANYWHERE;
	}
	*node = (struct ex_tail_node){.entry = *place, .part_of = g->nnodes};
	if (!ex_tail_extent_of(place, &node->start, &node->end))
		return ANYWHERE;
	node->end = end_of(place, node->start, node->end);
	for (int i = 0; i < g->nnodes; i++) {
		if (ex_tail_are_parts(&g->node[i].entry, place))
			join(g, i, g->nnodes);
	}
	return g->nnodes++;
}

void
ex_tail_add_edge(struct ex_tail_graph *g, int from, int to, uint64_t jump)
{
	if (g->nedges == EDGES_MAX)
		g->full = true;
	else
		g->edge[g->nedges++] = (struct ex_tail_edge){from, to, jump};
}

/* Whether code is entered at a place, and not come back to in its middle. */
static bool
is_entry(const struct ex_tail_node *node, const struct ex_tail_place *place)
{
	struct ex_symbol symbol;

	return place->vaddr == node->start ||
	    (ex_symbol_at(place->module, place->vaddr, &symbol) &&
	    symbol.value == place->vaddr);
}

void
ex_tail_add_jump(struct ex_tail_graph *g, int from, struct ex_tail_place to,
    uint64_t jump)
{
	int node;

	if (!ex_tail_follow_stub(g, &to)) {
		ex_tail_add_edge(g, from, ANYWHERE, jump);
		return;
	}
	node = ex_tail_node_at(g, &to);
	if (node >= 0 && node != from && !is_entry(&g->node[node], &to))
		join(g, from, node);
	ex_tail_add_edge(g, from, node, jump);
}

void
ex_tail_explore(struct ex_tail_graph *g, int from)
{
	const struct ex_tail_node *node = &g->node[from];

	g->code += node->end - node->start;
	if (g->code > CODE_MAX || !ex_tail_add_exits(g, from))
		g->full = true;
}
