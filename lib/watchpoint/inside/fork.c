/*
 * fork: the watches of this program in a child created by fork(2).
 */
#include "inside/fork.h"

#include <pthread.h>

#include "arming/delivery.h"
#include "arming/helper.h"
#include "arming/lifeline.h"
#include "program/table.h"
#include "os/libc.h"

/* The fork in progress.  Protected by the table's lock. */
static struct {
	bool prepared;
	pid_t tid;			/* the thread that forks */
	struct wp_creation making;	/* entered in the channel that
					   wp_watches_counts() keeps */
	int (*reopen)(struct wp_watch *);
} now;

/*
 * The delivery of a watch that a child does not have; nothing is opened.
 */

static void
none_close(struct wp_watch *w)
{
	(void)w;
}

static int
none_do(struct wp_watch *w)
{
	(void)w;
	return 0;
}

static int
none_move(struct wp_watch *w, const struct wp_slot *slots,
    struct wp_cause *cause)
{
	(void)w;
	(void)slots;
	(void)cause;
	return 0;
}

static int
none_count(const struct wp_watch *w, uint64_t *count)
{
	(void)w;
	*count = 0;
	return 0;
}

static int
none_signal(void)
{
	return 0;
}

static const struct wp_delivery deliver_none = {
	.name = "none", .signal = none_signal, .close = none_close,
	.enable = none_do, .disable = none_do, .move = none_move,
	.count = none_count,
};

/* Whether the child gets the watch too.  It does not if no hits are wanted any
   more. */
static bool
follows(const struct wp_watch *w, pid_t parent)
{
	const struct wp_channel *channel = wp_watches_counts();

	return (channel == NULL || atomic_load(&channel->off) == 0) &&
	    atomic_load(&w->serial) != 0 && (w->attr.flags & WP_FORK) != 0 &&
	    (w->tid == 0 || w->tid == parent);
}

/* The child has only the thread that forked, with another id.  It inherited the
   descriptors of the parent's events, and does nothing with them but close
   them. */
static void
watch_forked(struct wp_watch *w, pid_t parent)
{
	const bool followed = follows(w, parent);

	wp_trap_forked();
	/* the child does not inherit the mapping */
	for (size_t i = 0; i < w->narmed; i++)
		w->armed[i].fired.ring = NULL;
	wp_watch_drop(w, 0);
	atomic_store(&w->users, wp_trap_held() == w);
	if (w->delivery == NULL)
		return;
	if (w->tid == parent)
		w->tid = wp_libc_tid();
	if (followed && now.reopen(w) == 0)
		return;
	if (followed)
		wp_helper_unfollowed();
	wp_watch_drop(w, 0);
	atomic_store(&w->on, false);
	w->delivery = &deliver_none;
}

static bool
any_follows(pid_t tid)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (follows(&wp_state.watch[i], tid))
			return true;
	return false;
}

static void
before_fork(void)
{
	wp_watches_lock();
	now.tid = wp_libc_tid();
	now.making = wp_creation_begin(wp_watches_counts(),
	    any_follows(now.tid) ? WP_MAKES_WATCHED : WP_MAKES_FORK);
}

static void
after_fork(void)
{
	wp_creation_end(now.making);
	wp_watches_unlock();
}

/* Tell the parent's helper that there is a child that is not watched. */
static void
count_unfollowed(void)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	for (unsigned i = 0; channel != NULL && i < WP_WATCHES_MAX; i++) {
		const struct wp_watch *w = &wp_state.watch[i];

		if (atomic_load(&w->serial) == 0 ||
		    (w->attr.flags & WP_FORK) != 0)
			continue;
		(void)atomic_fetch_add(&channel->children, 1);
		return;
	}
}

static void
forked(void)
{
	const bool kept = wp_state.kept;

	count_unfollowed();
	wp_creation_appear(now.making);
	wp_helper_forked();
	wp_state.kept = false;
	wp_self_events_forked();
	wp_lifeline_forked();
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		watch_forked(&wp_state.watch[i], now.tid);
	if (kept)
		(void)wp_helper_armed(NULL);
	wp_creation_settle(now.making);
	wp_watches_part();
	wp_helper_part();
	wp_watches_unlock();
}

/* This runs when the library is loaded.  If it ran with the first watch, a
   child forked by another thread at that moment would have the lock taken, and
   nobody to release it. */
static __attribute__((constructor)) void
prepare(void)
{
	now.prepared = now.prepared ||
	    pthread_atfork(before_fork, after_fork, forked) == 0;
}

bool
wp_fork_prepare(int (*reopen)(struct wp_watch *))
{
	prepare();
	now.reopen = reopen;
	return now.prepared;
}
