/*
 * deliver_async: a hit is a signal of the thread that made it (O_ASYNC,
 * F_SETSIG, F_SETOWN_EX), for kernels without sigtrap events.
 *
 * Such a signal goes to the owner of the event that was opened, so events
 * cannot be inherited: each thread needs its own.  The helper traces the
 * program, opens them, and sees new threads before they run.  For one thread,
 * or without a helper that can do so, they are opened here, and threads to come
 * are not covered.  So they are when helper and tracer have died (lifeline.c).
 *
 * The signal is a standard one: for these the kernel always has room, and one
 * is pending at most.  Of real-time signals a thread that blocks them could
 * have as many pending as its user may have at all; and where they find no more
 * room the kernel sends SIGIO, which programs die of.  What the one signal
 * stands for is found out by what the thread's events have seen
 * (async_count.c).
 *
 * On processors that trap before the access an event is armed for one overflow
 * at a time; the handler's last act is to arm it again (handler/rearm.c).
 */
#include <errno.h>

#include "os/attr.h"
#include "os/clock.h"
#include "os/perf.h"
#include "os/trap_cpu.h"
#include "arming/delivery.h"
#include "arming/helper.h"
#include "arming/lifeline.h"
#include "program/table.h"

enum { TRIES = 200 };	/* ms to wait for registers that others hold */

static void
async_attr(struct perf_event_attr *attr, const struct wp_watch *w,
    uint32_t serial, unsigned slot)
{
	(void)w;
	(void)serial;
	(void)slot;
	wp_attr_fires(attr);
}

static int
async_ready(struct wp_armed *armed)
{
	int err = wp_async_count_open(&armed->fired, armed->fd);

	return err < 0 ? err : wp_perf_signal(armed->fd, armed->tid,
	    wp_state.event_signal);
}

static int
enable_one(const struct wp_watch *w, struct wp_armed *armed)
{
	if (!wp_cpu_traps_before())
		return wp_perf_enable(armed->fd);
	if (armed->loaded)
		return wp_perf_once_again(armed->fd, wp_watch_period(w));
	armed->loaded = true;
	return wp_perf_once(armed->fd, wp_watch_period(w));
}

static const struct wp_arming arming = {
	.attr = async_attr, .ready = async_ready, .enable = enable_one,
};

/* Whether the helper opened the events. */
static bool
by_helper(const struct wp_watch *w)
{
	return w->narmed == 0;
}

static int
open_here(struct wp_watch *w, uint32_t serial, struct wp_cause *cause)
{
	int err = wp_self_events_open(w, serial, cause);

	w->inexact = w->tid == 0;
	return err;
}

static bool
can_be_helpers(const struct wp_watch *w)
{
	return w->tid == 0 && !wp_cpu_kernel_steps();
}

/* Arm here a watch whose helper has died.  This runs in the handler, with the
   table locked.  The events of the dying tracer may still hold their registers
   for a moment. */
static int
take_over(struct wp_watch *w)
{
	int err;

	w->orphan = true;
	for (unsigned i = 0; (err = wp_self_events_take_over(w)) ==
	    -ENOSPC && i < TRIES; i++)
		wp_clock_sleep(1000000);
	return err;
}

static int
async_open(struct wp_watch *w, uint32_t serial, struct wp_cause *cause)
{
	w->orphan = false;
	if (can_be_helpers(w) && wp_helper_start(NULL) == 0)
		wp_lifeline_open(wp_state.event_signal, &wp_deliver_async,
		    take_over);
	return can_be_helpers(w) && wp_helper_arm(w, serial,
	    wp_state.event_signal, cause) == 0 ? 0 :
	    open_here(w, serial, cause);
}

static void
async_close(struct wp_watch *w)
{
	if (by_helper(w))
		wp_helper_disarm(w);
	else
		wp_watch_drop(w, 0);
}

static int
end_change(int err)
{
	wp_async_change_end();
	return err;
}

static int
async_enable(struct wp_watch *w)
{
	if (by_helper(w))
		return wp_helper_switch(w, true);
	wp_async_change_begin();
	return end_change(wp_self_events_enable(w));
}

static int
async_disable(struct wp_watch *w)
{
	if (by_helper(w))
		return wp_helper_switch(w, false);
	wp_async_change_begin();
	return end_change(wp_watch_disable(w));
}

static int
async_move(struct wp_watch *w, const struct wp_slot *slots,
    struct wp_cause *cause)
{
	if (by_helper(w))
		return wp_helper_move(w, slots, cause);
	wp_async_change_begin();
	return end_change(wp_self_events_move(w, slots, cause));
}

/* Some accesses to a watch that was taken over were never counted. */
static int
async_count(const struct wp_watch *w, uint64_t *count)
{
	if (w->orphan)
		return -EPIPE;
	return by_helper(w) ? wp_helper_count(w, count) :
	    wp_watch_count(w, count);
}

static int
async_signal(void)
{
	return wp_state.event_signal;
}

const struct wp_delivery wp_deliver_async = {
	.name = "async", .by_descriptor = true, .arming = &arming,
	.signal = async_signal,
	.open = async_open, .close = async_close,
	.enable = async_enable, .disable = async_disable,
	.move = async_move, .count = async_count,
};
