/*
 * stack: stores backtraces, each distinct one once, identified by an id.
 *
 * Their memory is bounded: at the bound, backtraces that were not seen for a
 * long time and are not held are forgotten, and count as new when they are seen
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

struct ex_process;
struct ex_space;

struct ex_stacks;	/* the distinct backtraces of a space */

struct ex_stack {
	uint64_t id;		/* never 0 */
	unsigned variant;	/* distinguishes backtraces with the same id, of
				   the same places at other addresses, as in
				   another process; 0: the first */
	unsigned n;		/* frames, inlined ones too */
	const struct ex_frame *frame;	/* innermost first */
	enum ex_end end;	/* the reason of its end */
	bool gap;		/* a frame has a gap: functions may be
				   missing */
	bool unnamed;		/* code outside of all modules may get a name
				   later */
	unsigned index;		/* 0, 1, 2...: in the order of first sight;
				   never reused */
	unsigned *holders;	/* number of holders; NULL: it is never
				   forgotten, as it is in no store */
};

/* Keep it from being forgotten, until it is released as often; NULL is
   ignored. */
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

/* The index of the innermost frame of the program itself, after the kernel's
   frames and that of the vDSO through which 32-bit programs make calls; n:
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

/* Limit the bytes of backtraces, except held ones, in stores that are created
   later; the default is 128 MiB. */
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
 * The backtrace of n return addresses, at most EX_CALLERS_MAX, that were found
 * otherwise; whole: the last is the thread's first function.  Result as above.
 */
enum { EX_CALLERS_MAX = 64 };
const struct ex_stack *ex_stack_of_callers(struct ex_stacks *,
    struct ex_process *, const uint64_t *pc, unsigned n, bool whole);

/*
 * Whether the stack of this sample, the last one passed to the function above,
 * has come often and is complete: then how to recognize it again within its
 * process.  A stack that contains all of these words has the same backtrace.
 */
bool ex_stack_often(struct ex_stacks *, const struct ex_sample *,
    struct wp_known_stack *);

#endif
