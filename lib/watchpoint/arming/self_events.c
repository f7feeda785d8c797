/*
 * self_events: watches by perf events of the program's own: one for each slot
 * and each thread that exists.
 *
 * An event that is inherited has copies in the threads that its thread made,
 * and in theirs; what is done to it is done to them.  A new copy is enabled if
 * the maker's copy is, and watches what the event does; but the kernel looks at
 * both a moment before it lists the copy, so a thread that is just being made
 * can miss a change, and those that it makes with it.  Therefore changes are
 * made as events are opened: when no thread is created in the meantime
 * (wp_threads_each).  Disabling is not, since it has to be done at once, in
 * signal handlers too: the handler drops what a copy that was missed reports.
 *
 * Events are opened by a thread that ends at once (short_thread.c), so that the
 * program cannot disable them by prctl(2).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/clock.h"
#include "os/libc.h"
#include "os/perf.h"
#include "probe/probe.h"
#include "proc/proc.h"
#include "arming/delivery.h"
#include "arming/helper.h"
#include "program/table.h"
#include "arming/threads.h"
#include "program/short_thread.h"

/*
 * A program that opens and closes watches all the time reuses the events of
 * those it has closed, which is three times as fast as opening new ones.  They
 * are kept disabled, only if the program has one thread, and only while it is
 * quick, because each of them holds a debug register that no other program can
 * use.
 */
enum {
	SPARE = 2,		/* events that are kept */
	QUICK_NS = 1000000,	/* most ns between a close and the next open, */
	QUICK_ROW = 8,		/* this many times in a row */
};
static struct {
	struct wp_armed event[SPARE];
	unsigned n;
	bool kernel;		/* whether they count accesses by the kernel */
	uint64_t closed;	/* time of the last close, ns */
	unsigned row;
} spare;

struct opening {
	struct wp_watch *watch;
	uint32_t serial;
	pid_t failed;		/* thread whose event could not be opened */
	pid_t maker;	/* thread that created the one that opens them */
};

static void
slot_attr(struct perf_event_attr *attr, const struct wp_watch *w,
    uint32_t serial, unsigned slot)
{
	wp_attr_inside(attr, &w->slot[slot], w->attr.period, w->kernel);
	w->delivery->arming->attr(attr, w, serial, slot);
}

static int
open_slot(const struct opening *o, unsigned slot, pid_t tid)
{
	struct wp_watch *w = o->watch;
	const struct wp_arming *arming = w->delivery->arming;
	struct perf_event_attr attr;
	int fd, err;

	slot_attr(&attr, w, o->serial, slot);
	if ((fd = wp_perf_open(&attr, tid, -1)) < 0)
		return fd;
	fd = wp_descriptor_high(fd);
	if ((err = wp_watch_add(w, fd, slot, tid)) < 0)
		(void)close(fd);
	else if (arming->ready != NULL)
		err = arming->ready(&w->armed[w->narmed - 1]);
	return err;
}

static int
open_slots(struct opening *o, pid_t tid)
{
	size_t before = o->watch->narmed;
	int err = 0;

	for (unsigned i = 0; i < o->watch->nslots && err == 0; i++)
		err = open_slot(o, i, tid);
	if (err < 0) {
		wp_watch_drop(o->watch, before);
		o->failed = tid;
	}
	return err;
}

/* Runs in a short-lived thread, and opens the events of the thread that created
   it. */
static int
open_maker(void *arg)
{
	struct opening *o = arg;

	return open_slots(o, o->maker);
}

static void
spare_drop(void)
{
	while (spare.n > 0)
		wp_armed_drop(&spare.event[--spare.n]);
}

/* Whether the events of a watch can be reused: their address can be changed,
   but not their period, and there must be only one thread. */
static bool
may_spare(const struct wp_watch *w)
{
	return w->delivery->arming->inherited && w->tid == 0 &&
	    w->attr.period <= 1 && wp_libc_alone();
}

/* Whether the spare events fit this watch, which the only thread is opening. */
static bool
is_spare(const struct opening *o)
{
	const struct wp_watch *w = o->watch;

	return spare.n >= w->nslots && spare.kernel == w->kernel &&
	    may_spare(w) && spare.event[0].tid == wp_libc_tid();
}

/* Move a spare event to a slot of the watch. */
static int
take_spare(struct opening *o, unsigned slot)
{
	struct wp_armed *armed = &spare.event[spare.n - 1];
	struct perf_event_attr attr;
	struct wp_perf_count count;
	int err;

	slot_attr(&attr, o->watch, o->serial, slot);
	if ((err = wp_armed_check(armed)) < 0 ||
	    (err = wp_perf_modify(armed->fd, &attr)) < 0 ||
	    (err = wp_perf_read(armed->fd, WP_INSIDE_FORMAT, &count)) < 0 ||
	    (err = wp_watch_put(o->watch, armed)) < 0)
		return err;
	armed = &o->watch->armed[o->watch->narmed - 1];
	armed->slot = (uint16_t)slot;
	armed->before = count.value;
	spare.n--;
	return 0;
}

static bool
take_spares(struct opening *o)
{
	int err = is_spare(o) ? 0 : -ENOENT;

	for (unsigned i = 0; i < o->watch->nslots && err == 0; i++)
		err = take_spare(o, i);
	if (err < 0) {
		wp_watch_drop(o->watch, 0);
		spare_drop();
	}
	return err == 0;
}

/* Events of the calling thread are opened by a short-lived thread, so that
   prctl(2) does not disable them, unless there are spare ones. */
static int
open_thread(void *arg, pid_t tid)
{
	struct opening *o = arg;

	if (tid != wp_libc_tid())
		return open_slots(o, tid);
	o->maker = tid;
	spare.row = wp_clock_ns() - spare.closed < QUICK_NS ? spare.row + 1 : 0;
	return take_spares(o) ? 0 : wp_short_thread(open_maker, o);
}

static void
open_undo(void *arg)
{
	const struct opening *o = arg;

	wp_watch_drop(o->watch, 0);
}

static int
enable_all(struct wp_watch *w)
{
	int err = 0;

	for (size_t i = 0; i < w->narmed && err == 0; i++)
		if ((err = wp_armed_check(&w->armed[i])) == 0)
			err = w->delivery->arming->enable(w, &w->armed[i]);
	return err;
}

/* Called while the threads are held, so that enabling needs no second hold. */
static void
open_held(void *arg)
{
	const struct opening *o = arg;
	struct wp_watch *w = o->watch;

	if ((w->attr.flags & WP_DISABLED) != 0)
		return;
	wp_watch_publish(w, o->serial);
	atomic_store(&w->on, enable_all(w) == 0);
}

static int
open_all(struct opening *o)
{
	int err = o->watch->tid != 0 ? open_thread(o, o->watch->tid) :
	    wp_threads_each(open_thread, open_undo, open_held, o);

	if (err < 0)
		wp_watch_drop(o->watch, 0);
	return err;
}

/* The number of slots that other watches of this program hold in the thread. */
static unsigned
own_slots(const struct opening *o)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_watch *w = &wp_state.watch[i];

		if (w != o->watch && atomic_load(&w->serial) != 0 &&
		    (w->tid == 0 || w->tid == o->failed))
			n += w->nslots;
	}
	return n;
}

static int
no_slot(const struct opening *o, struct wp_cause *cause)
{
	const unsigned own = own_slots(o);
	pid_t tracer = wp_proc_tracer(o->failed);
	char who[96] = "other watches, perf events or a debugger hold the rest";

	if (own + o->watch->nslots > wp_slot_usual.slots)
		(void)snprintf(who, sizeof(who), "this program's other watches "
		    "hold %u: close one, or wp_move it", own);
	else if (tracer != 0)
		(void)snprintf(who, sizeof(who), "other watches or the "
		    "debugger that traces it, process %d, hold the rest",
		    tracer);
	return wp_cause_set(cause, WP_CAUSE_NO_SLOT, o->failed,
	    o->watch->nslots, wp_slot_usual.slots, who);
}

static int
no_descriptor(const struct opening *o, struct wp_cause *cause)
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return wp_cause_set(cause, WP_CAUSE_NO_DESCRIPTOR,
	    o->watch->nslots, (unsigned long long)limit.rlim_cur);
}

static int
explain(const struct opening *o, int err, struct wp_cause *cause)
{
	switch (err) {
	case -ENOSPC:
		return no_slot(o, cause);
	case -EMFILE:
		return no_descriptor(o, cause);
	case -ENOMEM:
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	case -ECHILD:
		return wp_cause_set(cause, WP_CAUSE_NO_THREAD);
	case -ENOBUFS:
		return wp_cause_set(cause, WP_CAUSE_RING_INSIDE, o->failed);
	default:
		return wp_probe_cause(-err, cause);
	}
}

/* Whether another attempt may succeed.  A helper may still hold copies of the
   events of a closed watch, which it drops when asked for something; and the
   program may have given up privileges since the probe. */
static bool
may_retry(struct wp_watch *w, int err)
{
	if (err == -ENOSPC && wp_helper_request(WP_ASK_GO) != NULL)
		return wp_helper_ask(NULL) >= 0;
	if ((err != -EACCES && err != -EPERM) || !w->kernel)
		return false;
	w->kernel = false;
	return true;
}

/* Handlers may disable the watch at any time, and enable it while the table is
   not locked.  Bring the events, whose state may be `before', to the state that
   is wanted now. */
static int
settle(struct wp_watch *w, bool before, int err)
{
	bool on;

	while ((on = atomic_load(&w->on)) != before) {
		(void)(on ? enable_all(w) : wp_watch_off(w));
		before = on;
	}
	return err;
}

static int
open_or_retry(struct opening *o)
{
	int err = open_all(o);

	if (err < 0 && may_retry(o->watch, err))
		err = open_all(o);
	o->watch->inexact = err > 0;
	return err;
}

int
wp_self_events_open(struct wp_watch *w, uint32_t serial, struct wp_cause *cause)
{
	struct opening o = {.watch = w, .serial = serial};
	int err = open_or_retry(&o);

	return err < 0 ? explain(&o, err, cause) : 0;
}

/* Handlers use the array of armed events as soon as it is not empty.  So it is
   built elsewhere, put in place complete, and not moved afterwards. */
int
wp_self_events_take_over(struct wp_watch *w)
{
	static struct wp_watch made;
	struct opening o = {
		.watch = &made, .serial = atomic_load(&w->serial),
	};
	int err;

	memcpy(&made, w, sizeof(made));
	made.armed = NULL;
	made.mapped = 0;
	if ((err = open_or_retry(&o)) < 0) {
		if (made.mapped > 0)
			(void)munmap(made.armed, made.mapped);
		return err;
	}
	if (w->mapped > 0)
		(void)munmap(w->armed, w->mapped);
	w->armed = made.armed;
	w->mapped = made.mapped;
	w->kernel = made.kernel;
	w->inexact = made.inexact;
	atomic_store(&w->narmed, made.narmed);
	return settle(w, false, 0);
}

static void
keep_spares(struct wp_watch *w)
{
	if (spare.kernel != w->kernel || spare.event[0].tid != wp_libc_tid())
		spare_drop();
	spare.kernel = w->kernel;
	while (w->narmed > 0 && spare.n < SPARE) {
		struct wp_armed *armed = &w->armed[w->narmed - 1];

		if (wp_armed_check(armed) < 0 || wp_perf_disable(armed->fd) < 0)
			break;
		spare.event[spare.n++] = *armed;
		w->narmed--;
	}
}

void
wp_self_events_close(struct wp_watch *w)
{
	if (spare.row < QUICK_ROW)
		spare_drop();
	else if (may_spare(w) && w->narmed == w->nslots &&
	    w->armed[0].tid == wp_libc_tid())
		keep_spares(w);
	spare.closed = wp_clock_ns();
	wp_watch_drop(w, 0);
}

void
wp_self_events_forked(void)
{
	spare_drop();
}

static int
retarget_all(const struct wp_watch *w, bool off)
{
	struct perf_event_attr attr;
	int err = 0;

	for (size_t i = 0; i < w->narmed && err == 0; i++) {
		slot_attr(&attr, w, atomic_load(&w->serial), w->armed[i].slot);
		attr.disabled = off;
		if ((err = wp_armed_check(&w->armed[i])) == 0)
			err = wp_perf_modify(w->armed[i].fd, &attr);
	}
	return err;
}

/* A change that has to reach all inherited copies of the events. */
struct change {
	struct wp_watch *watch;
	bool retarget;		/* move the events to the watch's slots first */
	bool made;
};

/* Each step is done twice, to reach copies that were being made during the
   first time: the kernel has listed them by the second. */
static int
make_change(void *arg, pid_t tid)
{
	struct change *change = arg;
	struct wp_watch *w = change->watch;
	int err = 0;

	(void)tid;
	if (change->made)
		return 0;
	change->made = true;
	for (int i = 0; i < 2 && err == 0 && change->retarget; i++)
		err = retarget_all(w, true);
	for (int i = 0; i < 2 && err == 0 && atomic_load(&w->on); i++)
		err = enable_all(w);
	return err;
}

static void
make_again(void *arg)
{
	struct change *change = arg;

	change->made = false;
}

static int
change_all(struct wp_watch *w, bool retarget)
{
	struct change change = {w, retarget, false};
	int err = wp_threads_each(make_change, make_again, NULL, &change);

	if (err > 0)
		w->inexact = true;
	return err < 0 ? err : 0;
}

int
wp_self_events_enable(struct wp_watch *w)
{
	atomic_store(&w->on, true);
	return settle(w, true,
	    w->delivery->arming->inherited && !wp_libc_alone() ?
	    change_all(w, false) : enable_all(w));
}

/*
 * An event can be moved and enabled in one call, which is enough for a program
 * with one thread.  With more, all events are disabled first, so that none
 * fires at its new place while others are still at the old one.
 */
static int
retarget(struct wp_watch *w, const struct wp_slot *slots, bool on)
{
	int err;

	wp_watch_place(w, slots);
	if (w->delivery->arming->inherited)
		return wp_libc_alone() ? retarget_all(w, !on) :
		    change_all(w, true);
	err = retarget_all(w, true);
	return err == 0 && on ? enable_all(w) : err;
}

int
wp_self_events_move(struct wp_watch *w, const struct wp_slot *slots,
    struct wp_cause *cause)
{
	struct wp_slot old[WP_SLOTS_MAX];
	bool on = atomic_load(&w->on);
	int err;

	memcpy(old, w->slot, w->nslots * sizeof(*old));
	if ((err = retarget(w, slots, on)) < 0) {
		(void)retarget(w, old, on);
		(void)wp_cause_errno(cause, "retargeting an event", -err);
	}
	return settle(w, on, err);
}
