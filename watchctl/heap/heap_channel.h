/*
 * heap_channel: the channel through which the programs of a run that watch
 * blocks request a helper.
 *
 * Such programs are started with both libraries and these variables, which
 * their children inherit:
 *
 *	LD_PRELOAD		both, before what is there
 *	WATCHPOINT_FAMILY	where the channel is
 *	WATCHPOINT_HELPER	nothing: no other helper is to be started
 */
#ifndef HEAP_CHANNEL_H
#define HEAP_CHANNEL_H

#include <limits.h>

#include "handler/channel.h"
#include "option/options.h"

struct heap_channel {
	struct wp_channel *at;		/* NULL: none */
	int fd;
	char *helper;			/* the previous value of
					   WATCHPOINT_HELPER; NULL: it was not
					   set */
};

/* Find libwatchpoint.  0, or -errno after a line on stderr. */
int heap_channel_library(char path[PATH_MAX]);

/* 0, or -errno after a line on stderr; close it in any case. */
int heap_channel_open(struct heap_channel *, const struct options *);

/* Set the variables, with both libraries.  0, or -errno after a line on
   stderr. */
int heap_channel_set(const struct heap_channel *, const char *guard,
    const char *watching);

/* Restore the variables when the command runs, so that other children do not
   get them. */
void heap_channel_unset(struct heap_channel *);

void heap_channel_close(struct heap_channel *);

#endif
