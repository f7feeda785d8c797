/* tail_graph: functions and the jumps between them, as far as they are needed
   to find the callers that ended in a jump. */
#ifndef EX_TAIL_GRAPH_H
#define EX_TAIL_GRAPH_H

#include "insn/tail_call.h"
#include "module/module_private.h"

struct ex_process;

#define NODES_MAX 64
#define EDGES_MAX 512
#define CODE_MAX (1U << 18)	/* most bytes of all nodes that are examined */
#define ANSWERS_MAX 4096	/* kept */

enum { ANYWHERE = -1 };

/* A place in the code of a process. */
struct ex_tail_place {
	struct ex_module *module;
	uint64_t vaddr;
	uint64_t base;		/* of the module: vaddr + base is the address */
};

/* A function. */
struct ex_tail_node {
	struct ex_tail_place entry;	/* where it was entered first */
	uint64_t start, end;	/* its vaddrs */
	int part_of;		/* the node of the whole function; itself: it is
				   no part */
	bool leads;		/* it leads, or may lead, to the running
				   function */
	bool passed;
};

/* A jump. */
struct ex_tail_edge {
	int from, to;		/* nodes; to may be ANYWHERE */
	uint64_t jump;		/* its vaddr; 0: the code continues without a
				   jump */
};

struct ex_tail_graph {
	struct ex_process *process;
	struct ex_tail_node node[NODES_MAX];	/* the first two: called,
						   running */
	int nnodes;
	struct ex_tail_edge edge[EDGES_MAX];
	unsigned nedges;
	uint64_t code;		/* bytes examined */
	bool full;		/* a limit was reached */
};

enum { CALLED, RUNNING };

bool ex_tail_place_at(struct ex_process *, uint64_t addr,
    struct ex_tail_place *);
uint64_t ex_tail_address_of(const struct ex_tail_place *);

/* The extent of the code around a place: that of its unwind entry, because
   assembly may have several symbols in one; else of its function.  False:
   unknown. */
bool ex_tail_extent_of(const struct ex_tail_place *, uint64_t *start,
    uint64_t *end);
/* The target of a slot of the global offset table: as in the process, else by
   its name. */
bool ex_tail_slot_target(struct ex_tail_graph *, const struct ex_tail_place *,
    const char *name, struct ex_tail_place *);

int ex_tail_whole_of(const struct ex_tail_graph *, int node);

/* Whether two are parts of one function, by their names. */
bool ex_tail_are_parts(const struct ex_tail_place *,
    const struct ex_tail_place *);

/* The node of a place, maybe a new one; ANYWHERE: no room, or the function's
   extent is unknown. */
int ex_tail_node_at(struct ex_tail_graph *, const struct ex_tail_place *);

/* Add a jump, at this vaddr of a node, to a place; or to a node.  At 0: the code
   continues without one. */
void ex_tail_add_jump(struct ex_tail_graph *, int from,
    struct ex_tail_place to, uint64_t jump);
void ex_tail_add_edge(struct ex_tail_graph *, int from, int to,
    uint64_t jump);

/* Add the jumps out of a node. */
void ex_tail_explore(struct ex_tail_graph *, int from);

/*
 * What the code itself says: tail_code_x86_64.c, tail_code_aarch64.c.
 */

/* Whether a slot's contents are where lazy binding begins. */
bool ex_tail_is_unbound(const struct ex_tail_place *);

/* Replace a stub by its target.  False: unknown. */
bool ex_tail_follow_stub(struct ex_tail_graph *, struct ex_tail_place *);

/* Add each jump out of a node's code.  False: there is too much of it. */
bool ex_tail_add_exits(struct ex_tail_graph *, int from);

/* Determine the function that the instruction before `back' called.  False: it
   is not known. */
bool ex_tail_called_by(struct ex_tail_graph *, uint64_t back,
    struct ex_tail_place *called);

/* The length of the call before back; 0: what seemed to be one was none. */
unsigned ex_tail_call_len(struct ex_tail_graph *, uint64_t back);

#endif
