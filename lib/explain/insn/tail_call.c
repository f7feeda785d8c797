/*
 * tail_call: the callers that ended in a jump.
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

#include "insn/tail_graph.h"
#include "space/space.h"
#include "symbol/line.h"
#include "symbol/symbol.h"

/* An answer of before. */
struct kept_tail {
	/* the question */
	const struct ex_process *process;
	uint64_t generation, called, running;
	bool missing;		/* a function is missing */
	struct ex_tail tail;
};

/* --- the way --- */

/* Whether an edge may lead to the running function. */
static bool
leads(const struct ex_tail_graph *g, const struct ex_tail_edge *edge)
{
	return edge->to == ANYWHERE || g->node[ex_tail_whole_of(g,
	    edge->to)].leads;
}

/* The parts of one function count as one, and its jumps to itself do not. */
static void
simplify(struct ex_tail_graph *g)
{
	unsigned n = 0;
	bool more = true;

	for (unsigned i = 0; i < g->nedges; i++) {
		struct ex_tail_edge edge = g->edge[i];

		edge.from = ex_tail_whole_of(g, edge.from);
		if (edge.to != ANYWHERE)
			edge.to = ex_tail_whole_of(g, edge.to);
		if (edge.from != edge.to && edge.from != ex_tail_whole_of(g,
		    RUNNING))
			g->edge[n++] = edge;
	}
	g->nedges = n;
	g->node[ex_tail_whole_of(g, RUNNING)].leads = true;
	while (more) {
		more = false;
		for (unsigned i = 0; i < n; i++) {
			struct ex_tail_node *from = &g->node[g->edge[i].from];

			if (!from->leads && leads(g, &g->edge[i]))
				more = from->leads = true;
		}
	}
}

/* Whether something may be inlined at one of a node's jumps to another. */
static bool
is_inlined(const struct ex_tail_graph *g, int from, int to)
{
	struct ex_line line[EX_LINES_MAX];
	unsigned n;

	for (unsigned i = 0; i < g->nedges; i++) {
		const struct ex_tail_edge *edge = &g->edge[i];

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
next_node(const struct ex_tail_graph *g, int from, int *to, uint64_t *jump,
    bool *pointer)
{
	unsigned n = 0;
	bool same = true;

	*jump = 0;
	for (unsigned i = 0; i < g->nedges; i++) {
		const struct ex_tail_edge *edge = &g->edge[i];

		if (edge->from != from || !leads(g, edge))
			continue;
		same = same && (n == 0 || edge->to == *to);
		*to = edge->to;
		*jump = n++ == 0 ? edge->jump : 0;
	}
	if (same && n > 0 && *to == ANYWHERE) {
		*to = ex_tail_whole_of(g, RUNNING);
		*pointer = true;
	}
	return same && n > 0;
}

/* Go from the called to the running function, as far as the way is certain. */
static void
walk(struct ex_tail_graph *g, struct ex_tail *tail)
{
	int at = ex_tail_whole_of(g, CALLED), to = at;
	uint64_t jump;

	while (at != ex_tail_whole_of(g, RUNNING) && !tail->gap) {
		struct ex_tail_node *node = &g->node[at];
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
		caller->entry = ex_tail_address_of(&node->entry);
		caller->jump = jump != 0 ? node->entry.base + jump : 0;
		tail->n++;
		at = to;
	}
}

/* Reverse the frames, which were found from the outermost one inwards. */
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
find(struct ex_tail_graph *g, const struct ex_tail_place *called,
    const struct ex_tail_place *running, struct ex_tail *tail)
{
	memset(tail, 0, sizeof(*tail));
	if (ex_tail_node_at(g, called) != CALLED ||
	    ex_tail_node_at(g, running) != RUNNING)
		return false;
	for (int i = 0; i < g->nnodes && !g->full; i++) {
		if (i != RUNNING)
			ex_tail_explore(g, i);
	}
	simplify(g);
	if (ex_tail_whole_of(g, CALLED) == ex_tail_whole_of(g, RUNNING) ||
	    !(g->full || g->node[ex_tail_whole_of(g, CALLED)].leads))
		return false;
	walk(g, tail);
	reverse(tail);
	return true;
}

/* --- asking --- */

/* Whether both are of one function.  Quick: it nearly always is so. */
static bool
is_same(const struct ex_tail_place *called, const struct ex_tail_place *running)
{
	struct ex_function a, b;
	uint64_t start, end;

	if (called->module != running->module || called->base != running->base)
		return false;
	if (ex_symbol_function(called->module, called->vaddr, &a) &&
	    ex_symbol_function(running->module, running->vaddr, &b) &&
	    a.start == b.start)
		return true;
	return (ex_tail_extent_of(called, &start, &end) &&
	    running->vaddr >= start &&
	    running->vaddr < end) || ex_tail_are_parts(called, running);
}

/* The answer for two functions, found before or now; NULL: out of memory. */
static const struct kept_tail *
answer_of(struct ex_table *answers, struct ex_tail_graph *g,
    const struct ex_tail_place *called, const struct ex_tail_place *running)
{
	uint64_t start = running->vaddr, end, hash;
	struct kept_tail key = {.process = g->process}, *answer;
	size_t i = 0;

	(void)ex_tail_extent_of(running, &start, &end);
	key.generation = ex_process_generation(g->process);
	key.called = ex_tail_address_of(called);
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

static void
begin(struct ex_tail_graph *g, struct ex_process *process)
{
	g->process = process;
	g->nnodes = 0;
	g->nedges = 0;
	g->code = 0;
	g->full = false;
}

const struct ex_tail *
ex_tail_find(struct ex_table *answers, struct ex_process *process,
    uint64_t pc, uint64_t back, bool *pointer)
{
	struct ex_tail_place called, running;
	const struct kept_tail *answer;
	struct ex_tail_graph g;

	begin(&g, process);
	*pointer = false;
	if (!ex_tail_place_at(process, pc, &running))
		return NULL;
	if (!ex_tail_called_by(&g, back, &called)) {
		*pointer = true;
		return NULL;
	}
	if (is_same(&called, &running) || ex_tail_call_len(&g, back) == 0)
		return NULL;
	answer = answer_of(answers, &g, &called, &running);
	if (answer == NULL || !answer->missing)
		return NULL;
	*pointer = answer->tail.pointer;
	return &answer->tail;
}

bool
ex_tail_calls(struct ex_process *process, uint64_t back, uint64_t function,
    uint64_t *call)
{
	struct ex_tail_place called;
	struct ex_tail_graph g;
	unsigned len;

	begin(&g, process);
	if (!ex_tail_called_by(&g, back, &called) ||
	    ex_tail_address_of(&called) != function ||
	    (len = ex_tail_call_len(&g, back)) == 0)
		return false;
	*call = back - len;
	return true;
}
