/*
 * created_processes: the processes that the program creates, as far as the
 * library sees it.
 *
 * The kernel reports to the helper every process that is made, with the thread
 * that made it, and when.  What it does not report is how: so the library notes
 * when a thread is in a call that makes one.
 */
#include <signal.h>
#include <unistd.h>

#include "handler/channel.h"
#include "os/clock.h"
#include "os/libc.h"
#include "proc/proc.h"

/* Whether this entry has a child that is still to be watched, and that would be
   forgotten if the entry were reused. */
static bool
is_awaited(const struct wp_making *m)
{
	const pid_t child = atomic_load(&m->child);

	return atomic_load(&m->how) == WP_MAKES_WATCHED && child != 0 &&
	    atomic_load(&m->settled) == 0 && kill(child, 0) == 0;
}

struct wp_creation
wp_creation_begin(struct wp_channel *channel, enum wp_makes how)
{
	struct wp_creation now = {.at = NULL};
	uint32_t n;

	if (channel == NULL)
		return now;
	n = atomic_fetch_add(&channel->makings, 1);
	now.at = &channel->making[n % WP_MAKINGS_MAX];
	now.begin = wp_clock_ns();
	if (is_awaited(now.at))
		(void)atomic_fetch_add(&channel->forgotten, 1);
	atomic_store(&now.at->begin, 0);
	atomic_store(&now.at->tid, wp_libc_tid());
	atomic_store(&now.at->how, (uint32_t)how);
	atomic_store(&now.at->child, 0);
	atomic_store(&now.at->settled, 0);
	atomic_store(&now.at->end, UINT64_MAX);
	atomic_store(&now.at->begin, now.begin);
	/* the helper has to read the entry before it is reused */
	if (n % (WP_MAKINGS_MAX / 4) == 0)
		wp_channel_ring(channel);
	return now;
}

/* Whether the entry has not been reused. */
static bool
is_there(struct wp_creation now)
{
	return now.at != NULL && atomic_load(&now.at->begin) == now.begin;
}

void
wp_creation_end(struct wp_creation now)
{
	if (is_there(now))
		atomic_store(&now.at->end, wp_clock_ns());
}

void
wp_creation_appear(struct wp_creation now)
{
	pid_t nobody = 0;

	if (is_there(now))
		(void)atomic_compare_exchange_strong(&now.at->child, &nobody,
		    getpid());
}

void
wp_creation_settle(struct wp_creation now)
{
	if (is_there(now))
		atomic_store(&now.at->settled, 1);
}

/* Assign the child to this entry if its thread was in that call at that
   time. */
static uint32_t
claim(struct wp_making *m, pid_t tid, uint64_t time, pid_t child)
{
	const uint64_t begin = atomic_load(&m->begin);
	const uint32_t how = atomic_load(&m->how);
	pid_t nobody = 0;

	if (begin == 0 || time < begin || time > atomic_load(&m->end) ||
	    atomic_load(&m->tid) != tid || atomic_load(&m->begin) != begin)
		return 0;
	return atomic_compare_exchange_strong(&m->child, &nobody, child) ||
	    nobody == child ? how : 0;
}

uint32_t
wp_creation_claim(struct wp_channel *channel, pid_t tid, uint64_t time,
    pid_t child)
{
	uint32_t how = 0;

	for (unsigned i = 0; i < WP_MAKINGS_MAX && how == 0; i++)
		how = claim(&channel->making[i], tid, time, child);
	return how;
}

/* Whether the process has not ended. */
static bool
is_alive(pid_t pid)
{
	struct wp_proc_status status;

	return wp_proc_status(pid, &status) == 0 && status.state != 'Z' &&
	    status.state != 'X';
}

bool
wp_creation_pending(struct wp_channel *channel)
{
	for (unsigned i = 0; i < WP_MAKINGS_MAX; i++) {
		struct wp_making *m = &channel->making[i];
		const pid_t child = atomic_load(&m->child);

		if (child != 0 && atomic_load(&m->how) == WP_MAKES_WATCHED &&
		    atomic_load(&m->settled) == 0 && is_alive(child))
			return true;
	}
	return false;
}

/* A call that failed looks the same as one whose child has not been
   reported. */
bool
wp_creation_unheard(struct wp_channel *channel, bool any)
{
	for (unsigned i = 0; i < WP_MAKINGS_MAX; i++) {
		const struct wp_making *m = &channel->making[i];
		const uint32_t how = atomic_load(&m->how);

		if (atomic_load(&m->begin) != 0 && (how == WP_MAKES_WATCHED ||
		    (any && how == WP_MAKES_FORK)) &&
		    atomic_load(&m->child) == 0)
			return true;
	}
	return false;
}
