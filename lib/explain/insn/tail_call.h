/*
 * tail_call: the callers that a stack does not show, because they ended in a
 * jump.
 *
 * A function whose last act is a call may jump there instead (a tail call), and
 * leave nothing of itself on the stack.  But the instruction before the return
 * address says which function was called: if that is not the function that runs
 * now, jumps lead from one to the other.  All jumps that may have been made are
 * looked for in the code; DWARF's call sites distinguish them from jumps inside
 * a function.
 *
 * The target of a call or jump through a register, or through memory that can
 * change, is not known: the running function is taken for it.
 */
#ifndef EX_TAIL_CALL_H
#define EX_TAIL_CALL_H

#include "base/table.h"
#include "module/module.h"

#define EX_TAIL_MAX 16		/* functions between a frame and the next */

/* A function that ended in a jump. */
struct ex_tail_caller {
	uint64_t jump;		/* the jump's address; 0: it is one of
				   several */
	uint64_t entry;		/* address where the function was entered */
};

struct ex_tail {
	unsigned n;		/* at least one: the function that was called */
	struct ex_tail_caller caller[EX_TAIL_MAX];	/* the innermost
							   first */
	bool pointer;		/* the innermost may have jumped through one */
	bool gap;		/* others may be missing, behind the innermost:
				   or it is not known what was inlined there */
};

/*
 * The functions that are missing in a process between the running function, of
 * which pc is an instruction, and its caller, which is to continue at back.
 * NULL: none, as far as is known.  *pointer: little is known, because the call,
 * or the last jump, was made through a pointer.  Valid until the next call.
 * The table keeps answers, to be freed with free(3).
 */
const struct ex_tail *ex_tail_find(struct ex_table *, struct ex_process *,
    uint64_t pc, uint64_t back, bool *pointer);

#endif
