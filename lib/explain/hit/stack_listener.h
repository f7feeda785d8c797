/*
 * stack_listener: keeps track of what a listener (struct ex_listener) was told
 * about frequent stacks.
 */
#ifndef EX_STACK_LISTENER_H
#define EX_STACK_LISTENER_H

#include "base/table.h"
#include "hit/hit.h"
#include "hit/value_tracker.h"

struct ex_process;
struct ex_space;

struct ex_stack_listener {
	const struct ex_listener *listener;	/* NULL: there is none */
	struct ex_space *space;
	struct ex_stacks *stacks;
	struct ex_value_tracker *tracker;
	struct ex_noticed {
		pid_t pid;
		uint64_t generation;	/* of the process */
	} *at;			/* n of them: processes whose stacks were
				   reported */
	size_t n, cap;
	struct ex_table counted;	/* struct counted, by process and
					   index */
	struct ex_table chained;	/* watches whose hits are never counted,
					   by id */
};

/* Tell the listener of a hit's stack, by its first sample, if it comes often.
   If it counts such hits, they are no longer all seen, so the tracker is
   told. */
void ex_stack_listener_hit(struct ex_stack_listener *,
    const struct ex_process *, const struct ex_record *, const struct ex_hit *);

/* Note that a process may have mapped other code. */
void ex_stack_listener_forget(struct ex_stack_listener *, pid_t);

/* As ex_explain_counted. */
bool ex_stack_listener_counted(const struct ex_stack_listener *,
    const struct ex_watch *, pid_t, uint32_t stack, struct ex_hit *);

void ex_stack_listener_free(struct ex_stack_listener *);

#endif
