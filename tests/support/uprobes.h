/* uprobes: skips tests that need uprobes where there are none. */
#ifndef UPROBES_H
#define UPROBES_H

#include "attach/target.h"
#include "probe/probe.h"

static inline bool
uprobes_work(void)
{
	static bool once;
	struct wp_features features;
	struct wp_cause cause;

	if (once)
		return true;
	(void)wp_probe_features(&features, NULL);
	wp_probe_without_slots(&features);
	if ((once = wp_target_try_uprobe(&features, &cause) == 0))
		return true;
	print_message("%s\n", cause.text);
	return false;
}

#define NEEDS_UPROBES if (!uprobes_work()) skip()

#endif
