/*
 * stack_listener: what a listener (struct ex_listener) has been informed of
 * about frequent stacks.
 */
#ifndef EX_STACK_LISTENER_H
#define EX_STACK_LISTENER_H

#include "base/table.h"
#include "hit/hit.h"
#include "hit/value_tracker.h"

struct ex_stack_listener {
	const struct ex_listener *listener;	/* NULL: there is none */
	struct ex_space *space;
	struct ex_stacks *stacks;
	struct ex_value_tracker *tracker;
	struct ex_noticed {
		pid_t pid;
		uint64_t generation;	/* of the process */
	} *at;			/* n of them: the processes whose stacks were
				   reported to it */
	size_t n, cap;
	struct ex_table counted;	/* struct counted, by its process and
					   its index */
	struct ex_table chained;	/* watches whose hits are never counted,
					   by id */
};

/* A hit of a process, by its first sample: tell the listener, if its stack
   comes often.  If hits are counted by it, not all of them are seen any more,
   which the tracker hears of. */
void ex_stack_listener_hit(struct ex_stack_listener *,
    const struct ex_process *, const struct ex_record *, const struct ex_hit *);

/* A process may map other code now. */
void ex_stack_listener_forget(struct ex_stack_listener *, pid_t);

/* As ex_explain_counted. */
bool ex_stack_listener_counted(const struct ex_stack_listener *,
    const struct ex_watch *, pid_t, uint32_t stack, struct ex_hit *);

void ex_stack_listener_free(struct ex_stack_listener *);

#endif
