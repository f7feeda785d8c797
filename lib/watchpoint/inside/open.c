/*
 * open: wp_open and friends: from an attribute to an open watch.
 *
 * Life-cycle of a watch.  An entry of the table is free; it gets a delivery,
 * which opens its events, disabled; then a serial, under which signals are
 * taken for it; then it is enabled.  wp_close takes the serial away, waits
 * until no handler uses the entry, has the delivery close the events, and takes
 * the delivery away: the entry is free.  A handler that closes a watch cannot
 * wait; what is left to be done then is done by the next call that opens or
 * closes.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/capture.h"
#include "handler/channel_futex.h"
#include "os/libc.h"
#include "os/trap_cpu.h"
#include "probe/probe.h"
#include "program/copies.h"
#include "arming/delivery.h"
#include "inside/open.h"
#include "inside/fork.h"
#include "arming/helper.h"
#include "program/table.h"

enum {
	ATTR_MAX = 4096,	/* no struct wp_attr will ever be larger */
	LAST_WAIT = 50,	/* ms at closing for hits still being reported */
};

/* The cause of this thread's last failure.  initial-exec, because other kinds
   of thread-local memory may be allocated by malloc(3). */
static _Thread_local struct wp_cause last
    __attribute__((tls_model("initial-exec")));

/* What this machine offers.  Protected by the table's lock. */
static struct {
	const struct wp_delivery *delivery;	/* NULL: not determined yet */
	struct wp_slot_caps caps;
	bool kernel;
	bool forced;			/* the user has chosen the delivery */
	struct wp_cause refused;	/* why perf_event_open cannot be used */
} machine;

static _Atomic unsigned unfinished;	/* closed watches whose events are
					   still open */

const char *
wp_cause(void)
{
	return last.code == WP_CAUSE_NONE ? "no error" : last.text;
}

/* Async-signal-safe.  Returns -err. */
static int
failed_plainly(int err, const char *text)
{
	last.code = WP_CAUSE_SYSTEM;
	last.err = err;
	(void)strncpy(last.text, text, sizeof(last.text) - 1);
	return -err;
}

int
wp_open_refuse(const char *why)
{
	return wp_cause_set(&last, WP_CAUSE_ATTR, why);
}

/*
 * The attribute.
 */

/* *attr is zeroed by the caller.  The struct of an older program is shorter:
   members that it lacks are 0.  That of a newer program is longer: members that
   are not known here must be 0. */
static int
take_attr(struct wp_attr *attr, const struct wp_attr *from)
{
	const unsigned char *bytes = (const unsigned char *)from;
	size_t size = from->size;

	if (size < offsetof(struct wp_attr, access))
		return wp_open_refuse("size is not sizeof(struct wp_attr)");
	for (size_t i = sizeof(*attr); i < size; i++)
		if (size > ATTR_MAX || bytes[i] != 0)
			return wp_cause_set(&last, WP_CAUSE_ATTR_NEWER, size,
			    sizeof(*attr));
	memcpy(attr, from, size < sizeof(*attr) ? size : sizeof(*attr));
	if (attr->access == 0)
		attr->access = WP_WRITE;
	if (attr->label != NULL && *attr->label == '\0')
		attr->label = NULL;
	if (attr->action == 0)
		attr->action = attr->handler != NULL ? WP_CALL : WP_PRINT;
	return 0;
}

static int
check_access(const struct wp_attr *attr)
{
	switch (attr->access) {
	case WP_WRITE:
	case WP_READ:
	case WP_ACCESS:
		return attr->len > 0 ? 0 :
		    wp_open_refuse("len is 0: nothing to watch");
	case WP_EXEC:
		return attr->len <= 1 ? 0 :
		    wp_cause_set(&last, WP_CAUSE_ACCESS);
	default:
		return wp_open_refuse("access is none of WP_WRITE, WP_READ, "
		    "WP_ACCESS and WP_EXEC");
	}
}

static int
check_attr(const struct wp_attr *attr)
{
	if ((attr->action & ~(unsigned)(WP_PRINT | WP_CALL | WP_ABORT)) != 0)
		return wp_open_refuse("action has bits that are none of WP_PRINT, "
		    "WP_CALL and WP_ABORT");
	if ((attr->action & WP_CALL) != 0 && attr->handler == NULL)
		return wp_open_refuse("action is WP_CALL and handler is NULL");
	if ((attr->action & WP_CALL) == 0 && attr->handler != NULL)
		return wp_open_refuse("a handler is given and never called: action "
		    "lacks WP_CALL");
	if (attr->threads != WP_ALL_THREADS && attr->threads != WP_THIS_THREAD)
		return wp_open_refuse("threads is neither WP_ALL_THREADS nor "
		    "WP_THIS_THREAD");
	if ((attr->flags & ~(unsigned)(WP_ASYNC | WP_STRAY | WP_FORK |
	    WP_DISABLED | WP_USER_ONLY)) != 0)
		return wp_open_refuse("flags has bits that are none of "
		    "enum wp_flags");
	if (attr->period > INT64_MAX)
		return wp_open_refuse("period is too large");
	return check_access(attr);
}

/*
 * The region.
 */

/* Memory may be mapped and not readable.  msync(2) without MS_SYNC does nothing
   except report what is not mapped, whatever its protection, and takes a
   quarter of mincore(2)'s time. */
static int
check_mapped(const struct wp_region *region, bool *readable)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*readable = wp_is_readable(region->addr, region->len);
	if (*readable || wp_state.begins)	/* at program start it may be
						   mapped later */
		return 0;
	for (uint64_t at = region->addr; at - region->addr < region->len;
	    at = (at / page + 1) * page)
		if (syscall(SYS_msync, (uintptr_t)(at / page * page),
		    (size_t)page, MS_ASYNC) != 0 && errno == ENOMEM)
			return wp_cause_set(&last, WP_CAUSE_UNMAPPED,
			    (unsigned long long)at, getpid(), getpid());
	return 0;
}

/* Determine how a region is covered, and whether it can be read.  Returns the
   number of slots, or -errno with a cause. */
static int
plan(const struct wp_region *region, struct wp_slot slot[WP_SLOTS_MAX],
    bool *readable)
{
	int n, err = wp_slot_check(region, &last);

	if (err < 0)
		return err;
	if ((n = wp_slot_plan(region, &machine.caps, slot, NULL)) < 0)
		return wp_cause_set(&last, WP_CAUSE_WATCH_LENGTH,
		    (size_t)region->len, (unsigned long long)region->addr,
		    machine.caps.slots,
		    (unsigned)(machine.caps.slots * machine.caps.range));
	return (err = check_mapped(region, readable)) < 0 ? err : n;
}

/*
 * The machine.
 */

static int
take_features(const struct wp_features *features)
{
	machine.caps = features->caps;
	/* some slots may be in use at the moment */
	if (machine.caps.slots < wp_slot_usual.slots)
		machine.caps.slots = wp_slot_usual.slots;
	machine.kernel = features->kernel;
	machine.delivery = features->sigtrap && !wp_cpu_traps_before() ?
	    &wp_deliver_sigtrap : &wp_deliver_async;
	return 0;
}

static int
take_ptrace(void)
{
	machine.caps = wp_slot_usual;
	machine.delivery = &wp_deliver_ptrace;
	return 0;
}

/* Choose the delivery that the user wants, and no other.  err: 0, or why
   perf_event_open cannot be used. */
static int
choose_forced(const char *name, const struct wp_features *features, int err)
{
	if (strcmp(name, wp_deliver_ptrace.name) == 0)
		return take_ptrace();
	if (strcmp(name, wp_deliver_async.name) != 0 &&
	    strcmp(name, wp_deliver_sigtrap.name) != 0)
		return wp_cause_set(&last, WP_CAUSE_DELIVERY, name,
		    "it is one of sigtrap, async and ptrace");
	if (err < 0)
		return err;
	if (strcmp(name, wp_deliver_sigtrap.name) == 0 && !features->sigtrap)
		return wp_cause_set(&last, WP_CAUSE_DELIVERY, name,
		    "this kernel has no sigtrap events (Linux 5.13 has)");
	if (strcmp(name, wp_deliver_sigtrap.name) == 0 && wp_cpu_traps_before())
		return wp_cause_set(&last, WP_CAUSE_DELIVERY, name,
		    "this processor traps before the access, which takes "
		    "async");
	(void)take_features(features);
	if (strcmp(name, wp_deliver_async.name) == 0)
		machine.delivery = &wp_deliver_async;
	return 0;
}

/* Valgrind takes a trap for a fault of the instruction, which it then starts
   again. */
static bool
is_under_valgrind(void)
{
	const char *preloaded = wp_setting("LD_PRELOAD");

	return preloaded != NULL &&
	    strstr(preloaded, "/vgpreload_core-") != NULL;
}

/* Determine once what this machine offers.  This is done early, as later the
   program may have freed its environment, or be about to end. */
static int
choose(void)
{
	struct wp_features features;
	const char *forced;
	int err;

	if (machine.delivery != NULL)
		return 0;
	forced = wp_setting("WATCHPOINT_DELIVERY");
	if (is_under_valgrind())
		return wp_cause_set(&last, WP_CAUSE_VALGRIND);
	err = wp_probe_features(&features, &last);
	machine.forced = forced != NULL && *forced != '\0';
	if (machine.forced)
		return choose_forced(forced, &features, err);
	if (err == 0)
		return take_features(&features);
	if (err != -EACCES && err != -EPERM && err != -ENOSYS)
		return err;
	machine.refused = last;
	return take_ptrace();
}

/* Without a helper, hits are reported in plain lines.  A caller that did not
   choose that gets a message. */
static void
warn_short(const struct wp_attr *attr)
{
	static bool warned;
	struct wp_cause cause;
	char line[sizeof(cause.text) + 64];

	if ((attr->action & WP_PRINT) == 0 || warned ||
	    wp_helper_start(&cause) == 0 || cause.code == WP_CAUSE_HELPER_OFF)
		return;
	warned = true;
	(void)snprintf(line, sizeof(line), "reports are short: %s", cause.text);
	wp_fallback_line(line);
}

static int
install_handlers(void)
{
	int err = 0;

	if (!wp_state.handling) {
		wp_output_open();
		err = wp_trap_install(machine.delivery->by_descriptor);
	}
	return err < 0 ? wp_cause_errno(&last, "installing signal handlers",
	    -err) : 0;
}

/* Whether the program has taken our signals or blocks them here, which is
   reported once.  Called without the lock, because that blocks the signals. */
static bool
warn_taken(void)
{
	static _Atomic bool warned;
	struct wp_cause cause;

	if (wp_trap_check(&cause) == 0)
		return false;
	if (!atomic_exchange(&warned, true))
		wp_fallback_line(cause.text);
	return true;
}

/*
 * Opening.
 */

static void
name(struct wp_watch *w)
{
	if (w->attr.label == NULL)
		(void)snprintf(w->label, sizeof(w->label), "%#llx",
		    (unsigned long long)w->region.addr);
}

/* Set all members of a new watch except those that its delivery sets. */
static int
fill(struct wp_watch *w, const struct wp_attr *attr, bool *readable)
{
	int n;

	w->region = (struct wp_region){
		.addr = (uintptr_t)attr->addr,
		.len = wp_region_bytes(attr->access, attr->len),
		.access = attr->access,
	};
	if ((n = plan(&w->region, w->slot, readable)) < 0)
		return n;
	w->nslots = (unsigned)n;
	w->is_hit = NULL;
	w->attr = *attr;
	if (attr->label != NULL) {
		w->label[0] = '\0';
		(void)strncat(w->label, attr->label, sizeof(w->label) - 1);
		w->attr.label = w->label;
	}
	name(w);
	w->tid = attr->threads == WP_THIS_THREAD ? wp_libc_tid() : 0;
	/* reads by execve(2) would make a signal that kills the new program, so
	   the kernel's accesses count only for write watches */
	w->kernel = machine.kernel && attr->access == WP_WRITE &&
	    (attr->flags & WP_USER_ONLY) == 0;
	w->inexact = false;
	return 0;
}

/* Reset the counts. */
static void
begin(struct wp_watch *w)
{
	atomic_store(&w->hits, 0);
	atomic_store(&w->accounted, 0);
	for (unsigned i = 0; i < WP_SLOTS_MAX; i++)
		atomic_store(&w->slot_accounted[i], 0);
	atomic_store(&w->suppressed, 0);
	atomic_store(&w->settling, false);
	wp_baseline_drop(w);
	atomic_store(&w->until,
	    w->attr.limit > 0 ? w->attr.limit : UINT64_MAX);
	atomic_store(&w->on, false);
	atomic_store(&w->disarmed, false);
}

/* If perf_event_open is refused, only ptrace is left; if that fails too, both
   are reported. */
static int
explain_refusal(int err)
{
	const struct wp_cause ptrace = last;

	if (machine.refused.code == WP_CAUSE_NONE)
		return err;
	(void)wp_cause_set(&last, WP_CAUSE_NO_DELIVERY, machine.refused.text,
	    ptrace.text);
	last.err = machine.refused.err;
	return -last.err;
}

static void
warn_inexact(const struct wp_watch *w)
{
	static bool warned;

	if (!w->inexact || warned)
		return;
	warned = true;
	wp_fallback_line(w->delivery->by_descriptor ?
	    "threads created later are not watched: that needs a helper which "
	    "may trace this program" :
	    "a thread may be missed, or counted twice: threads come and go, "
	    "and there is no helper to hold them still");
}

/* Open the events of a watch, and publish its serial; enable it if `on'.  After
   a failure it has its serial if it has events. */
static int
arm(struct wp_watch *w, const struct wp_delivery *delivery, uint32_t serial,
    bool on, bool readable)
{
	int err;

	begin(w);
	w->delivery = delivery;
	if ((err = delivery->open(w, serial, &last)) < 0) {
		w->delivery = NULL;
		return explain_refusal(err);
	}
	if (atomic_load(&w->serial) == 0)
		wp_watch_publish(w, serial);
	warn_inexact(w);
	if (on && !atomic_load(&w->on) && (err = delivery->enable(w)) < 0)
		return wp_cause_errno(&last, "enabling it", -err);
	if (on)
		wp_baseline_take(w, readable);
	return 0;
}

/* Events of other threads need a tracer as well, and under a tracer some
   processors do not trap after a hit; debug registers are better there. */
static int
arm_first(struct wp_watch *w, uint32_t serial, bool on, bool readable)
{
	if (machine.delivery == &wp_deliver_async && !machine.forced &&
	    wp_cpu_kernel_steps() && w->tid == 0 &&
	    wp_helper_start(NULL) == 0 &&
	    arm(w, &wp_deliver_ptrace, serial, on, readable) == 0)
		return 0;
	return arm(w, machine.delivery, serial, on, readable);
}

/* Complete the closing of a watch, unless a handler is using it. */
static void
finish(struct wp_watch *w)
{
	if (atomic_load(&w->serial) != 0 || w->delivery == NULL ||
	    atomic_load(&w->users) != 0)
		return;
	w->delivery->close(w);
	w->delivery = NULL;
	(void)atomic_fetch_sub(&unfinished, 1);
}

static void
finish_all(void)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX &&
	    atomic_load(&unfinished) > 0; i++)
		finish(&wp_state.watch[i]);
}

static bool
sees_reads(const struct wp_watch *w)
{
	return w->region.access == WP_READ || w->region.access == WP_ACCESS;
}

/* From here on signals of the watch are ignored.  Close it if that is possible
   now; returns whether it was. */
static bool
unpublish(struct wp_watch *w)
{
	atomic_store(&w->serial, 0);
	(void)atomic_fetch_sub(&wp_state.nopen, 1);
	(void)atomic_fetch_sub(&wp_state.nreads, sees_reads(w));
	(void)atomic_fetch_add(&unfinished, 1);
	wp_helper_describe(w);
	if (atomic_load(&w->users) != 0)
		(void)w->delivery->disable(w);
	finish(w);
	return w->delivery == NULL;
}

/* Called in the child of fork(2) with the table locked.  Returns 0, or -errno
   after printing the reason. */
static int
reopen(struct wp_watch *w)
{
	char line[sizeof(last.text) + 2 * WP_LABEL_MAX];
	uint32_t serial = atomic_exchange(&w->serial, 0);
	bool on = atomic_load(&w->on);
	int err;

	(void)wp_helper_start(NULL);
	if ((err = arm(w, w->delivery, serial, on, false)) < 0) {
		atomic_store(&w->serial, serial);
		(void)snprintf(line, sizeof(line),
		    "%s is not watched in process %d: %s", w->label, getpid(),
		    last.text);
		wp_fallback_line(line);
	}
	return err;
}

static int
open_watch(const struct wp_attr *attr, struct wp_watch **out)
{
	bool readable = false;
	struct wp_watch *w;
	uint32_t serial;
	int err;

	finish_all();
	if ((err = choose()) < 0)
		return err;
	if (!wp_fork_prepare(reopen))
		return wp_cause_set(&last, WP_CAUSE_NO_MEMORY);
	if ((w = wp_watches_new(&serial)) == NULL)
		return wp_cause_set(&last, WP_CAUSE_WATCHES, WP_WATCHES_MAX);
	if ((err = fill(w, attr, &readable)) < 0 ||
	    (err = install_handlers()) < 0)
		return err;
	(void)wp_helper_start(NULL);	/* optional: other deliveries need no
					   helper */
	(void)atomic_fetch_add(&wp_state.nreads, sees_reads(w));
	err = arm_first(w, serial, (attr->flags & WP_DISABLED) == 0, readable);
	if (atomic_load(&w->serial) != 0)
		(void)atomic_fetch_add(&wp_state.nopen, 1);
	else
		(void)atomic_fetch_sub(&wp_state.nreads, sees_reads(w));
	if (err < 0) {
		if (atomic_load(&w->serial) != 0)
			(void)unpublish(w);
		return err;
	}
	warn_short(&w->attr);
	*out = w;
	return 0;
}

/* Keep the objects loaded that the next hit needs. */
static void
pin(const struct wp_attr *attr)
{
	wp_pin(&wp_state);
	wp_pin(attr->addr);
	wp_pin((const void *)(uintptr_t)attr->handler);
}

int
wp_open(const struct wp_attr *from, struct wp_watch **out)
{
	struct wp_watch *w = NULL;
	struct wp_attr attr = {0};
	int err;

	last.code = WP_CAUSE_NONE;
	if (from == NULL || out == NULL)
		return wp_open_refuse("there is none, or no place for the watch");
	if ((err = take_attr(&attr, from)) == 0 &&
	    (err = check_attr(&attr)) == 0) {
		pin(&attr);
		if ((err = wp_copies_join(&last)) == 0) {
			wp_watches_lock();
			err = open_watch(&attr, &w);
			wp_watches_unlock();
		}
	}
	if (err == 0)
		(void)warn_taken();
	*out = w;
	return err;
}

/*
 * Open watches.
 */

/* Wait until all handlers of the watch have returned, or another thread has
   closed it and its entry is used again.  Not a cancellation point. */
static void
await_users(struct wp_watch *w)
{
	uint32_t users;

	while ((users = atomic_load(&w->users)) != 0 &&
	    atomic_load(&w->serial) == 0)
		(void)wp_futex_wait(&w->users, users, 1);
}

void
wp_close(struct wp_watch *w)
{
	unsigned ms = 0;
	bool done;

	if (w == NULL)
		return;
	if (!wp_trap_inside() && !warn_taken())
		ms = LAST_WAIT;
	wp_watches_lock();
	finish_all();
	if (atomic_load(&w->serial) != 0 && !wp_trap_inside())
		wp_helper_look(w, &ms);
	done = atomic_load(&w->serial) == 0 || unpublish(w);
	wp_watches_unlock();
	if (done || wp_trap_inside())
		return;
	await_users(w);
	wp_watches_lock();
	finish(w);
	wp_watches_unlock();
}

static bool
is_open(const struct wp_watch *w)
{
	return w != NULL && atomic_load(&w->serial) != 0;
}

static int
not_open(void)
{
	return failed_plainly(EINVAL, "the watch is not open");
}

static int
switched(int err)
{
	return err == 0 ? 0 : failed_plainly(-err, err == -EBADF ?
	    "the program has closed its descriptors, as closefrom(3) does: "
	    "it no longer watches" : err == -EPIPE ?
	    "the helper, which armed its threads, has ended" :
	    "its events cannot be changed");
}

static int
enable(struct wp_watch *w)
{
	int err;

	if (!is_open(w))
		return not_open();
	if (w->attr.limit > 0)
		atomic_store(&w->until, atomic_load(&w->hits) + w->attr.limit);
	wp_baseline_drop(w);
	if ((err = w->delivery->enable(w)) == 0)
		wp_baseline_take(w, false);
	return switched(err);
}

/* The lock is safe in a signal handler: a thread that holds it has all signals
   blocked, and does not wait for handlers. */
int
wp_enable(struct wp_watch *w)
{
	int err;

	last.code = WP_CAUSE_NONE;
	wp_watches_lock();
	err = enable(w);
	wp_watches_unlock();
	return err;
}

int
wp_disable(struct wp_watch *w)
{
	last.code = WP_CAUSE_NONE;
	if (!is_open(w))
		return not_open();
	return switched(w->delivery->disable(w));
}

int
wp_count(const struct wp_watch *w, uint64_t *count)
{
	last.code = WP_CAUSE_NONE;
	if (!is_open(w))
		return not_open();
	return switched(w->delivery->count(w, count));
}

static int
move_watch(struct wp_watch *w, uint64_t addr, size_t len)
{
	struct wp_region region = w->region;
	struct wp_slot slot[WP_SLOTS_MAX];
	bool readable = false;
	int err;

	region.addr = addr;
	region.len = wp_region_bytes(region.access, len);
	if ((err = plan(&region, slot, &readable)) < 0)
		return err;
	if ((unsigned)err != w->nslots)
		return wp_cause_set(&last, WP_CAUSE_MOVE,
		    (unsigned long long)addr, (unsigned)err, w->nslots);
	wp_baseline_drop(w);
	if ((err = w->delivery->move(w, slot, &last)) < 0)
		return err;
	name(w);
	wp_helper_moved(w);
	if (atomic_load(&w->on))
		wp_baseline_take(w, readable);
	return 0;
}

/* With one thread, only signal handlers can interfere, and what those may do to
   a watch does no harm here (see self_events.c).  Locking would take a quarter
   of the time of a move. */
static bool
is_alone(const struct wp_watch *w)
{
	return is_open(w) && wp_libc_alone() && w->delivery->counts_all;
}

/* as_is: keep the current length. */
static int
move_to(struct wp_watch *w, const volatile void *addr, size_t len, bool as_is)
{
	bool alone = is_alone(w);
	int err;

	last.code = WP_CAUSE_NONE;
	wp_pin(addr);
	if (!alone)
		wp_watches_lock();
	err = is_open(w) ? move_watch(w, (uintptr_t)addr, as_is ?
	    w->region.len : len) : not_open();
	if (!alone)
		wp_watches_unlock();
	return err;
}

int
(wp_move)(struct wp_watch *w, const volatile void *addr)
{
	return move_to(w, addr, 0, true);
}

int
wp_move_len(struct wp_watch *w, const volatile void *addr, size_t len)
{
	return len > 0 ? move_to(w, addr, len, false) :
	    wp_open_refuse("len is 0: nothing to watch");
}
