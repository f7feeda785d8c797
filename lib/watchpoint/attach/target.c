/*
 * target: processes under watch.
 *
 * Attaching is exact because it happens while every thread is stopped: a
 * thread exists and gets events of its own, or is made later by one that has
 * them and inherits.  Without the stop, a thread made between the look at the
 * list and the opening of its maker's events is missed or covered twice.
 *
 * The stop is made from a thread that lives only for it: where a thread of the
 * target sleeps in the kernel and cannot be released yet, the end of the
 * tracing thread releases it.
 */
#include "attach/target.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "attach/target_private.h"
#include "ring/uptime.h"

/* How long to look for new threads of a process that cannot be held, in ms. */
enum { RESCAN_LIMIT = 500 };

/* Those that BPF programs write to, with what these read.  0; -errno: the
   kernel's do as well; or with a cause, > 0: they do not. */
static int
open_sampled(struct wp_target *target, size_t size, struct wp_cause *cause)
{
	const uint32_t with = target->options.with;
	int err;

	if (with != 0 && wp_counters_open(&target->counters, with, cause) < 0)
		return 1;
	err = wp_samplers_rings(&target->rings, &target->options, size,
	    with != 0 ? &target->counters : NULL, &target->no_bpf);
	target->all_sampled = err == 0;
	if (err == 0 && target->options.tickets &&
	    !target->options.whole_stacks)
		wp_samplers_know(&target->samplers,
		    wp_rings_count(target->rings), target->options.tally);
	if (err == 0 || with == 0)
		return err;
	if (cause != NULL)
		*cause = target->no_bpf;
	return 1;
}

/* Events that only count write no records, but only an event with a ring
   reports its end to a poller. */
static int
open_rings(struct wp_target *target, struct wp_cause *cause)
{
	struct wp_options *options = &target->options;
	const size_t size = options->count ? 0 : wp_rings_usual_size();
	int got;

	options->threads = options->count && options->bpf &&
	    wp_thread_counts_open(&target->thread_counts) == 0;
	if (options->eager)
		return wp_rings_open_eager(&target->rings, 0, cause);
	if (options->bpf && !options->count && !options->stop &&
	    (got = open_sampled(target, size, cause)) >= 0)
		return got == 0 ? 0 : -ENOTSUP;
	return wp_rings_open(&target->rings, size, cause);
}

int
wp_target_new(struct wp_target **out, const struct wp_features *features,
    const struct wp_options *options, struct wp_cause *cause)
{
	struct wp_target *target = calloc(1, sizeof(*target));
	int err;

	if (target == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	target->features = *features;
	target->options = *options;
	target->frozen_ms = -1;
	target->thread_counts.map = target->uprobes.map = -1;
	(void)pthread_mutex_init(&target->changing, NULL);
	wp_options_fit(&target->options, features);
	if (options->registers) {
		*out = target;
		return 0;
	}
	if ((err = open_rings(target, cause)) < 0) {
		wp_thread_counts_close(&target->thread_counts);
		wp_counters_close(&target->counters);
		free(target);
		return err;
	}
	*out = target;
	return 0;
}

static int
plan_watch(const struct wp_target *target, const struct wp_region *region,
    struct wp_watched *watch, struct wp_cause *cause)
{
	int got = target->options.everywhere && wp_slot_in_kernel(region) ? 0 :
	    wp_slot_check(region, cause);

	if (got < 0)
		return got;
	*watch = (struct wp_watched){.region = *region};
	got = wp_slot_plan(region, &target->features.caps, watch->slot, cause);
	if (got < 0)
		return got;
	watch->nslots = (unsigned)got;
	return 0;
}

bool
wp_target_uprobes(const struct wp_target *target)
{
	const struct wp_options *options = &target->options;

	return options->uprobes && !options->follow && !options->everywhere &&
	    !options->stop && (options->count ? options->threads :
	    options->tickets && target->all_sampled);
}

static bool
may_be_uprobe(const struct wp_target *target, const struct wp_watched *watch)
{
	return watch->region.access == WP_EXEC && watch->region.insn &&
	    !watch->uprobe && wp_target_uprobes(target);
}

/* Where watches take so many slots, have as many be uprobes as there are too
   many, the last ones first.  How many slots they take then. */
static unsigned
spare(struct wp_target *target, size_t first, size_t n, unsigned slots)
{
	const unsigned most = target->features.caps.slots;

	for (size_t w = first + n; w-- > first && slots > most;) {
		struct wp_watched *watch = &target->watch[w];

		if (!may_be_uprobe(target, watch))
			continue;
		watch->uprobe = true;
		slots -= watch->nslots;
	}
	return slots;
}

static int
add_watches(struct wp_target *target, const struct wp_region *regions,
    size_t n, struct wp_cause *cause)
{
	size_t first = target->nwatches;
	struct wp_watched *watch;
	unsigned slots = 0;

	if (n > WP_EVENT_REFERENCE - first)	/* events name them by that */
		return wp_cause_set(cause, WP_CAUSE_RUN_FULL, (unsigned)first);
	for (size_t i = 0; i < n; i++)
		if (wp_array_room(&target->watch, first + i,
		    &target->watch_cap, sizeof(*watch)) < 0)
			return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	watch = target->watch;
	for (size_t i = 0; i < n; i++) {
		int err = plan_watch(target, &regions[i], &watch[first + i],
		    cause);

		if (err < 0)
			return err;
		slots += watch[first + i].nslots;
	}
	slots = spare(target, first, n, slots);
	if (slots > target->features.caps.slots)
		return wp_cause_set(cause, WP_CAUSE_TOO_MANY, slots,
		    target->features.caps.slots);
	for (size_t i = 0; i < n; i++)
		watch[first + i].first = i == 0;
	target->nwatches += n;
	return (int)first;
}

int
wp_target_watch(struct wp_target *target, const struct wp_region *regions,
    size_t n, struct wp_cause *cause)
{
	int first;

	(void)pthread_mutex_lock(&target->changing);
	first = add_watches(target, regions, n, cause);
	(void)pthread_mutex_unlock(&target->changing);
	return first;
}

/* Watches first to first + n - 1 are those of the process that a watch is
   in. */
static size_t
process_watches(const struct wp_target *target, size_t watch, size_t *first)
{
	size_t w = watch;

	while (!target->watch[w].first)
		w--;
	*first = w;
	while (++w < target->nwatches && !target->watch[w].first)
		;
	return w - *first;
}

static unsigned
count_slots(const struct wp_target *target, size_t first, size_t n)
{
	unsigned slots = 0;

	for (size_t w = first; w < first + n; w++)
		if (!target->watch[w].uprobe)
			slots += target->watch[w].nslots;
	return slots;
}

int
wp_target_places(struct wp_target *target, size_t watch, const uint64_t *addr,
    unsigned n, struct wp_cause *cause)
{
	struct wp_watched *watched = &target->watch[watch];
	size_t first, all = process_watches(target, watch, &first);
	unsigned slots = count_slots(target, first, all);

	if (slots + n > target->features.caps.slots && !watched->uprobe &&
	    may_be_uprobe(target, watched)) {
		watched->uprobe = true;
		slots -= watched->nslots;
	}
	if (!watched->uprobe)
		slots = spare(target, first, all, slots + n);
	if (slots > target->features.caps.slots ||
	    watched->nslots + n > WP_SLOTS_MAX)
		return wp_cause_set(cause, WP_CAUSE_TOO_MANY, slots,
		    target->features.caps.slots);
	(void)pthread_mutex_lock(&target->changing);
	for (unsigned i = 0; i < n; i++) {
		struct wp_slot *slot = &watched->slot[watched->nslots++];

		*slot = watched->slot[0];
		slot->addr = addr[i];
	}
	(void)pthread_mutex_unlock(&target->changing);
	return 0;
}

void
wp_target_local(struct wp_target *target, size_t watch, uint64_t block)
{
	target->watch[watch].block = block;
}

void
wp_target_unwatch(struct wp_target *target, size_t first, size_t n)
{
	struct wp_watched *watch = &target->watch[first];

	(void)pthread_mutex_lock(&target->changing);
	target->nwatches -= n;
	memmove(watch, watch + n,
	    (target->nwatches - first) * sizeof(*watch));
	(void)pthread_mutex_unlock(&target->changing);
}

/* Whether a thread lives: others may after the first has ended. */
static bool
has_threads(pid_t pid)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int n = wp_proc_threads(pid, &tids, &cap);
	bool any = false;

	for (int i = 0; i < n && !any; i++)
		any = !wp_proc_exiting(tids[i]);
	free(tids);
	return any;
}

static int
no_process(pid_t pid, struct wp_cause *cause)
{
	if (!wp_proc_mounted())
		return wp_cause_set(cause, WP_CAUSE_NO_PROC);
	return wp_cause_set(cause, pid > 0 && wp_proc_hides(pid) ?
	    WP_CAUSE_HIDDEN : WP_CAUSE_NO_PROCESS, pid);
}

int
wp_target_check(pid_t pid, struct wp_cause *cause)
{
	struct wp_proc_status status;
	const int err = pid <= 0 ? -ESRCH : wp_proc_status(pid, &status);

	if (err == -EMFILE || err == -ENFILE)
		return wp_cause_errno(cause, "looking at a process", -err);
	if (err < 0)
		return no_process(pid, cause);
	if (status.tgid == getpid())
		return wp_cause_set(cause, WP_CAUSE_SELF, pid);
	if (status.tgid != pid)
		return wp_cause_set(cause, WP_CAUSE_NOT_A_PROCESS, pid,
		    status.tgid, status.tgid);
	if (status.kernel_thread)
		return wp_cause_set(cause, WP_CAUSE_KERNEL_THREAD, pid);
	if (has_threads(pid))
		return 0;
	return wp_cause_set(cause, status.state == 'Z' ? WP_CAUSE_ZOMBIE :
	    WP_CAUSE_GONE, pid);
}

int
wp_target_mapped(pid_t pid, const struct wp_region *region,
    struct wp_cause *cause)
{
	uint64_t at = region->addr;
	int got = wp_slot_check(region, cause);

	if (got < 0)
		return got;
	got = wp_proc_covers(pid, &at,
	    wp_region_bytes(region->access, region->len));
	if (got == -ESRCH)
		return wp_cause_set(cause, WP_CAUSE_NO_PROCESS, pid);
	if (got == -EACCES || got == -EPERM)
		return wp_cause_denied(cause, pid);
	if (got < 0)
		return wp_cause_errno(cause, "reading its mappings", -got);
	if (got == 0)
		return wp_cause_set(cause, WP_CAUSE_UNMAPPED,
		    (unsigned long long)at, pid, pid);
	return 0;
}

/* The watches that a process is to have. */
struct job {
	size_t first, n;
	size_t events;		/* open before, for others */
	unsigned threads;	/* of the process, as far as they are known */
};

static unsigned
job_slots(const struct wp_target *target, const struct job *job)
{
	return count_slots(target, job->first, job->n);
}

/* How many descriptors all of a process's threads take. */
static unsigned
job_descriptors(const struct wp_target *target, const struct job *job,
    unsigned threads)
{
	return threads * (wp_rings_count(target->rings) *
	    job_slots(target, job) + 1);
}

/* Why an event could not be opened for a thread. */
static int
explain_open(const struct wp_target *target, const struct job *job, int err,
    pid_t tid, struct wp_cause *cause)
{
	struct wp_proc_status status = {0}, tracer = {0};
	struct rlimit limit = {0};
	char who[128] = "and other perf events hold the rest (see what runs "
	    "perf, gdb or watchctl on it)";

	(void)wp_proc_status(tid, &status);
	switch (-err) {
	case ENOSPC:
		if (status.tracer != 0 &&
		    wp_proc_status(status.tracer, &tracer) == 0 &&
		    tracer.tgid != getpid())
			(void)snprintf(who, sizeof(who), "and its tracer, "
			    "%.32s (process %d), may hold the rest",
			    tracer.comm, tracer.tgid);
		return wp_cause_set(cause, WP_CAUSE_NO_SLOT, tid,
		    job_slots(target, job),
		    target->features.caps.slots, who);
	case EMFILE:
		(void)getrlimit(RLIMIT_NOFILE, &limit);
		/* without a descriptor /proc cannot be read */
		return wp_cause_set(cause, WP_CAUSE_DESCRIPTORS,
		    job_descriptors(target, job, job->threads > 0 ?
		    job->threads : status.threads > 0 ? status.threads : 1),
		    (unsigned)limit.rlim_cur);
	case EACCES:
	case EPERM:
		return wp_cause_denied(cause, tid);
	case ENOMEM:
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	default:
		return wp_cause_errno(cause, "perf_event_open", -err);
	}
}

int
wp_target_explain(const struct wp_target *target, size_t first, size_t n,
    int err, pid_t tid, struct wp_cause *cause)
{
	const struct job job = {first, n, target->events.n, 0};

	return explain_open(target, &job, err, tid, cause);
}

void
wp_target_attr(const struct wp_target *target, size_t watch, unsigned slot,
    struct perf_event_attr *attr)
{
	const struct wp_watched *watched = &target->watch[watch];

	wp_attr_watch(attr, &watched->slot[slot], &target->options,
	    watched->first && slot == 0);
}

/* Where nothing is ever mapped, so that an event there only reports maps and
   threads. */
enum { NOWHERE = 8 };

/* The same of one that watches nothing any more. */
static void
attr_off(const struct wp_target *target, size_t watch, unsigned slot,
    struct perf_event_attr *attr)
{
	wp_target_attr(target, watch, slot, attr);
	attr->bp_addr = NOWHERE;
}

/* Put it where a thread that is stopped has its own; one that has no control
   block has none. */
static void
put_local(const struct wp_watched *watched, pid_t tid,
    struct perf_event_attr *attr)
{
	const uint64_t block = watched->block == 0 ? 0 :
	    wp_trace_thread_block(tid);

	if (block != 0)
		attr->bp_addr += block - watched->block;
	else if (watched->block != 0)
		attr->bp_addr = NOWHERE;
}

/* The events of a uprobe are not these, but maps, names, forks and exits are
   reported by those of a process's first watch. */
static int
open_beside(const struct wp_target *target, struct wp_events *events, size_t w,
    pid_t tid)
{
	struct perf_event_attr attr;

	if (!target->watch[w].first)
		return 0;
	wp_target_attr(target, w, 0, &attr);
	wp_attr_beside(&attr);
	return wp_events_open(events, &attr, (uint16_t)w, 0, tid,
	    target->rings);
}

static int
open_slots(const struct wp_target *target, struct wp_events *events, size_t w,
    pid_t tid)
{
	const bool off = target->watch[w].off;
	struct perf_event_attr attr;
	int err = 0;

	if (target->watch[w].uprobe)
		return open_beside(target, events, w, tid);
	for (unsigned s = 0; s < target->watch[w].nslots && err == 0; s++) {
		const size_t first = events->n;

		(off ? attr_off : wp_target_attr)(target, w, s, &attr);
		if (!off)
			put_local(&target->watch[w], tid, &attr);
		err = wp_events_open(events, &attr, (uint16_t)w, (uint16_t)s,
		    tid, target->rings);
		wp_samplers_attach(&target->samplers, events, first, w, s);
		wp_thread_counts_attach(&target->thread_counts, events, first,
		    w);
		for (size_t i = first; i < events->n; i++)
			events->event[i].off = off;
	}
	return err;
}

int
wp_target_open_thread(const struct wp_target *target, struct wp_events *events,
    size_t first, size_t n, pid_t tid)
{
	const size_t before = events->n;
	int err = 0;

	for (size_t w = first; w < first + n && err == 0; w++)
		err = open_slots(target, events, w, tid);
	if (err == 0)
		err = wp_events_reference(events, &target->options, tid,
		    target->rings);
	if (err < 0)
		wp_events_close(events, before);
	return err;
}

/* 1, 0 when it has ended, or -errno. */
static int
open_thread(struct wp_target *target, const struct job *job, pid_t tid)
{
	const int err = wp_target_open_thread(target, &target->events,
	    job->first, job->n, tid);

	return err == 0 ? 1 : err == -ESRCH ? 0 : err;
}

/* Read a watch's bytes, through any of the stopped threads that has not
   ended. */
static void
read_before(struct wp_watched *watched, const struct wp_hold *hold)
{
	const size_t size = watched->region.len < sizeof(watched->before) ?
	    watched->region.len : sizeof(watched->before);
	ssize_t got = -1;

	for (size_t i = 0; i < hold->n && got <= 0; i++)
		got = wp_proc_read(hold->thread[i].tid, watched->region.addr,
		    watched->before, size);
	watched->nbefore = got > 0 ? (unsigned)got : 0;
}

void
wp_target_read_before(struct wp_target *target, const struct wp_hold *hold,
    size_t first, size_t n)
{
	for (size_t w = first; w < first + n && hold->n > 0; w++)
		read_before(&target->watch[w], hold);
}

/* Fewer threads than this are not worth a move. */
enum { WORTH_MOVING = 16 };

/* Where events are opened.  The kernel puts one into a thread by interrupting
   the processor that the thread ran on, and waits for that; on its own
   processor it need not.  So threads are taken processor by processor. */
struct place {
	bool moves;
	cpu_set_t permitted;
	int cpu;		/* where we are; < 0: anywhere */
};

static int
cpu_order(const void *a, const void *b)
{
	return ((const struct wp_held *)a)->cpu -
	    ((const struct wp_held *)b)->cpu;
}

/* Only a thread with real-time priority may move to processors that others
   use. */
static void
place_begin(struct place *place, struct wp_hold *hold, pid_t pid)
{
	struct sched_param param;
	int policy;

	*place = (struct place){.cpu = -1};
	if (hold->n < WORTH_MOVING || pthread_getschedparam(pthread_self(),
	    &policy, &param) != 0 || policy != SCHED_FIFO ||
	    sched_getaffinity(0, sizeof(place->permitted),
	    &place->permitted) != 0)
		return;
	place->moves = true;
	for (size_t i = 0; i < hold->n; i++)
		hold->thread[i].cpu = wp_proc_cpu(pid, hold->thread[i].tid);
	qsort(hold->thread, hold->n, sizeof(*hold->thread), cpu_order);
}

static void
place_at(struct place *place, int cpu)
{
	cpu_set_t there;

	if (!place->moves || cpu == place->cpu || cpu < 0 ||
	    cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &place->permitted))
		return;
	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	if (sched_setaffinity(0, sizeof(there), &there) == 0)
		place->cpu = cpu;
}

static void
place_end(const struct place *place)
{
	if (place->cpu >= 0)
		(void)sched_setaffinity(0, sizeof(place->permitted),
		    &place->permitted);
}

/* As wp_target_open_events, from a place. */
static int
open_all(struct wp_target *target, struct place *place, const struct job *job,
    const struct wp_hold *hold, struct wp_cause *cause)
{
	for (size_t i = 0; i < hold->n; i++) {
		const struct wp_held *held = &hold->thread[i];
		int got;

		place_at(place, held->cpu);
		if ((got = open_thread(target, job, held->tid)) < 0)
			return explain_open(target, job, got, held->tid, cause);
		target->threads += (unsigned)got;
	}
	return 0;
}

int
wp_target_open_events(struct wp_target *target, struct wp_hold *hold,
    pid_t pid, size_t first, size_t n, struct wp_cause *cause)
{
	const struct job job = {
		first, n, target->events.n, (unsigned)hold->n,
	};
	const unsigned threads = target->threads;
	struct place place;
	int err;

	place_begin(&place, hold, pid);
	target->armed = wp_clock_ns();
	err = open_all(target, &place, &job, hold, cause);
	place_end(&place);
	if (err < 0) {
		wp_events_close(&target->events, job.events);
		target->threads = threads;
		return err;
	}
	wp_target_read_before(target, hold, first, n);
	wp_uprobes_turn(&target->uprobes, first, n, true);
	return 0;
}

void
wp_target_was_frozen(struct wp_target *target, uint64_t began)
{
	const double frozen = (double)(wp_clock_ns() - began) / 1e6;

	if (frozen > target->frozen_ms)
		target->frozen_ms = frozen;
}

/* One attach, and its outcome, between the caller and the tracing thread. */
struct attach {
	struct wp_target *target;
	pid_t pid;
	struct job job;
	struct wp_cause *cause;
	bool held;		/* the process could be held */
	int result;
};

static void *
attach_held(void *arg)
{
	struct attach *attach = arg;
	struct wp_target *target = attach->target;
	const struct sched_param first = {.sched_priority = 1};
	struct wp_hold hold = {0};
	uint64_t began;

	/* the target waits for this thread, which should not wait for its turn
	   on a busy machine; where that is not permitted, it does */
	(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	began = wp_clock_ns();
	attach->result = wp_hold_process(&hold, attach->pid);
	if (attach->result < 0)
		return NULL;
	attach->held = true;
	attach->result = wp_target_open_events(target, &hold, attach->pid,
	    attach->job.first, attach->job.n, attach->cause);
	wp_hold_release(&hold);
	wp_target_was_frozen(target, began);
	return NULL;
}

static bool
is_covered(const struct wp_events *events, size_t first, pid_t tid)
{
	for (size_t i = first; i < events->n; i++)
		if (events->event[i].tid == tid)
			return true;
	return false;
}

/* Where the process cannot be held: read the list again until it has no new
   thread twice in a row, or the process creates threads for too long.  A thread
   may still slip through, or be covered twice. */
static int
attach_running(struct wp_target *target, const struct attach *attach)
{
	const long limit = wp_clock_ms() + RESCAN_LIMIT;
	size_t cap = 0, first = target->events.n;
	unsigned before = target->threads, quiet = 0;
	pid_t *tids = NULL;
	int n = 0, got = 0;

	while (quiet < 2 && got >= 0 && wp_clock_ms() < limit &&
	    (n = wp_proc_threads(attach->pid, &tids, &cap)) > 0) {
		quiet++;
		for (int i = 0; i < n && got >= 0; i++) {
			if (is_covered(&target->events, first, tids[i]))
				continue;
			got = open_thread(target, &attach->job, tids[i]);
			if (got < 0)
				got = explain_open(target, &attach->job, got,
				    tids[i], attach->cause);
			else if (got > 0)
				quiet = 0;
			target->threads += got > 0;
		}
	}
	free(tids);
	if (got >= 0 && target->events.n == first)
		got = wp_cause_set(attach->cause, WP_CAUSE_GONE, attach->pid);
	if (got < 0) {
		wp_events_close(&target->events, first);
		target->threads = before;
		return got;
	}
	wp_uprobes_turn(&target->uprobes, attach->job.first, attach->job.n,
	    true);
	target->inexact = true;
	return 0;
}

int
wp_target_load(struct wp_target *target, size_t first, size_t n, pid_t pid,
    struct wp_cause *cause)
{
	const int err = wp_uprobes_plan(target, first, n, pid, cause);

	if (err < 0)
		return err;
	if (!wp_samplers_load(&target->samplers, target, first, n))
		target->all_sampled = false;
	wp_thread_counts_load(&target->thread_counts, first, n);
	return wp_uprobes_open(target, first, n, cause);
}

int
wp_target_loaded(struct wp_target *target, size_t first, size_t n, int err)
{
	if (err < 0)
		wp_uprobes_close(&target->uprobes, first, n);
	wp_samplers_unload(&target->samplers);
	return err;
}

bool
wp_target_exchange(struct wp_target *target, size_t watch, size_t first,
    size_t n)
{
	target->watch[watch].uprobe = target->watch[watch].region.insn = false;
	return spare(target, first, n, count_slots(target, first, n)) <=
	    target->features.caps.slots;
}

bool
wp_target_again(struct wp_target *target, size_t first, size_t n, int err)
{
	bool any = err == -ECANCELED;

	if (err != -ENOSPC)
		return any;
	for (size_t w = first; w < first + n; w++)
		if (may_be_uprobe(target, &target->watch[w]))
			target->watch[w].uprobe = any = true;
	return any;
}

static int
attach_process(struct wp_target *target, pid_t pid, size_t first, size_t n,
    struct wp_cause *cause)
{
	struct attach attach = {
		.target = target, .pid = pid,
		.job = {first, n, target->events.n, 0}, .cause = cause,
	};
	pthread_t thread;
	int err;

	if ((err = pthread_create(&thread, NULL, attach_held, &attach)) != 0)
		return wp_cause_errno(cause, "making a thread", err);
	(void)pthread_join(thread, NULL);
	if (attach.held && attach.result == 0 &&
	    target->events.n == attach.job.events)
		attach.result = -ESRCH;		/* killed as it was held */
	else if (attach.held)
		return attach.result;
	switch (-attach.result) {
	case ESRCH:
		return wp_cause_set(cause, WP_CAUSE_GONE, pid);
	case EPERM:
	case ETIMEDOUT:
		return attach_running(target, &attach);
	default:
		return wp_cause_errno(cause, "holding the process",
		    -attach.result);
	}
}

int
wp_target_attach(struct wp_target *target, pid_t pid, size_t first, size_t n,
    struct wp_cause *cause)
{
	int err = wp_target_check(pid, cause);

	if (err < 0)
		return err;
	(void)pthread_mutex_lock(&target->changing);
	do {
		err = wp_target_load(target, first, n, pid, cause);
		if (err == 0)
			err = attach_process(target, pid, first, n, cause);
		err = wp_target_loaded(target, first, n, err);
	} while (wp_target_again(target, first, n, err));
	(void)pthread_mutex_unlock(&target->changing);
	return err;
}

static bool
has_event(const struct wp_events *events, unsigned ring)
{
	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].watch != WP_EVENT_REFERENCE &&
		    events->event[i].ring == ring)
			return true;
	return false;
}

int
wp_target_attach_everywhere(struct wp_target *target, size_t first, size_t n)
{
	int err;

	(void)pthread_mutex_lock(&target->changing);
	(void)wp_target_load(target, first, n, -1, NULL);
	target->armed = wp_clock_ns();
	err = wp_target_open_thread(target, &target->events, first, n, -1);
	for (unsigned i = 0; err == 0 && i < wp_rings_count(target->rings); i++)
		if (!has_event(&target->events, i))
			wp_rings_leave_out(target->rings, i);
	wp_samplers_unload(&target->samplers);
	(void)pthread_mutex_unlock(&target->changing);
	return err;
}

const struct wp_watched *
wp_target_watches(const struct wp_target *target, size_t *n)
{
	*n = target->nwatches;
	return target->watch;
}

unsigned
wp_target_threads(const struct wp_target *target)
{
	return target->threads;
}

double
wp_target_frozen_ms(const struct wp_target *target)
{
	return target->frozen_ms;
}

bool
wp_target_inexact(const struct wp_target *target)
{
	return target->inexact;
}

const struct wp_options *
wp_target_options(const struct wp_target *target)
{
	return &target->options;
}

bool
wp_target_bpf(const struct wp_target *target)
{
	return target->all_sampled;
}

const struct wp_cause *
wp_target_no_bpf(const struct wp_target *target)
{
	return &target->no_bpf;
}

struct wp_rings *
wp_target_rings(struct wp_target *target)
{
	return target->rings;
}

int
wp_target_slot_ids(const struct wp_target *target, size_t watch, unsigned slot,
    struct perf_event_attr *attr, uint64_t **ids)
{
	const struct wp_events *events = &target->events;
	int n = 0;

	wp_target_attr(target, watch, slot, attr);
	if ((*ids = calloc(events->n + 2, sizeof(**ids))) == NULL)
		return -ENOMEM;
	if (target->options.stop) {	/* its records have that put in */
		**ids = wp_target_stop_id(watch, slot);
		return 1;
	}
	for (size_t i = 0; i < events->n; i++) {
		const struct wp_event *event = &events->event[i];

		if (event->watch == watch && event->slot == slot &&
		    wp_perf_id(event->fd, &(*ids)[n]) == 0)
			n++;
	}
	if (wp_rings_bpf(target->rings, 0) >= 0)	/* and marks */
		(*ids)[n++] = wp_sampler_id(watch, slot);
	return n;
}

int
wp_target_move_events(const struct wp_target *target,
    const struct wp_events *events, size_t watch)
{
	int err = 0;

	for (size_t i = 0; i < events->n; i++) {
		const struct wp_event *event = &events->event[i];
		struct perf_event_attr attr;
		int one;

		if (event->watch != watch)
			continue;
		wp_target_attr(target, watch, event->slot, &attr);
		one = wp_perf_modify(event->fd, &attr);
		if (one < 0 && one != -ESRCH && err == 0)
			err = one;
	}
	return err;
}

int
wp_target_move(struct wp_target *target, size_t watch,
    const struct wp_region *region, struct wp_cause *cause)
{
	struct wp_watched *watched = &target->watch[watch];
	struct wp_slot slot[WP_SLOTS_MAX];
	int err = wp_slot_check(region, cause), n = err < 0 ? err :
	    wp_slot_plan(region, &target->features.caps, slot, cause);

	if (n < 0)
		return n;
	if ((unsigned)n > watched->nslots)
		return wp_cause_set(cause, WP_CAUSE_TOO_MANY, (unsigned)n,
		    watched->nslots);
	watched->region = *region;
	for (unsigned i = 0; i < watched->nslots; i++) {
		/* what is left over is where nothing is */
		watched->slot[i].addr = i < (unsigned)n ? slot[i].addr : 0;
		if (i < (unsigned)n)
			watched->slot[i].len = slot[i].len;
	}
	err = wp_target_move_events(target, &target->events, watch);
	return err == 0 ? 0 : wp_cause_errno(cause, "moving a watch", -err);
}

uint64_t
wp_target_armed(const struct wp_target *target)
{
	return target->armed;
}

/* Move the events of a process, each thread's with its reference behind them,
   to others. */
static void
take_out(struct wp_events *events, size_t first, size_t n,
    struct wp_events *out)
{
	size_t kept = 0, begin = 0;

	for (size_t i = 0; i < events->n; i++) {
		const struct wp_event *event = &events->event[begin];
		const bool is = event->watch >= first &&
		    event->watch - first < n;

		if (events->event[i].watch != WP_EVENT_REFERENCE)
			continue;
		for (size_t k = begin; k <= i; k++) {
			const struct wp_event one = events->event[k];

			if (is && WP_ARRAY_ROOM(out, event) == 0)
				out->event[out->n++] = one;
			else
				events->event[kept++] = one;
		}
		begin = i + 1;
	}
	events->n = kept;
}

void
wp_target_disarm(struct wp_target *target, size_t first, size_t n)
{
	struct wp_events out = {0};

	(void)pthread_mutex_lock(&target->changing);
	for (size_t w = first; w < first + n; w++)
		wp_tickets_closing(wp_samplers_tickets(&target->samplers, w,
		    0));
	wp_uprobes_turn(&target->uprobes, first, n, false);
	take_out(&target->events, first, n, &out);
	if (!target->stopped)
		wp_events_stop(&out, &target->options);
	for (size_t w = first; w < first + n; w++)
		wp_samplers_end(&target->samplers, &out, &target->options, w);
	(void)pthread_mutex_unlock(&target->changing);
	wp_uptime_add(&target->past, &out, &target->options);
	target->past.threads = 0;	/* some may be, or have been, armed
					   again */
	for (size_t w = first; w < first + n; w++) {
		wp_events_count(&out, &target->options, w,
		    &target->watch[w].past);
		target->watch[w].past.value += wp_uprobes_count(
		    &target->uprobes, w);
	}
	wp_uprobes_close(&target->uprobes, first, n);
	wp_events_close(&out, 0);
}

bool
wp_target_alive(const struct wp_target *target, size_t first, size_t n)
{
	for (size_t i = 0; i < target->events.n; i++) {
		const struct wp_event *event = &target->events.event[i];
		struct pollfd p = {.fd = event->fd};

		if (event->watch < first || event->watch >= first + n)
			continue;
		if (poll(&p, 1, 0) == 0 || (p.revents & POLLHUP) == 0)
			return true;
	}
	return false;
}

void
wp_target_turn_off_events(const struct wp_target *target,
    struct wp_events *events, size_t watch)
{
	struct perf_event_attr attr;

	for (unsigned s = 0; s < target->watch[watch].nslots; s++) {
		attr_off(target, watch, s, &attr);
		wp_events_turn_off(events, watch, (uint16_t)s, &attr);
	}
}

void
wp_target_turn_off(struct wp_target *target, size_t watch)
{
	target->watch[watch].off = true;
	wp_uprobes_turn(&target->uprobes, watch, 1, false);
	if (target->watch[watch].uprobe)
		return;
	(void)pthread_mutex_lock(&target->changing);
	wp_tickets_closing(wp_samplers_tickets(&target->samplers, watch, 0));
	(void)pthread_mutex_unlock(&target->changing);
	wp_target_turn_off_events(target, &target->events, watch);
}

void
wp_target_stop(struct wp_target *target)
{
	if (target->stopped)
		return;
	(void)pthread_mutex_lock(&target->changing);
	for (size_t w = 0; w < target->nwatches; w++)
		wp_tickets_closing(wp_samplers_tickets(&target->samplers, w,
		    0));
	(void)pthread_mutex_unlock(&target->changing);
	wp_uprobes_turn(&target->uprobes, 0, target->nwatches, false);
	wp_events_stop(&target->events, &target->options);
	target->stopped = true;
}

int
wp_target_count(const struct wp_target *target, size_t watch,
    struct wp_perf_count *count)
{
	*count = (struct wp_perf_count){0};
	if (watch >= target->nwatches)
		return -EINVAL;
	*count = target->watch[watch].past;
	wp_events_count(&target->events, &target->options, watch, count);
	count->value += wp_uprobes_count(&target->uprobes, watch);
	return 0;
}

ssize_t
wp_target_thread_counts(const struct wp_target *target,
    struct wp_thread_count **out)
{
	return wp_thread_counts_read(&target->thread_counts, out);
}

int
wp_target_mark(struct wp_target *target, size_t watch, uint64_t done,
    struct wp_ticket_mark *mark)
{
	struct wp_tickets *tickets;
	int got = -ENOENT;

	if (pthread_mutex_trylock(&target->changing) != 0)
		return -EBUSY;
	if (watch < target->nwatches) {
		tickets = target->watch[watch].nslots != 1 ||
		    target->watch[watch].uprobe || target->inexact ? NULL :
		    wp_samplers_tickets(&target->samplers, watch, 0);
		got = tickets != NULL && wp_tickets_taken(tickets) != done &&
		    wp_tickets_mark(tickets, &target->events,
		    &target->options, watch, wp_sampler_id(watch, 0), mark);
	}
	(void)pthread_mutex_unlock(&target->changing);
	return got;
}

void
wp_target_uptime(const struct wp_target *target, struct wp_uptime *uptime)
{
	wp_uptime_add(uptime, &target->events, &target->options);
	if (target->past.known)
		wp_uptime_join(uptime, &target->past);
}

int
wp_target_thread_ended(struct wp_target *target, pid_t tid)
{
	int moved;

	(void)pthread_mutex_lock(&target->changing);
	moved = wp_uprobes_move(target, tid);
	(void)pthread_mutex_unlock(&target->changing);
	return moved;
}

bool
wp_target_know(struct wp_target *target, const struct wp_known_stack *stack)
{
	const struct wp_samplers *samplers = &target->samplers;
	const bool tally = samplers->tallied != NULL && stack->watch > 0;

	if (!wp_known_is_valid(stack) || stack->watch > target->nwatches)
		return false;
	if (tally && target->watch[stack->watch - 1].nslots == 1)
		wp_stack_counts_know(samplers->tallied, samplers->known, stack,
		    wp_sampler_id(stack->watch - 1, 0));
	else if (samplers->known != NULL)
		(void)wp_known_add(samplers->known, stack, 0, 0);
	return true;
}

void
wp_target_forget(struct wp_target *target, pid_t pid)
{
	if (target->samplers.known != NULL)
		wp_known_forget(target->samplers.known, pid);
	if (target->samplers.tallied != NULL)
		wp_stack_counts_forget(target->samplers.tallied, pid);
}

void
wp_target_remapped(struct wp_target *target, pid_t pid, uint64_t from,
    uint64_t to, uint64_t time)
{
	if (target->samplers.tallied != NULL)
		wp_stack_counts_remapped(target->samplers.tallied, pid, from,
		    to, time);
}

bool
wp_target_look_at_tallies(struct wp_target *target, uint64_t horizon)
{
	return target->samplers.tallied != NULL &&
	    wp_stack_counts_look(target->samplers.tallied, horizon);
}

void
wp_target_show_tallies(struct wp_target *target,
    void (*fn)(void *, const struct wp_target_tally *), void *arg)
{
	if (target->samplers.tallied != NULL)
		wp_stack_counts_show(target->samplers.tallied, fn, arg);
}

void
wp_target_take_tallies(struct wp_target *target,
    void (*fn)(void *, const struct wp_target_tally *), void *arg)
{
	struct wp_samplers *samplers = &target->samplers;
	bool settled;

	if (samplers->tallied == NULL)
		return;
	wp_known_forget(samplers->known, 0);
	settled = wp_stack_table_settle();
	wp_stack_counts_take(samplers->tallied, fn, arg);
	wp_stack_counts_renew(samplers->tallied, samplers->known, settled);
}

void
wp_target_free(struct wp_target *target)
{
	if (target == NULL)
		return;
	wp_target_stop(target);
	wp_target_let_go(target);
	wp_events_close(&target->events, 0);
	wp_rings_close(target->rings);
	wp_samplers_free(&target->samplers);
	wp_uprobes_free(&target->uprobes);
	wp_thread_counts_close(&target->thread_counts);
	wp_counters_close(&target->counters);
	free(target->watch);
	(void)pthread_mutex_destroy(&target->changing);
	free(target);
}
