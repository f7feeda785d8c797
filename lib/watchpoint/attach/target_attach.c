/*
 * target_attach: the events of a target's watches, opened for all threads of a
 * process.
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
#include "attach/target_private.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "ring/uptime.h"

/* ms to look for new threads of a process that cannot be held */
enum { RESCAN_LIMIT = 500 };
/* The watches to be armed in a process. */
struct job {
	size_t first, n;
	size_t events;		/* open before, of other processes */
	unsigned threads;	/* of the process, as far as known */
};

static unsigned
job_slots(const struct wp_target *target, const struct job *job)
{
	return wp_target_count_slots(target, job->first, job->n);
}

/* The number of uprobes of which each thread has an event. */
static unsigned
job_inherited(const struct wp_target *target, const struct job *job)
{
	unsigned places = 0;

	for (size_t w = job->first; w < job->first + job->n; w++)
		if (target->watch[w].uprobe && target->uprobes.named)
			places += target->watch[w].nslots;
	return places;
}

/* The number of descriptors needed for all threads of a process. */
static unsigned
job_descriptors(const struct wp_target *target, const struct job *job,
    unsigned threads)
{
	return threads * (wp_rings_count(target->rings) *
	    job_slots(target, job) + job_inherited(target, job) + 1);
}

/* Explain why an event could not be opened for a thread. */
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
		/* /proc cannot be read without a descriptor */
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
	struct wp_options options = target->options;

	options.everywhere |= watched->on_processors;
	wp_attr_watch(attr, &watched->slot[slot], &options,
	    watched->first && slot == 0);
	if (watched->each)
		attr->inherit = attr->inherit_thread = 0;
}

/* An address where nothing is ever mapped: an event there only reports mappings
   and threads. */
enum { NOWHERE = 8 };

void
wp_target_attr_off(const struct wp_target *target, size_t watch, unsigned slot,
    struct perf_event_attr *attr)
{
	wp_target_attr(target, watch, slot, attr);
	attr->bp_addr = NOWHERE;
}

/* Set the event's address to the stopped thread's own instance.  A thread
   without a thread control block has none. */
void
wp_target_put_local(const struct wp_watched *watched, pid_t tid,
    struct perf_event_attr *attr)
{
	const uint64_t block = watched->block == 0 ? 0 :
	    wp_trace_thread_block(tid);

	if (block != 0)
		attr->bp_addr += block - watched->block;
	else if (watched->block != 0)
		attr->bp_addr = NOWHERE;
}

/* The events of uprobes report no mappings, names, forks or exits; an
   additional event of the process's first watch does. */
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

		(off ? wp_target_attr_off : wp_target_attr)(target, w, s,
		    &attr);
		/* running threads are not held until the events have
		   programs */
		attr.disabled = target->watch[w].on_processors;
		if (!off)
			wp_target_put_local(&target->watch[w], tid, &attr);
		err = wp_events_open(events, &attr, (uint16_t)w, (uint16_t)s,
		    tid, target->rings);
		wp_samplers_attach(&target->samplers, events, first, w, s);
		wp_thread_counts_attach(&target->thread_counts, events, first,
		    w);
		for (size_t i = first; i < events->n; i++) {
			events->event[i].off = off;
			if (attr.disabled && err == 0)
				err = wp_perf_enable(events->event[i].fd);
		}
	}
	return err;
}

int
wp_target_open_thread(const struct wp_target *target, struct wp_events *events,
    size_t first, size_t n, pid_t tid)
{
	struct wp_options options = target->options;
	const size_t before = events->n;
	int err = 0;

	for (size_t w = first; w < first + n && err == 0; w++) {
		options.stop = options.stop || target->watch[w].each;
		err = open_slots(target, events, w, tid);
	}
	if (err == 0)
		err = wp_events_reference(events, &options, tid,
		    target->rings);
	if (err < 0)
		wp_events_close(events, before);
	return err;
}

/* Returns 1, 0 if the thread has ended, or -errno. */
static int
open_thread(struct wp_target *target, const struct job *job, pid_t tid)
{
	int err = wp_target_open_thread(target, &target->events, job->first,
	    job->n, tid);

	if (err == 0)
		err = wp_uprobes_follow(&target->uprobes, job->first, job->n,
		    tid);
	return err == 0 ? 1 : err == -ESRCH ? 0 : err;
}

/* Read a watch's bytes through any stopped thread that has not ended. */
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

/* with fewer threads, moving to other processors does not pay */
enum { WORTH_MOVING = 16 };

/* Where events are opened.  To add an event to a thread, the kernel interrupts
   the processor that the thread last ran on and waits for it, unless that is
   this very processor.  So threads are processed processor by processor, from
   there. */
struct cpu_place {
	bool moves;
	cpu_set_t permitted;
	int cpu;		/* the current one; < 0: any */
};

static int
cpu_order(const void *a, const void *b)
{
	return ((const struct wp_held *)a)->cpu -
	    ((const struct wp_held *)b)->cpu;
}

/* Only with real-time priority is a thread sure to run soon on a processor that
   others use. */
static void
place_begin(struct cpu_place *place, struct wp_hold *hold, pid_t pid)
{
	struct sched_param param;
	int policy;

	*place = (struct cpu_place){.cpu = -1};
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
place_at(struct cpu_place *place, int cpu)
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
place_end(const struct cpu_place *place)
{
	if (place->cpu >= 0)
		(void)sched_setaffinity(0, sizeof(place->permitted),
		    &place->permitted);
}

/* wp_target_open_events, moving between processors. */
static int
open_all(struct wp_target *target, struct cpu_place *place,
    const struct job *job, const struct wp_hold *hold, struct wp_cause *cause)
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
	struct cpu_place place;
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

/* An attach and its result, shared by the caller and the tracing thread. */
struct attach {
	struct wp_target *target;
	pid_t pid;
	struct job job;
	struct wp_cause *cause;
	bool held;		/* whether the process could be held */
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

	/* the target is stopped meanwhile, so this thread should not wait for
	   its turn on a busy machine; it does where the priority is refused */
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

/* For a process that cannot be held: read the list of threads until two
   readings in a row have no new one, or until the time is up.  A thread may
   still be missed or be covered twice. */
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
	(void)wp_thread_counts_load(&target->thread_counts, target, first, n);
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
	return wp_target_spare(target, first, n,
	    wp_target_count_slots(target, first, n)) <=
	    target->features.caps.slots;
}

bool
wp_target_again(struct wp_target *target, size_t first, size_t n, int err)
{
	bool any = err == -ECANCELED;

	if (err != -ENOSPC)
		return any;
	for (size_t w = first; w < first + n; w++)
		if (wp_target_may_be_uprobe(target, &target->watch[w]))
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
		attach.result = -ESRCH;	/* it was killed while being held */
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

/* --- on each processor --- */

/* with this many threads, holding them and opening events takes too long */
enum { MANY_THREADS = 256 };

/* Open the events that processors lack.  If that fails, these are uncovered. */
static void
open_missing(void *arg)
{
	struct wp_target *target = arg;
	const struct wp_events *events = &target->events;
	size_t first = SIZE_MAX, end = 0;

	for (size_t i = 0; i < events->n; i++) {
		const struct wp_event *event = &events->event[i];

		if (event->tid >= 0 || event->watch == WP_EVENT_REFERENCE)
			continue;
		first = event->watch < first ? event->watch : first;
		end = event->watch >= end ? event->watch + 1u : end;
	}
	if (end > 0)
		(void)wp_target_open_thread(target, &target->events, first,
		    end - first, -1);
}

static void
check_processors(struct wp_target *target)
{
	(void)wp_events_check_processors(&target->events,
	    wp_attr_format(&target->options), target->rings, open_missing,
	    target);
}

void
wp_target_check_processors(struct wp_target *target)
{
	if (pthread_mutex_trylock(&target->changing) != 0)
		return;
	if (!target->stopped)
		check_processors(target);
	(void)pthread_mutex_unlock(&target->changing);
}

static int
open_processors(struct wp_target *target, size_t first, size_t n)
{
	const int err = wp_target_open_thread(target, &target->events, first,
	    n, -1);

	if (err == 0)
		check_processors(target);
	return err;
}

static unsigned
others_index(const struct wp_target *target, size_t watch, unsigned slot,
    unsigned ring)
{
	return (unsigned)((watch - target->others_first) * WP_SLOTS_MAX +
	    slot) * wp_rings_count(target->rings) + ring;
}

bool
wp_target_own(const struct wp_target *target, size_t watch, unsigned slot,
    unsigned ring, struct wp_own *own)
{
	if (!target->watch[watch].on_processors)
		return false;
	*own = wp_process_filter_own(&target->others,
	    others_index(target, watch, slot, ring));
	return true;
}

uint64_t
wp_target_count_others(const struct wp_target *target, size_t watch)
{
	uint64_t count = 0;

	if (!target->watch[watch].on_processors)
		return 0;
	for (unsigned s = 0; s < target->watch[watch].nslots; s++)
		for (unsigned i = 0; i < wp_rings_count(target->rings); i++)
			count += wp_process_filter_count(&target->others,
			    others_index(target, watch, s, i));
	return count;
}

/* Whether the process can be distinguished from others in the kernel, and has
   enough threads to make that worth it. */
static bool
may_be_on_processors(const struct wp_target *target, pid_t pid, size_t first,
    size_t n, unsigned *threads)
{
	const struct wp_options *options = &target->options;
	struct wp_proc_status status;
	bool may = options->processors && !options->follow &&
	    !options->everywhere && target->others.map < 0 &&
	    target->events.n == 0 && wp_proc_has_our_pids(pid) &&
	    (options->count ? options->threads :
	    options->tickets && target->all_sampled) &&
	    wp_proc_status(pid, &status) == 0 &&
	    status.threads > MANY_THREADS;

	for (size_t w = first; w < first + n; w++)
		may = may && !target->watch[w].uprobe &&
		    !target->watch[w].each && target->watch[w].block == 0;
	if (may)
		*threads = status.threads;
	return may;
}

static bool
load_processors(struct wp_target *target, size_t first, size_t n)
{
	return target->options.count ?
	    wp_thread_counts_load(&target->thread_counts, target, first, n) :
	    wp_samplers_load(&target->samplers, target, first, n);
}

/* The process is not stopped: its hits are seen from the moment at which the
   programs recognize it.  Returns false if it has to be watched by threads. */
static bool
attach_processors(struct wp_target *target, pid_t pid, size_t first, size_t n)
{
	unsigned threads;
	int err = -ENOTSUP;

	if (!may_be_on_processors(target, pid, first, n, &threads) ||
	    wp_process_filter_open(&target->others, pid,
	    (unsigned)n * WP_SLOTS_MAX * wp_rings_count(target->rings)) < 0)
		return false;
	target->others_first = first;
	for (size_t w = first; w < first + n; w++)
		target->watch[w].on_processors = true;
	wp_rings_only(target->rings, pid);
	if (load_processors(target, first, n))
		err = open_processors(target, first, n);
	if (err == 0) {
		wp_process_filter_begin(&target->others);
		target->armed = wp_clock_ns();
		target->threads += threads;
		target->frozen_ms = 0;
		return true;
	}
	wp_samplers_unload(&target->samplers);
	wp_events_close(&target->events, 0);
	for (size_t w = first; w < first + n; w++)
		target->watch[w].on_processors = false;
	wp_rings_only(target->rings, 0);
	wp_process_filter_close(&target->others);
	return false;
}

int
wp_target_attach(struct wp_target *target, pid_t pid, size_t first, size_t n,
    struct wp_cause *cause)
{
	int err = wp_target_check(pid, cause);

	if (err < 0)
		return err;
	(void)pthread_mutex_lock(&target->changing);
	if (attach_processors(target, pid, first, n)) {
		(void)pthread_mutex_unlock(&target->changing);
		return 0;
	}
	do {
		err = wp_target_load(target, first, n, pid, cause);
		if (err == 0)
			err = attach_process(target, pid, first, n, cause);
		err = wp_target_loaded(target, first, n, err);
	} while (wp_target_again(target, first, n, err));
	(void)pthread_mutex_unlock(&target->changing);
	return err;
}

/* Programs are kept for processors that come online later. */
int
wp_target_attach_everywhere(struct wp_target *target, size_t first, size_t n)
{
	int err;

	(void)pthread_mutex_lock(&target->changing);
	(void)wp_target_load(target, first, n, -1, NULL);
	target->armed = wp_clock_ns();
	err = open_processors(target, first, n);
	(void)pthread_mutex_unlock(&target->changing);
	return err;
}
