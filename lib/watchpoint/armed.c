/*
 * armed: watches by perf events of the program's own: one for each slot and each
 * thread that exists.
 *
 * An event that is inherited has copies in the threads that its thread made, and
 * in theirs; what is done to it is done to them.  A new copy is enabled if the
 * maker's copy is, and watches what the event does; but the kernel looks at both
 * a moment before it lists the copy, so a thread that is just being made can
 * miss a change, and those that it makes with it.  Therefore changes are made as
 * events are opened: when no thread comes to be meanwhile (wp_threads_each).
 * Disabling is not, since it has to be done at once, in signal handlers too: the
 * handler drops what a copy that was missed reports.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "attr.h"
#include "perf.h"
#include "proc.h"
#include "watches.h"

struct opening {
	struct wp_watch *watch;
	uint32_t serial;
	const struct wp_arming *arming;
	pid_t failed;		/* whose event could not be opened */
};

static void
slot_attr(struct perf_event_attr *attr, const struct wp_watch *w,
    uint32_t serial, const struct wp_arming *arming, unsigned slot)
{
	wp_attr_inside(attr, &w->slot[slot], w->attr.period, w->kernel);
	arming->attr(attr, w, serial, slot);
}

static int
open_slot(const struct opening *o, unsigned slot, pid_t tid)
{
	struct perf_event_attr attr;
	int fd, err = 0;

	slot_attr(&attr, o->watch, o->serial, o->arming, slot);
	if ((fd = wp_perf_open(&attr, tid, -1)) < 0)
		return fd;
	fd = wp_descriptor_high(fd);
	if (o->arming->ready != NULL)
		err = o->arming->ready(fd, tid);
	if (err == 0)
		err = wp_watch_add(o->watch, fd, slot, tid);
	if (err < 0)
		(void)close(fd);
	return err;
}

static int
open_thread(void *arg, pid_t tid)
{
	struct opening *o = arg;
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

static void
open_undo(void *arg)
{
	const struct opening *o = arg;

	wp_watch_drop(o->watch, 0);
}

/* The program may have closed the number, and got it for a file of its own. */
static int
check(const struct wp_armed *armed)
{
	return wp_armed_is(armed) ? 0 : -EBADF;
}

static int
enable_all(struct wp_watch *w, const struct wp_arming *arming)
{
	int err = 0;

	for (size_t i = 0; i < w->narmed && err == 0; i++)
		if ((err = check(&w->armed[i])) == 0)
			err = arming->enable(w, &w->armed[i]);
	return err;
}

/* What would take holding them a second time. */
static void
open_held(void *arg)
{
	const struct opening *o = arg;
	struct wp_watch *w = o->watch;

	if ((w->attr.flags & WP_DISABLED) != 0)
		return;
	wp_watch_publish(w, o->serial);
	atomic_store(&w->on, enable_all(w, o->arming) == 0);
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

/* How many the other watches of this program hold in the thread. */
static unsigned
own_slots(const struct opening *o)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_watch *w = &wp_inside.watch[i];

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
	default:
		return wp_probe_cause(-err, cause);
	}
}

/* Whether what was refused may be had now: a helper may hold copies of the
   events of a watch that was closed, until it is asked for something; and since
   the probe this program may have given up privileges. */
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

int
wp_armed_open(struct wp_watch *w, uint32_t serial,
    const struct wp_arming *arming, struct wp_cause *cause)
{
	struct opening o = {.watch = w, .serial = serial, .arming = arming};
	int err = open_all(&o);

	if (err < 0 && may_retry(w, err))
		err = open_all(&o);
	w->inexact = err > 0;
	return err < 0 ? explain(&o, err, cause) : 0;
}

static int
disable_all(struct wp_watch *w)
{
	int err, first = 0;

	for (size_t i = 0; i < w->narmed; i++) {
		if ((err = check(&w->armed[i])) == 0)
			err = wp_perf_disable(w->armed[i].fd);
		if (err < 0 && first == 0)
			first = err;
	}
	return first;
}

static int
retarget_all(const struct wp_watch *w, const struct wp_arming *arming, bool off)
{
	struct perf_event_attr attr;
	int err = 0;

	for (size_t i = 0; i < w->narmed && err == 0; i++) {
		slot_attr(&attr, w, atomic_load(&w->serial), arming,
		    w->armed[i].slot);
		attr.disabled = off;
		if ((err = check(&w->armed[i])) == 0)
			err = wp_perf_modify(w->armed[i].fd, &attr);
	}
	return err;
}

/* A change that is to reach all copies. */
struct change {
	struct wp_watch *watch;
	const struct wp_arming *arming;
	bool retarget;		/* to the watch's slots, before it is enabled */
	bool made;
};

/* Make it twice: copies that were being made the first time are listed now. */
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
		err = retarget_all(w, change->arming, true);
	for (int i = 0; i < 2 && err == 0 && atomic_load(&w->on); i++)
		err = enable_all(w, change->arming);
	return err;
}

static void
make_again(void *arg)
{
	struct change *change = arg;

	change->made = false;
}

static int
change_all(struct wp_watch *w, const struct wp_arming *arming, bool retarget)
{
	struct change change = {w, arming, retarget, false};
	int err = wp_threads_each(make_change, make_again, NULL, &change);

	if (err > 0)
		w->inexact = true;
	return err < 0 ? err : 0;
}

/* Handlers may disable it at any time, or enable it, when it is not locked:
   before is how the events are now, or may be. */
static int
settle(struct wp_watch *w, const struct wp_arming *arming, bool before, int err)
{
	bool on;

	while ((on = atomic_load(&w->on)) != before) {
		(void)(on ? enable_all(w, arming) : disable_all(w));
		before = on;
	}
	return err;
}

int
wp_armed_enable(struct wp_watch *w, const struct wp_arming *arming)
{
	atomic_store(&w->on, true);
	return settle(w, arming, true,
	    arming->inherited && !__libc_single_threaded ?
	    change_all(w, arming, false) : enable_all(w, arming));
}

int
wp_armed_disable(struct wp_watch *w)
{
	atomic_store(&w->on, false);
	return disable_all(w);
}

/*
 * To be retargeted and enabled can be done in one, which is all that a program
 * with one thread needs.  With others all are disabled first, so that none hits
 * while some still are elsewhere.
 */
static int
retarget(struct wp_watch *w, const struct wp_arming *arming,
    const struct wp_slot *slots, bool on)
{
	int err;

	memcpy(w->slot, slots, w->nslots * sizeof(*slots));
	w->region.addr = slots[0].addr;
	if (arming->inherited)
		return __libc_single_threaded ? retarget_all(w, arming, !on) :
		    change_all(w, arming, true);
	err = retarget_all(w, arming, true);
	return err == 0 && on ? enable_all(w, arming) : err;
}

int
wp_armed_move(struct wp_watch *w, const struct wp_arming *arming,
    const struct wp_slot *slots, struct wp_cause *cause)
{
	struct wp_slot old[WP_SLOTS_MAX];
	bool on = atomic_load(&w->on);
	int err;

	memcpy(old, w->slot, w->nslots * sizeof(*old));
	if ((err = retarget(w, arming, slots, on)) < 0) {
		(void)retarget(w, arming, old, on);
		(void)wp_cause_errno(cause, "retargeting an event", -err);
	}
	return settle(w, arming, on, err);
}

int
wp_armed_count_slots(const struct wp_watch *w, uint64_t count[WP_SLOTS_MAX])
{
	struct wp_perf_count one;
	int err = 0;

	memset(count, 0, WP_SLOTS_MAX * sizeof(*count));
	for (size_t i = 0; i < w->narmed && err == 0; i++) {
		if ((err = check(&w->armed[i])) == 0)
			err = wp_perf_read(w->armed[i].fd, false, &one);
		count[w->armed[i].slot] += err == 0 ? one.value : 0;
	}
	return err;
}

int
wp_armed_count(const struct wp_watch *w, uint64_t *count)
{
	uint64_t each[WP_SLOTS_MAX];
	int err = wp_armed_count_slots(w, each);

	*count = 0;
	for (unsigned i = 0; i < w->nslots; i++)
		*count += each[i];
	return err;
}
