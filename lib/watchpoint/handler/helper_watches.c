/*
 * helper_watches: watches that the helper arms in the program's threads, as the
 * signal handler switches and counts them.
 *
 * It cannot wait for the one request that there is, which the interrupted
 * thread may be making, so each watch has words of its own in the channel.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <errno.h>

#include "handler/channel_futex.h"
#include "handler/watches.h"

/* Ask the helper to apply a watch's words, and wait until it has done so. */
static int
have_done(struct wp_channel *channel, struct wp_channel_watch *words)
{
	uint32_t asked = atomic_fetch_add(&words->asked, 1) + 1, done;

	wp_channel_ring(channel);
	while ((int32_t)((done = atomic_load(&words->done)) - asked) < 0) {
		if (!wp_channel_alive(channel))
			return -EPIPE;
		(void)wp_futex_wait(&words->done, done, WP_FUTEX_PATIENCE);
	}
	return 0;
}

/* When switching off, no thread waits for the helper: a debug register whose
   watch is off makes no hits, even before it is disarmed. */
int
wp_helper_switch(struct wp_watch *w, bool on)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	struct wp_channel_watch *words;

	if (channel == NULL)
		return -EPIPE;
	words = wp_watch_words(w, channel);
	atomic_store(&w->on, on);
	atomic_store(&words->on, on);
	if (on || !w->delivery->by_tracer)
		return have_done(channel, words);
	(void)atomic_fetch_add(&words->asked, 1);
	wp_channel_ring(channel);
	return 0;
}

/* The tracer counts hits of debug registers as they happen; events have to be
   read by the helper first. */
int
wp_helper_count(const struct wp_watch *w, uint64_t *count)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	struct wp_channel_watch *words;
	int err = 0;

	if (channel == NULL)
		return -EPIPE;
	words = wp_watch_words(w, channel);
	if (!w->delivery->by_tracer)
		err = have_done(channel, words);
	else if (!wp_channel_alive(channel))
		err = -EPIPE;
	*count = atomic_load(&words->counted);
	return err;
}
