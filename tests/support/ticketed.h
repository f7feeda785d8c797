/*
 * ticketed: opens a target whose hits take tickets.
 */
#ifndef TICKETED_H
#define TICKETED_H

#include "attach/target.h"
#include "live.h"

/* With BPF programs; NULL, with the reason printed: not possible. */
static inline struct wp_target *
ticketed_target(void)
{
	const struct wp_options options = {.bpf = true};
	struct wp_target *target;
	struct wp_cause cause;

	if (wp_target_new(&target, &live_features, &options, &cause) < 0)
		fail_msg("%s", cause.text);
	if (wp_target_options(target)->tickets)
		return target;
	print_message("%s\n", wp_target_no_bpf(target)->text);
	wp_target_free(target);
	return NULL;
}

#endif
