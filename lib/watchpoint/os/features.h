/*
 * features: what this machine lets its user do with breakpoint events, as
 * wp_probe_features finds it.
 */
#ifndef WP_FEATURES_H
#define WP_FEATURES_H

#include <stdbool.h>

#include "os/slot.h"

struct wp_features {
	struct wp_slot_caps caps;	/* slots free in this thread; range */
	bool inherit_thread;	/* watches follow threads but not children */
	bool remove_on_exec;	/* watches end at execve */
	bool sigtrap;		/* synchronous SIGTRAP with sig_data */
	bool format_lost;	/* PERF_FORMAT_LOST */
	bool kernel;		/* the kernel's accesses may be watched */
	bool callchain;		/* kernel callchains may be asked for */
	int paranoid;		/* kernel.perf_event_paranoid; INT_MIN:
				   cannot be read */
};

#endif
