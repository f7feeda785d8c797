/*
 * stack: backtraces, each distinct one stored once and identified by an id.
 *
 * Their memory is bounded: at the bound, backtraces that were not seen for a
 * long time and are not in use are forgotten, and are new when they are seen
 * again.
 *
 * The id is made from modules' build ids (or names) and vaddrs, so the same
 * backtrace has the same id in another run of the same program.
 */
#ifndef EX_STACK_H
#define EX_STACK_H

#include <string.h>

#include "symbol/symbol.h"
#include "os/known_stack.h"
#include "unwind/unwind.h"

struct ex_stacks;	/* the distinct backtraces of a space */

struct ex_stack {
	uint64_t id;		/* never 0 */
	unsigned variant;	/* above that of others that are kept and have
				   this id: of the same places at other
				   addresses, as in another process; 0: there
				   were none */
	unsigned n;		/* frames, inlined ones too */
	const struct ex_frame *frame;	/* innermost first */
	enum ex_end end;	/* why it ends */
	bool gap;		/* of a frame: functions may be missing */
	bool unnamed;		/* a name for code outside of all modules may
				   come yet */
	unsigned index;		/* 0, 1, 2...: in the order of first sight;
				   never that of another */
	unsigned *holders;	/* how many there are; NULL: it stays, as it is
				   of no store */
};

/* Keep it from being forgotten, until it is let go as often; NULL is none. */
static inline void
ex_stack_hold(const struct ex_stack *stack)
{
	if (stack != NULL && stack->holders != NULL)
		++*stack->holders;
}

static inline void
ex_stack_let_go(const struct ex_stack *stack)
{
	if (stack != NULL && stack->holders != NULL)
		--*stack->holders;
}

/* The innermost of its frames that is the program's own, behind the kernel's,
   and behind the vDSO's through which 32-bit programs make their calls; n:
   there is none. */
static inline unsigned
ex_stack_user(const struct ex_stack *stack)
{
	unsigned i = 0;

	while (i < stack->n && stack->frame[i].kernel)
		i++;
	if (i > 0 && i + 1 < stack->n && stack->frame[i].function != NULL &&
	    strcmp(stack->frame[i].function, "__kernel_vsyscall") == 0)
		i++;
	return i;
}

/* A new store over a space that outlives it; NULL when out of memory. */
struct ex_stacks *ex_stacks_new(struct ex_space *);
void ex_stacks_free(struct ex_stacks *);

/* How many bytes they may take in a store that is made from now on, apart from
   those that are held: 128 MiB, unless this was called. */
void ex_stacks_limit(size_t bytes);

/*
 * The backtrace of a sample: kernel frames (from the callchain) first, then the
 * user's.  first_pc, when not 0, replaces the sampled user pc as the address of
 * frame 0 (the exact instruction's); with 0 the sampled pc is shown and, when
 * after is true, the byte before it is looked up.
 * The result is valid until the next call, or as long as it is held; NULL only
 * when out of memory.
 * Hot path: a stack whose words were seen before is not unwound again; one that
 * is gives a backtrace seen before by one look-up.
 */
const struct ex_stack *ex_stack_of(struct ex_stacks *, struct ex_process *,
    const struct ex_sample *, uint64_t first_pc, bool after);

/*
 * The backtrace of n return addresses, at most EX_CALLERS_MAX, which somebody
 * else found; whole: the last is the thread's first function.  Result as above.
 */
enum { EX_CALLERS_MAX = 64 };
const struct ex_stack *ex_stack_of_callers(struct ex_stacks *,
    struct ex_process *, const uint64_t *pc, unsigned n, bool whole);

/*
 * Whether the stack of this sample, which is the one that the function above
 * was called with last, has come often, and is complete: how it is known again,
 * but for the process.  What is found by less of the stack, if it has all of
 * these words, is the same.
 */
bool ex_stack_often(struct ex_stacks *, const struct ex_sample *,
    struct wp_known_stack *);

#endif
