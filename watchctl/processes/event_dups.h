/*
 * event_dups: descriptors of a program's events, duplicated into this process.
 * Through them the counting can be stopped, and the counts can be read after
 * the program has ended.
 *
 * A duplicate keeps its event armed, and a debug register taken, after the
 * program has closed its own descriptor.  So only watches that are never closed
 * have duplicates.
 */
#ifndef EVENT_DUPS_H
#define EVENT_DUPS_H

#include <stdbool.h>

#include "handler/channel.h"

struct event_dups {
	struct wp_channel *channel;
	int err;			/* why not all were available: an errno
					   value, or 0 */
	struct event_dup {
		uint32_t serial;	/* of the watch; 0: none */
		unsigned nslots;	/* slots of the watch */
		int fd[8];		/* -1: none */
	} of[WP_WATCHES_MAX];
};

/* Duplicate the events of all watches that are open now. pidfd: of the
   program.  Result: whether all were available. */
bool event_dups_take(struct event_dups *, struct wp_channel *, int pidfd);
void event_dups_close(struct event_dups *);

/* Disable the events. */
void event_dups_disable(struct event_dups *);

/* For how long, in ns, each slot of a watch was on since it was opened, in all
   threads together.  false: that is not known. */
bool event_dups_running(const struct event_dups *, unsigned watch,
    uint64_t on[WP_SLOTS_MAX]);

/* How many accesses to watch i were counted.  False: unknown. */
bool event_dups_counted(const struct event_dups *, unsigned i,
    uint64_t *counted);

#endif
