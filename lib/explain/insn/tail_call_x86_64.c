/*
 * tail_call_x86_64: the callers that ended in a jump.
 *
 * Overview: the function that was called, and all that it may lead to by jumps,
 * are nodes of a graph; each jump out of a function is an edge.  A jump through
 * a register leads anywhere, unless it is known to stay in its function.
 *
 *	called --jump--> a --jump--> running
 *	   \--jump--> b --jump through a register--> anywhere
 *
 * Edges that cannot end in the running function are left out.  From the called
 * function on, each node with one edge left is certain, and so is its jump.
 * Where there are several, what follows is not known: a gap.  A jump through a
 * register that is the only way is taken as a call through one is: it led to
 * the running function.
 *
 * Functions that jump into each other's middle are parts of one, such as those
 * that compilers move away because they are seldom needed.
 */
#include "insn/tail_call.h"

#include <stdlib.h>
#include <string.h>

#include "insn/flow.h"
#include "insn/jump_table.h"
#include "insn/sweep.h"
#include "debug/fde.h"
#include "debug/line.h"
#include "module/module_private.h"
#include "module/plt.h"
#include "debug/symbol.h"
#include "unwind/regs.h"

#define NODES_MAX 64
#define EDGES_MAX 512
#define CODE_MAX (1U << 18)	/* bytes of all nodes that are looked at */
#define ANSWERS_MAX 4096	/* kept */

enum { ANYWHERE = -1 };

/* A place in the code of a process. */
struct place {
	struct ex_module *module;
	uint64_t vaddr;
	uint64_t base;		/* of the module: vaddr + base is the address */
};

/* A function. */
struct node {
	struct place entry;	/* where it was first entered */
	uint64_t start, end;	/* its vaddrs */
	int part_of;		/* a node; itself: it is no part */
	bool leads;		/* to the running function, or maybe */
	bool passed;
};

/* A jump. */
struct edge {
	int from, to;		/* nodes; to: or ANYWHERE */
	uint64_t jump;		/* its vaddr; 0: code goes on without one */
};

struct graph {
	struct ex_process *process;
	ZydisDecoder decoder;
	struct node node[NODES_MAX];	/* the first two: called, running */
	int nnodes;
	struct edge edge[EDGES_MAX];
	unsigned nedges;
	uint64_t code;		/* bytes looked at */
	bool full;		/* there is more than was looked at */
};

enum { CALLED, RUNNING };

/* An answer of before. */
struct kept_tail {
	/* the question */
	const struct ex_process *process;
	uint64_t generation, called, running;
	bool missing;		/* a function is missing */
	struct ex_tail tail;
};

/* --- places --- */

static bool
place_at(struct ex_process *process, uint64_t addr, struct place *out)
{
	out->module = ex_process_module(process, addr, &out->vaddr);
	out->base = addr - out->vaddr;
	return out->module != NULL;
}

static uint64_t
address_of(const struct place *place)
{
	return place->base + place->vaddr;
}

/* The code around a place that belongs together: an unwind entry's, since
   assembly may have several symbols in one; else a function's.  False: it is
   not known how far it goes. */
static bool
extent_of(const struct place *place, uint64_t *start, uint64_t *end)
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
end_of(const struct place *place, uint64_t start, uint64_t end)
{
	struct ex_symbol symbol;

	if (!ex_symbol_at(place->module, start, &symbol) || symbol.object ||
	    symbol.value != start ||
	    place->vaddr - start >= symbol.size || symbol.size >= end - start)
		return end;
	return start + symbol.size;
}

static struct ex_decoded *
decode(struct graph *g, const struct place *place)
{
	return ex_sweep_at(place->module, &g->decoder, place->vaddr);
}

/* --- what stubs lead to --- */

struct named {
	struct ex_module *module;
	uint64_t base;
	struct place place;
	unsigned n;		/* functions with the name, at different
				   places */
	bool chosen;		/* one of them is chosen at run time */
};

static int
add_named(void *arg, const struct ex_symbol *symbol)
{
	struct named *named = arg;
	const struct place place = {named->module, symbol->value, named->base};

	if (!symbol->function)
		return 0;
	named->chosen |= symbol->indirect;
	if (named->n == 0 || address_of(&place) != address_of(&named->place))
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
    struct place *out)
{
	struct name_search search = {.name = name};

	(void)ex_process_modules(process, search_module, &search);
	*out = search.named.place;
	return search.named.n == 1 && !search.named.chosen;
}

/* Step over the mark of a jump's target. */
static struct ex_decoded *
decode_entry(struct graph *g, struct place *place)
{
	struct ex_decoded *code = decode(g, place);

	if (code != NULL && (code->insn.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
	    code->insn.mnemonic == ZYDIS_MNEMONIC_ENDBR32)) {
		place->vaddr += code->insn.length;
		code = decode(g, place);
	}
	return code;
}

/* Whether a slot's contents are where lazy binding begins: push $n; jmp. */
static bool
is_unbound(struct graph *g, const struct place *place)
{
	struct place at = *place;
	const struct ex_decoded *code = decode_entry(g, &at);

	return code != NULL && code->insn.mnemonic == ZYDIS_MNEMONIC_PUSH &&
	    code->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* Where a slot of the global offset table leads: as the process has it, else by
   its name. */
static bool
slot_target(struct graph *g, const struct place *slot, const char *name,
    struct place *out)
{
	uint64_t value = 0;

	if (ex_process_read(g->process, address_of(slot), &value,
	    ex_module_is_narrow(slot->module) ? 4 : 8) &&
	    place_at(g->process, value, out) && !is_unbound(g, out))
		return true;
	return *name != '\0' && function_called(g->process, name, out);
}

/* Whether code is a stub's, which has the table's address in ebx. */
static bool
is_stub(const struct place *place)
{
	struct ex_symbol symbol;
	size_t len;

	return ex_symbol_at(place->module, place->vaddr, &symbol) &&
	    (len = strlen(symbol.name)) > 4 &&
	    strcmp(symbol.name + len - 4, "@plt") == 0;
}

/* Of 32-bit code: an address, or what ebx has in a stub and an offset. */
static bool
narrow_slot(const ZydisDecodedOperand *op, const struct place *at,
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

/* The slot that an instruction takes its target from: op *slot(%rip), or in
   32-bit code op *slot, op *offset(%ebx).  NULL: it is none, or the program may
   change what is there. */
static const char *
slot_of(const struct ex_decoded *code, const struct place *at,
    struct place *slot)
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

/* A stub becomes what it leads to.  False: that is not known. */
static bool
follow_stub(struct graph *g, struct place *place)
{
	struct place at = *place, slot;
	const struct ex_decoded *code = decode_entry(g, &at);
	const char *name;

	if (code == NULL ||
	    code->insn.meta.category != ZYDIS_CATEGORY_UNCOND_BR ||
	    (name = slot_of(code, &at, &slot)) == NULL)
		return true;
	return slot_target(g, &slot, name, place);
}

/* --- the graph --- */

static int
whole_of(const struct graph *g, int node)
{
	while (g->node[node].part_of != node)
		node = g->node[node].part_of;
	return node;
}

static void
join(struct graph *g, int a, int b)
{
	a = whole_of(g, a);
	b = whole_of(g, b);
	if (a < b)
		g->node[b].part_of = a;
	else
		g->node[a].part_of = b;
}

/* The name without what is appended to it for a part. */
static bool
name_of(const struct place *place, struct ex_symbol *symbol, size_t *len)
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

/* Whether two are parts of one function, by their names. */
static bool
are_parts(const struct place *a, const struct place *b)
{
	struct ex_symbol x, y;
	size_t nx, ny;

	return a->module == b->module && name_of(a, &x, &nx) &&
	    name_of(b, &y, &ny) && nx == ny &&
	    (x.name[nx] != '\0') != (y.name[ny] != '\0') &&
	    strncmp(x.name, y.name, nx) == 0;
}

/* The node that a place belongs to, maybe a new one; ANYWHERE: there is no
   room, or it is not known how far its function goes. */
static int
node_at(struct graph *g, const struct place *place)
{
	struct node *node = &g->node[g->nnodes];

	for (int i = 0; i < g->nnodes; i++) {
		const struct node *there = &g->node[i];

		if (there->entry.module == place->module &&
		    there->entry.base == place->base &&
		    place->vaddr >= there->start && place->vaddr < there->end)
			return i;
	}
	if (g->nnodes == NODES_MAX) {
		g->full = true;
		return ANYWHERE;
	}
	*node = (struct node){.entry = *place, .part_of = g->nnodes};
	if (!extent_of(place, &node->start, &node->end))
		return ANYWHERE;
	node->end = end_of(place, node->start, node->end);
	for (int i = 0; i < g->nnodes; i++) {
		if (are_parts(&g->node[i].entry, place))
			join(g, i, g->nnodes);
	}
	return g->nnodes++;
}

static void
add_edge(struct graph *g, int from, int to, uint64_t jump)
{
	if (g->nedges == EDGES_MAX)
		g->full = true;
	else
		g->edge[g->nedges++] = (struct edge){from, to, jump};
}

/* Whether code is entered at a place, and not come back to in its middle. */
static bool
is_entry(const struct node *node, const struct place *place)
{
	struct ex_symbol symbol;

	return place->vaddr == node->start ||
	    (ex_symbol_at(place->module, place->vaddr, &symbol) &&
	    symbol.value == place->vaddr);
}

/* A node's jump leads to a place. */
static void
add_jump(struct graph *g, int from, struct place to, uint64_t jump)
{
	int node;

	if (!follow_stub(g, &to)) {
		add_edge(g, from, ANYWHERE, jump);
		return;
	}
	node = node_at(g, &to);
	if (node >= 0 && node != from && !is_entry(&g->node[node], &to))
		join(g, from, node);
	add_edge(g, from, node, jump);
}

/* A jump through a register or memory. */
static void
add_indirect(struct graph *g, int from, const struct place *at,
    const struct ex_decoded *code)
{
	struct place slot, to;
	const char *name = slot_of(code, at, &slot);

	if (name != NULL && slot_target(g, &slot, name, &to)) {
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
add_exit(struct graph *g, int from, const struct place *at)
{
	const struct ex_decoded *code = decode(g, at);
	struct place to = *at;

	if (code == NULL)
		return;
	if (!code->insn.raw.imm[0].is_relative) {
		add_indirect(g, from, at, code);
		return;
	}
	to.vaddr += code->insn.length + code->insn.raw.imm[0].value.u;
	add_jump(g, from, to, at->vaddr);
}

/* Add the jumps out of a node. */
static void
explore(struct graph *g, int from)
{
	const struct node *node = &g->node[from];
	struct place at = node->entry;
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

/* --- the way --- */

/* Whether an edge may lead to the running function. */
static bool
leads(const struct graph *g, const struct edge *edge)
{
	return edge->to == ANYWHERE || g->node[whole_of(g, edge->to)].leads;
}

/* The parts of one function count as one, and its jumps to itself do not. */
static void
simplify(struct graph *g)
{
	unsigned n = 0;
	bool more = true;

	for (unsigned i = 0; i < g->nedges; i++) {
		struct edge edge = g->edge[i];

		edge.from = whole_of(g, edge.from);
		if (edge.to != ANYWHERE)
			edge.to = whole_of(g, edge.to);
		if (edge.from != edge.to && edge.from != whole_of(g, RUNNING))
			g->edge[n++] = edge;
	}
	g->nedges = n;
	g->node[whole_of(g, RUNNING)].leads = true;
	while (more) {
		more = false;
		for (unsigned i = 0; i < n; i++) {
			struct node *from = &g->node[g->edge[i].from];

			if (!from->leads && leads(g, &g->edge[i]))
				more = from->leads = true;
		}
	}
}

/* Whether something may be inlined at one of a node's jumps to another. */
static bool
is_inlined(const struct graph *g, int from, int to)
{
	struct ex_line line[EX_LINES_MAX];
	unsigned n;

	for (unsigned i = 0; i < g->nedges; i++) {
		const struct edge *edge = &g->edge[i];

		if (edge->from != from || (edge->to != to &&
		    edge->to != ANYWHERE))
			continue;
		n = edge->jump == 0 ? 0 : ex_lines_at(
		    g->node[from].entry.module, edge->jump, line);
		if (n > 1 || (n == 1 && line[0].partial))
			return true;
	}
	return false;
}

/* Where a node's jumps lead, if they all lead to one place: *jump is the only
   one, or 0.  If all may lead anywhere, they are taken as calls are that may:
   the running function is where they led.  False: they lead to several, and
   *jump as before. */
static bool
next_node(const struct graph *g, int from, int *to, uint64_t *jump,
    bool *pointer)
{
	unsigned n = 0;
	bool same = true;

	*jump = 0;
	for (unsigned i = 0; i < g->nedges; i++) {
		const struct edge *edge = &g->edge[i];

		if (edge->from != from || !leads(g, edge))
			continue;
		same = same && (n == 0 || edge->to == *to);
		*to = edge->to;
		*jump = n++ == 0 ? edge->jump : 0;
	}
	if (same && n > 0 && *to == ANYWHERE) {
		*to = whole_of(g, RUNNING);
		*pointer = true;
	}
	return same && n > 0;
}

/* Go from the called to the running function, as far as the way is certain. */
static void
walk(struct graph *g, struct ex_tail *tail)
{
	int at = whole_of(g, CALLED), to = at;
	uint64_t jump;

	while (at != whole_of(g, RUNNING) && !tail->gap) {
		struct node *node = &g->node[at];
		struct ex_tail_caller *caller = &tail->caller[tail->n];

		if (tail->n == EX_TAIL_MAX || node->passed) {
			tail->gap = true;
			break;
		}
		node->passed = true;
		tail->gap = g->full || !next_node(g, at, &to, &jump,
		    &tail->pointer);
		if (g->full)
			jump = 0;
		if (!tail->gap && jump == 0)
			tail->gap = is_inlined(g, at, to);
		caller->entry = address_of(&node->entry);
		caller->jump = jump != 0 ? node->entry.base + jump : 0;
		tail->n++;
		at = to;
	}
}

/* What was found from the outside in, the other way round. */
static void
reverse(struct ex_tail *tail)
{
	for (unsigned i = 0; i < tail->n / 2; i++) {
		struct ex_tail_caller other = tail->caller[i];

		tail->caller[i] = tail->caller[tail->n - 1 - i];
		tail->caller[tail->n - 1 - i] = other;
	}
}

/* Find the functions that are missing between two different ones. False: none,
   or how one led to the other cannot be seen. */
static bool
find(struct graph *g, const struct place *called, const struct place *running,
    struct ex_tail *tail)
{
	memset(tail, 0, sizeof(*tail));
	if (node_at(g, called) != CALLED || node_at(g, running) != RUNNING)
		return false;
	for (int i = 0; i < g->nnodes && !g->full; i++) {
		if (i != RUNNING)
			explore(g, i);
	}
	simplify(g);
	if (whole_of(g, CALLED) == whole_of(g, RUNNING) ||
	    !(g->full || g->node[whole_of(g, CALLED)].leads))
		return false;
	walk(g, tail);
	reverse(tail);
	return true;
}

/* --- asking --- */

/* Who was called by the instruction before back.  False: that is not known. */
static bool
called_by(struct graph *g, uint64_t back, struct place *called)
{
	uint8_t bytes[6];
	struct place at, slot;
	const struct ex_decoded *code;
	const char *name;
	unsigned len;

	if (!place_at(g->process, back - 1, &at) || at.vaddr < sizeof(bytes))
		return false;
	at.vaddr++;
	if (ex_module_bytes(at.module, at.vaddr - sizeof(bytes), bytes,
	    sizeof(bytes)) != sizeof(bytes))
		return false;
	len = bytes[1] == 0xe8 ? 5 : bytes[0] == 0xff && bytes[1] == 0x15 ? 6 :
	    0;
	at.vaddr -= len;
	if (len == 0 || (code = decode(g, &at)) == NULL ||
	    code->insn.length != len ||
	    code->insn.meta.category != ZYDIS_CATEGORY_CALL)
		return false;
	*called = at;
	called->vaddr += len + code->insn.raw.imm[0].value.u;
	if (len == 5)
		return follow_stub(g, called);
	return (name = slot_of(code, &at, &slot)) != NULL &&
	    slot_target(g, &slot, name, called);
}

/* Whether what seemed to be a call before back was one. */
static bool
is_call(struct graph *g, uint64_t back)
{
	struct place at;
	struct ex_sweep before;

	if (!place_at(g->process, back - 1, &at))
		return false;
	before = ex_sweep_before(at.module, &g->decoder, at.vaddr + 1);
	return before.certain && (before.len == 5 || before.len == 6);
}

/* Functions that make a call through a register in the caller's place. */
static bool
is_thunk(const struct place *place)
{
	struct ex_symbol symbol;

	return ex_symbol_at(place->module, place->vaddr, &symbol) &&
	    (strncmp(symbol.name, "__x86_indirect_thunk", 20) == 0 ||
	    strncmp(symbol.name, "__llvm_retpoline", 16) == 0 ||
	    strncmp(symbol.name, "__llvm_lvi_thunk", 16) == 0);
}

/* Whether both are of one function.  Quick: it nearly always is so. */
static bool
is_same(const struct place *called, const struct place *running)
{
	struct ex_function a, b;
	uint64_t start, end;

	if (called->module != running->module || called->base != running->base)
		return false;
	if (ex_symbol_function(called->module, called->vaddr, &a) &&
	    ex_symbol_function(running->module, running->vaddr, &b) &&
	    a.start == b.start)
		return true;
	return (extent_of(called, &start, &end) && running->vaddr >= start &&
	    running->vaddr < end) || are_parts(called, running);
}

/* The answer for two functions, found before or now; NULL: out of memory. */
static const struct kept_tail *
answer_of(struct ex_table *answers, struct graph *g,
    const struct place *called, const struct place *running)
{
	uint64_t start = running->vaddr, end, hash;
	struct kept_tail key = {.process = g->process}, *answer;
	size_t i = 0;

	(void)extent_of(running, &start, &end);
	key.generation = ex_process_generation(g->process);
	key.called = address_of(called);
	key.running = running->base + start;
	hash = ex_hash(ex_hash(ex_hash((uintptr_t)key.process, key.generation),
	    key.called), key.running);
	while ((answer = ex_table_next(answers, hash, &i)) != NULL)
		if (answer->process == key.process &&
		    answer->generation == key.generation &&
		    answer->called == key.called &&
		    answer->running == key.running)
			return answer;
	if (answers->n >= ANSWERS_MAX)
		ex_table_free(answers, free);
	if (!ex_table_reserve(answers, 1) ||
	    (answer = malloc(sizeof(*answer))) == NULL)
		return NULL;
	*answer = key;
	answer->missing = find(g, called, running, &answer->tail);
	ex_table_put(answers, hash, answer);
	return answer;
}

const struct ex_tail *
ex_tail_find(struct ex_table *answers, struct ex_process *process,
    uint64_t pc, uint64_t back, bool *pointer)
{
	struct place called, running;
	const struct kept_tail *answer;
	struct graph g;

	g.process = process;
	g.nnodes = 0;
	g.nedges = 0;
	g.code = 0;
	g.full = false;
	*pointer = false;
	if (!place_at(process, pc, &running) ||
	    !ex_sweep_decoder(ex_module_is_narrow(running.module), &g.decoder))
		return NULL;
	if (!called_by(&g, back, &called) || is_thunk(&called)) {
		*pointer = true;
		return NULL;
	}
	if (is_same(&called, &running) || !is_call(&g, back))
		return NULL;
	answer = answer_of(answers, &g, &called, &running);
	if (answer == NULL || !answer->missing)
		return NULL;
	*pointer = answer->tail.pointer;
	return &answer->tail;
}
