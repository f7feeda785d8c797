/*
 * remote_stacks: the frequent backtraces that an explainer reports, so that
 * their hits may only be counted.
 *
 * An explainer's numbers of backtraces are lost when it dies.  So hits of a
 * backtrace are counted only when a sample of it is in the past (past_hits.h);
 * until then the backtrace waits here.
 */
#ifndef REMOTE_STACKS_H
#define REMOTE_STACKS_H

#include "broker/message.h"
#include "remote/past_hits.h"
#include "os/known_stack.h"

enum { KEPT_STACKS_EARLY_MAX = 64 };

struct remote_stacks {
	/* set by remote_session_know; know NULL: not wanted */
	bool (*know)(void *arg, const struct wp_known_stack *);
	void (*forget)(void *arg, pid_t);
	void *arg;
	const struct past_hits *past;
	struct wp_known_stack early[KEPT_STACKS_EARLY_MAX];	/* n of them */
	size_t n;
};

/* Take an explainer's message (BROKER_KNOWN, BROKER_FORGET).  False: it is
   invalid. */
bool remote_stacks_take(struct remote_stacks *, const struct broker_message *);
bool remote_stacks_take_forget(struct remote_stacks *,
    const struct broker_message *);

/* The past has grown: pass on the backtraces that waited for it.  False: one of
   them is invalid. */
bool remote_stacks_go_on(struct remote_stacks *);

/* The explainer has died: drop its backtraces. */
void remote_stacks_died(struct remote_stacks *);

#endif
