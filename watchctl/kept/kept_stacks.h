/*
 * kept_stacks: the backtraces that come often, as an explainer says, so that
 * their hits may only be counted.
 *
 * What an explainer calls a backtrace is lost with it.  So hits are counted
 * only once one of them is in the past: until then the backtrace waits here.
 */
#ifndef KEPT_STACKS_H
#define KEPT_STACKS_H

#include "box/message.h"
#include "kept/past.h"
#include "os/known_stack.h"

enum { KEPT_STACKS_EARLY_MAX = 64 };

struct kept_stacks {
	/* as of kept_session_know; know NULL: nobody wants to */
	bool (*know)(void *arg, const struct wp_known_stack *);
	void (*forget)(void *arg, pid_t);
	void *arg;
	const struct past *past;
	struct wp_known_stack early[KEPT_STACKS_EARLY_MAX];	/* n of them */
	size_t n;
};

/* Take what an explainer says (BOX_KNOWN, BOX_FORGET).  False: it makes no
   sense. */
bool kept_stacks_take(struct kept_stacks *, const struct box_message *);
bool kept_stacks_take_forget(struct kept_stacks *, const struct box_message *);

/* There is more in the past.  False: one that waited for it makes no sense. */
bool kept_stacks_go_on(struct kept_stacks *);

/* The explainer has died. */
void kept_stacks_died(struct kept_stacks *);

#endif
