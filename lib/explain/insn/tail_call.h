/*
 * tail_call: finds the callers that a stack does not show, because they ended
 * in a jump.
 *
 * A function whose last action is a call may jump to the other function instead
 * (a tail call), and leave no trace on the stack.  But the instruction before
 * the return address shows which function was called.  If that is not the
 * running function, jumps lead from the one to the other.  The code is searched
 * for all jumps that may have been made; DWARF's call sites distinguish them
 * from jumps inside a function.
 *
 * If a call or jump goes through a register, or through memory that can change,
 * its target is not known, and is assumed to be the running function.
 */
#ifndef EX_TAIL_CALL_H
#define EX_TAIL_CALL_H

#include "base/table.h"

struct ex_process;

#define EX_TAIL_MAX 16		/* functions between a frame and the next */

/* A function that ended in a jump. */
struct ex_tail_caller {
	uint64_t jump;		/* the jump's address; 0: one of several
				   jumps */
	uint64_t entry;		/* address where the function was entered */
};

struct ex_tail {
	unsigned n;		/* at least one: the function that was called */
	struct ex_tail_caller caller[EX_TAIL_MAX];	/* the innermost
							   first */
	bool pointer;		/* the innermost may have jumped through a
				   pointer */
	bool gap;		/* functions may be missing after the innermost,
				   or it is unknown what was inlined there */
};

/*
 * The functions that are missing in a process between the running function,
 * which contains pc, and its caller, which continues at back.  NULL: none, as
 * far as is known. *pointer: little is known, because the call or the last jump
 * was made through a pointer.  Valid until the next call.  The table caches
 * answers, to be freed with free(3).
 */
const struct ex_tail *ex_tail_find(struct ex_table *, struct ex_process *,
    uint64_t pc, uint64_t back, bool *pointer);

/* Whether the instruction before `back' is known to have called the function
   that begins at this address; *call is its address. */
bool ex_tail_calls(struct ex_process *, uint64_t back, uint64_t function,
    uint64_t *call);

#endif
