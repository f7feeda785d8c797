/*
 * copies: descriptors of a program's events, copied into this process: they
 * stop the counting, and have the counts when the program is gone.
 *
 * A copy keeps its event armed, and with it a debug register, when the program
 * closes its own.  So only watches that are never closed have copies.
 */
#ifndef COPIES_H
#define COPIES_H

#include <stdbool.h>

#include "handler/channel.h"

struct copies {
	struct wp_channel *channel;
	struct copy {
		uint32_t serial;	/* whose; 0: none */
		unsigned nslots;	/* that it has */
		int fd[8];		/* -1: none */
	} of[WP_WATCHES_MAX];
};

/* Copy those of all watches that are open now.  pidfd: of the program.  Whether
   all were available. */
bool copies_take(struct copies *, struct wp_channel *, int pidfd);
void copies_close(struct copies *);

/* Stop what is counted by them. */
void copies_disable(struct copies *);

/* For how long, in ns, each slot of a watch was on since it was opened, in all
   threads together.  false: that is not known. */
bool copies_running(const struct copies *, unsigned watch,
    uint64_t on[WP_SLOTS_MAX]);

/* How many accesses to watch i were counted.  False: that cannot be said. */
bool copies_counted(const struct copies *, unsigned i, uint64_t *counted);

#endif
