/*
 * copies: descriptors of a program's events, copied into this process, so that
 * what was counted can be read when the program is no more.
 *
 * A copy keeps its event, and with it a debug register, from being closed.  So
 * watches that may be closed have copies only while nothing happens, and lose
 * them as soon as they have been closed.
 */
#ifndef COPIES_H
#define COPIES_H

#include "channel.h"

struct copies {
	struct wp_channel *channel;
	int pidfd;		/* of the program */
	uint32_t lasting;	/* serials up to this are never closed */
	struct copy {
		uint32_t serial;	/* whose; 0: none */
		int fd[8];		/* -1: none */
	} of[WP_WATCHES_MAX];
};

void copies_open(struct copies *, struct wp_channel *, int pidfd);
void copies_close(struct copies *);

/* Drop copies of what is closed by now. */
void copies_drop(struct copies *);

/* Make those that are missing: of watches that last, or (idle) of all. */
void copies_take(struct copies *, bool idle);

/* Stop what is counted by them. */
void copies_disable(struct copies *);

/* How many accesses were counted, and not told to the program's handler, of
   watches where that can be said. */
uint64_t copies_missed(const struct copies *);

#endif
