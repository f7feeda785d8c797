/*
 * channel_server: a channel, and a helper that serves it, which is a child of
 * the test.
 */
#ifndef CHANNEL_SERVER_H
#define CHANNEL_SERVER_H

#include <stdlib.h>
#include <unistd.h>

#include "child.h"
#include "handler/channel.h"

/* The helper's functions. */
struct server {
	void (*take)(struct wp_cell *);	/* handles a hit; NULL: none is taken */
	int (*answer)(struct wp_channel *);	/* answers a request */
};

static struct wp_channel *channel;	/* mapped by the test, ... */
static int channel_memory;		/* ... from this descriptor */
static pid_t channel_helper;
static volatile bool *channel_end;	/* shared: tells the helper to end,
					   ... */
static volatile bool *channel_deaf;	/* ... or to ignore everything */

static inline void
channel_serve(void *arg)
{
	const struct server *server = arg;
	struct wp_channel *mine;
	struct wp_cell *cell;
	uint32_t heard = 0;

	if (wp_channel_map(channel_memory, &mine) < 0)
		_exit(1);
	wp_channel_serve(mine);
	while (!*channel_end) {
		while (!*channel_deaf && server->take != NULL &&
		    (cell = wp_channel_next(mine)) != NULL) {
			server->take(cell);
			wp_channel_done(mine, cell);
		}
		if (!*channel_deaf && wp_channel_asked(mine))
			wp_channel_answer(mine, server->answer(mine));
		/* a request or hit wakes it */
		wp_channel_sleep(mine, &heard, CHILD_PATIENCE_MS);
	}
}

/* Make a channel without a helper. */
static inline void
channel_open(void)
{
	if (channel_end == NULL) {
		channel_end = shared_memory(2);
		channel_deaf = channel_end + 1;
	}
	*channel_end = *channel_deaf = false;
	channel_memory = wp_channel_make(WP_STACK_USUAL);
	assert_true(channel_memory >= 0);
	assert_int_equal(wp_channel_map(channel_memory, &channel), 0);
}

static inline void
channel_close(void)
{
	wp_channel_unmap(channel);
	(void)close(channel_memory);
}

static inline void
channel_start_helper(const struct server *server)
{
	channel_helper = child_start(channel_serve, (void *)(uintptr_t)server);
	assert_int_equal(wp_channel_await(channel, CHILD_PATIENCE_MS), 0);
}

static inline void
channel_end_helper(void)
{
	*channel_end = true;
	wp_channel_ring(channel);
	assert_int_equal(child_wait(channel_helper), 0);
}

#endif
