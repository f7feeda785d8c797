/* tail_graph: functions and the jumps between them, as far as they are needed
   to find the callers that ended in a jump. */
#ifndef EX_TAIL_GRAPH_H
#define EX_TAIL_GRAPH_H

#include "insn/tail_call.h"
#include "insn/sweep.h"
#include "module/module_private.h"

#define NODES_MAX 64
#define EDGES_MAX 512
#define CODE_MAX (1U << 18)	/* bytes of all nodes that are looked at */
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
	struct ex_tail_place entry;	/* where it was first entered */
	uint64_t start, end;	/* its vaddrs */
	int part_of;		/* a node; itself: it is no part */
	bool leads;		/* to the running function, or maybe */
	bool passed;
};

/* A jump. */
struct ex_tail_edge {
	int from, to;		/* nodes; to: or ANYWHERE */
	uint64_t jump;		/* its vaddr; 0: code goes on without one */
};

struct ex_tail_graph {
	struct ex_process *process;
	ZydisDecoder decoder;
	struct ex_tail_node node[NODES_MAX];	/* the first two: called,
						   running */
	int nnodes;
	struct ex_tail_edge edge[EDGES_MAX];
	unsigned nedges;
	uint64_t code;		/* bytes looked at */
	bool full;		/* there is more than was looked at */
};

enum { CALLED, RUNNING };

bool ex_tail_place_at(struct ex_process *, uint64_t addr,
    struct ex_tail_place *);
uint64_t ex_tail_address_of(const struct ex_tail_place *);

/* The code around a place that belongs together: an unwind entry's, since
   assembly may have several symbols in one; else a function's.  False: it is
   not known how far it goes. */
bool ex_tail_extent_of(const struct ex_tail_place *, uint64_t *start,
    uint64_t *end);
struct ex_decoded *ex_tail_decode(struct ex_tail_graph *,
    const struct ex_tail_place *);

/* Where a slot of the global offset table leads: as the process has it, else by
   its name. */
bool ex_tail_slot_target(struct ex_tail_graph *, const struct ex_tail_place *,
    const char *name, struct ex_tail_place *);

/* The slot that an instruction takes its target from: op *slot(%rip), or in
   32-bit code op *slot, op *offset(%ebx).  NULL: it is none, or the program may
   change what is there. */
const char *ex_tail_slot_of(const struct ex_decoded *,
    const struct ex_tail_place *, struct ex_tail_place *);

/* A stub becomes what it leads to.  False: that is not known. */
bool ex_tail_follow_stub(struct ex_tail_graph *, struct ex_tail_place *);
int ex_tail_whole_of(const struct ex_tail_graph *, int node);

/* Whether two are parts of one function, by their names. */
bool ex_tail_are_parts(const struct ex_tail_place *,
    const struct ex_tail_place *);

/* The node that a place belongs to, maybe a new one; ANYWHERE: there is no
   room, or it is not known how far its function goes. */
int ex_tail_node_at(struct ex_tail_graph *, const struct ex_tail_place *);

/* Add the jumps out of a node. */
void ex_tail_explore(struct ex_tail_graph *, int from);

#endif
