/* tail_graph_x86_64: which functions can be reached from one by jumps. */
#include "insn/tail_graph.h"

#include <string.h>

#include "insn/flow.h"
#include "insn/jump_table.h"
#include "insn/sweep.h"
#include "module/module_private.h"
#include "module/plt.h"
#include "symbol/fde.h"
#include "symbol/line.h"
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

struct ex_decoded *
ex_tail_decode(struct ex_tail_graph *g, const struct ex_tail_place *place)
{
	return ex_sweep_at(place->module, &g->decoder, place->vaddr);
}

/* --- what stubs lead to --- */

struct named {
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
	struct named *named = arg;
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
	struct named named;
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

/* Step over the mark of a jump's target. */
static struct ex_decoded *
decode_entry(struct ex_tail_graph *g, struct ex_tail_place *place)
{
	struct ex_decoded *code = ex_tail_decode(g, place);

	if (code != NULL && (code->insn.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
	    code->insn.mnemonic == ZYDIS_MNEMONIC_ENDBR32)) {
		place->vaddr += code->insn.length;
		code = ex_tail_decode(g, place);
	}
	return code;
}

/* Whether a slot's contents are where lazy binding begins: push $n; jmp. */
static bool
is_unbound(struct ex_tail_graph *g, const struct ex_tail_place *place)
{
	struct ex_tail_place at = *place;
	const struct ex_decoded *code = decode_entry(g, &at);

	return code != NULL && code->insn.mnemonic == ZYDIS_MNEMONIC_PUSH &&
	    code->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

bool
ex_tail_slot_target(struct ex_tail_graph *g, const struct ex_tail_place *slot,
    const char *name, struct ex_tail_place *out)
{
	uint64_t value = 0;

	if (ex_process_read(g->process, ex_tail_address_of(slot), &value,
	    ex_module_is_narrow(slot->module) ? 4 : 8) &&
	    ex_tail_place_at(g->process, value, out) && !is_unbound(g, out))
		return true;
	return *name != '\0' && function_called(g->process, name, out);
}

/* Whether code is a stub's, which has the table's address in ebx. */
static bool
is_stub(const struct ex_tail_place *place)
{
	struct ex_symbol symbol;
	size_t len;

	return ex_symbol_at(place->module, place->vaddr, &symbol) &&
	    (len = strlen(symbol.name)) > 4 &&
	    strcmp(symbol.name + len - 4, "@plt") == 0;
}

/* Of 32-bit code: an address, or what ebx has in a stub and an offset. */
static bool
narrow_slot(const ZydisDecodedOperand *op, const struct ex_tail_place *at,
    uint64_t *vaddr)
{
	*vaddr = 0;
	if (op->mem.base != ZYDIS_REGISTER_NONE &&
	    (op->mem.base != ZYDIS_REGISTER_EBX || !is_stub(at) ||
	    !ex_plt_base(at->module, vaddr)))
		return false;
	*vaddr = (uint32_t)(*vaddr + (uint64_t)op->mem.disp.value);
	return true;
}

const char *
ex_tail_slot_of(const struct ex_decoded *code, const struct ex_tail_place *at,
    struct ex_tail_place *slot)
{
	const ZydisDecodedOperand *op = &code->op[0];

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    op->mem.index != ZYDIS_REGISTER_NONE)
		return NULL;
	*slot = *at;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		slot->vaddr += code->insn.length + (uint64_t)op->mem.disp.value;
	else if (!ex_module_is_narrow(at->module) ||
	    !narrow_slot(op, at, &slot->vaddr))
		return NULL;
	return ex_plt_slot(slot->module, slot->vaddr);
}

bool
ex_tail_follow_stub(struct ex_tail_graph *g, struct ex_tail_place *place)
{
	struct ex_tail_place at = *place, slot;
	const struct ex_decoded *code = decode_entry(g, &at);
	const char *name;

	if (code == NULL ||
	    code->insn.meta.category != ZYDIS_CATEGORY_UNCOND_BR ||
	    (name = ex_tail_slot_of(code, &at, &slot)) == NULL)
		return true;
	return ex_tail_slot_target(g, &slot, name, place);
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

static void
add_edge(struct ex_tail_graph *g, int from, int to, uint64_t jump)
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

/* A node's jump leads to a place. */
static void
add_jump(struct ex_tail_graph *g, int from, struct ex_tail_place to,
    uint64_t jump)
{
	int node;

	if (!ex_tail_follow_stub(g, &to)) {
		add_edge(g, from, ANYWHERE, jump);
		return;
	}
	node = ex_tail_node_at(g, &to);
	if (node >= 0 && node != from && !is_entry(&g->node[node], &to))
		join(g, from, node);
	add_edge(g, from, node, jump);
}

/* A jump through a register or memory. */
static void
add_indirect(struct ex_tail_graph *g, int from, const struct ex_tail_place *at,
    const struct ex_decoded *code)
{
	struct ex_tail_place slot, to;
	const char *name = ex_tail_slot_of(code, at, &slot);

	if (name != NULL && ex_tail_slot_target(g, &slot, name, &to)) {
		add_jump(g, from, to, at->vaddr);
		return;
	}
	switch (ex_line_jump(at->module, at->vaddr, code->insn.length)) {
	case EX_JUMP_INSIDE:
		return;
	case EX_JUMP_CALL:
		break;
	case EX_JUMP_UNKNOWN:
		if (ex_jump_is_table(at->module, &g->decoder, at->vaddr,
		    code))
			return;
		break;
	}
	add_edge(g, from, ANYWHERE, at->vaddr);
}

static void
add_exit(struct ex_tail_graph *g, int from, const struct ex_tail_place *at)
{
	const struct ex_decoded *code = ex_tail_decode(g, at);
	struct ex_tail_place to = *at;

	if (code == NULL)
		return;
	if (!code->insn.raw.imm[0].is_relative) {
		add_indirect(g, from, at, code);
		return;
	}
	to.vaddr += code->insn.length + code->insn.raw.imm[0].value.u;
	add_jump(g, from, to, at->vaddr);
}

void
ex_tail_explore(struct ex_tail_graph *g, int from)
{
	const struct ex_tail_node *node = &g->node[from];
	struct ex_tail_place at = node->entry;
	const uint64_t start = node->start, end = node->end;
	const uint32_t *offsets;
	struct ex_flow *flow;
	size_t n;

	g->code += end - start;
	flow = g->code > CODE_MAX ? NULL :
	    ex_flow_new(at.module, &g->decoder, start, end);
	if (flow == NULL) {
		g->full = true;
		return;
	}
	n = ex_flow_exits(flow, &offsets);
	for (size_t i = 0; i < n && !g->full; i++) {
		at.vaddr = start + offsets[i];
		add_exit(g, from, &at);
	}
	at.vaddr = end;
	if (ex_flow_falls(flow))
		add_jump(g, from, at, 0);
	ex_flow_free(flow);
}
