/*
 * target: processes under watch.
 *
 * What is to be watched is planned here; target_attach.c opens its events, and
 * target_armed.c moves, disarms and counts them.
 */
#include "attach/target.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/target_private.h"
#include "os/array.h"
#include "os/clock.h"
#include "os/trap_cpu.h"
#include "proc/proc.h"

/* Open rings that BPF programs write to.  Returns 0; -errno if the kernel's own
   rings will do instead; or > 0 and a cause if they will not. */
static int
open_sampled(struct wp_target *target, size_t size, struct wp_cause *cause)
{
	const uint32_t with = target->options.with;
	int err;

	if (with != 0 && wp_counters_open(&target->counters, with, cause) < 0)
		return 1;
	err = wp_samplers_rings(&target->rings, &target->options,
	    target->features.caps.slots > 0, size,
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

/* Events that only count write no records.  They have rings all the same,
   because only an event with a ring reports to a poller that its thread has
   ended. */
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
	target->uprobes.named = options->uprobes && options->follow &&
	    wp_uprobe_names_why_not() == NULL;
	target->others = WP_PROCESS_FILTER_NONE;
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

	return options->uprobes && !options->everywhere && !options->stop &&
	    (!options->follow || target->uprobes.named) &&
	    (options->count ? options->threads :
	    options->tickets && target->all_sampled);
}

bool
wp_target_may_be_uprobe(const struct wp_target *target,
    const struct wp_watched *watch)
{
	return watch->region.access == WP_EXEC && watch->region.insn &&
	    !watch->uprobe && wp_target_uprobes(target);
}

unsigned
wp_target_spare(struct wp_target *target, size_t first, size_t n,
    unsigned slots)
{
	const unsigned most = target->features.caps.slots;

	for (size_t w = first + n; w-- > first && slots > most;) {
		struct wp_watched *watch = &target->watch[w];

		if (!wp_target_may_be_uprobe(target, watch))
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

	if (n > WP_EVENT_REFERENCE - first)	/* event names have no room
						   for more */
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
	slots = wp_target_spare(target, first, n, slots);
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

/* The watches of the process that this watch is in are *first and the following
   ones; returns their number. */
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

unsigned
wp_target_count_slots(const struct wp_target *target, size_t first, size_t n)
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
	unsigned slots = wp_target_count_slots(target, first, all);

	if (slots + n > target->features.caps.slots && !watched->uprobe &&
	    wp_target_may_be_uprobe(target, watched)) {
		watched->uprobe = true;
		slots -= watched->nslots;
	}
	if (!watched->uprobe)
		slots = wp_target_spare(target, first, all, slots + n);
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
	size_t first;
	const size_t n = process_watches(target, watch, &first);

	target->watch[watch].block = block;
	for (size_t w = first; w < first + n; w++)
		target->watch[w].each = true;
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

/* Whether the process has threads left; the first thread may have ended before
   others.  Returns 1, 0, or -errno. */
static int
has_threads(pid_t pid)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int n = wp_proc_threads(pid, &tids, &cap);
	bool any = false;

	for (int i = 0; i < n && !any; i++)
		any = !wp_proc_exiting(tids[i]);
	free(tids);
	return n < 0 ? n : any;
}

/* Whether watchctl itself ran out of something, which says nothing about the
   process. */
static bool
is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
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
	int err = pid <= 0 ? -ESRCH : wp_proc_status(pid, &status);

	if (is_shortage(err))
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
	if (!wp_cpu_watches_narrow() && wp_proc_is_narrow(pid))
		return wp_cause_set(cause, WP_CAUSE_NARROW, pid);
	if ((err = has_threads(pid)) > 0)
		return 0;
	if (is_shortage(err))
		return wp_cause_errno(cause, "looking at its threads", -err);
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
	wp_process_filter_close(&target->others);
	wp_thread_counts_close(&target->thread_counts);
	wp_counters_close(&target->counters);
	free(target->watch);
	(void)pthread_mutex_destroy(&target->changing);
	free(target);
}
