/* sideband: what programs do that is no access. */
#include "watch/sideband.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/proc.h"

enum {
	ROOM = 1 << 16,		/* bytes of each ring */
	EVENTS_MAX = 4096,	/* more are not opened */
};

/* Where these records have what is looked at. */
enum {
	FORK_PID = 8, FORK_PPID = 12, FORK_PTID = 20, FORK_TIME = 24,
	MMAP_PID = 8, MMAP_START = 16, MMAP_LEN = 24, MMAP_FLAGS = 68,
};

static uint32_t
get32(const struct perf_event_header *header, size_t at)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)header + at, sizeof(value));
	return value;
}

static uint64_t
get64(const struct perf_event_header *header, size_t at)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)header + at, sizeof(value));
	return value;
}

static bool
has(const struct wp_events *events, pid_t tid)
{
	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].tid == tid)
			return true;
	return false;
}

/* Open the events of those that have none.  Result: how many; or -errno. */
static int
open_others(struct sideband *side, struct wp_events *events,
    struct perf_event_attr *attr)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int err = 0, opened = 0, n = wp_proc_threads(side->pid, &tids, &cap);

	for (int i = 0; i < n && err == 0; i++) {
		if (has(events, tids[i]))
			continue;
		err = events->n > EVENTS_MAX ? -EMFILE :
		    wp_events_open(events, attr, 0, 0, tids[i], side->rings);
		opened += err == 0;
		if (err == -ESRCH)
			err = 0;
	}
	free(tids);
	return err < 0 ? err : n < 0 ? n : opened;
}

/* Who is made by one that has them has them, too: so it is done when a look
   finds no new one. */
static int
open_all(struct sideband *side, struct wp_events *events,
    struct perf_event_attr *attr)
{
	int opened;

	while ((opened = open_others(side, events, attr)) > 0)
		;
	if (opened == -EINVAL) {	/* older kernels */
		attr->inherit_thread = attr->remove_on_exec = 0;
		while ((opened = open_others(side, events, attr)) > 0)
			;
	}
	return opened;
}

/* An older kernel's clock goes on in children, and is none. */
static int
open_events(struct sideband *side)
{
	struct perf_event_attr attr;
	int err;

	wp_attr_side(&attr);
	if ((err = open_all(side, &side->events, &attr)) < 0)
		return err;
	wp_attr_clock(&attr);
	if (open_all(side, &side->clocks, &attr) < 0 ||
	    attr.inherit_thread == 0)
		wp_events_close(&side->clocks, 0);
	return side->events.n == 0 ? -ESRCH : 0;
}

void
sideband_open(struct sideband *side, pid_t pid)
{
	struct wp_cause cause;

	sideband_close(side);
	*side = (struct sideband){.pid = pid};
	if (wp_rings_open(&side->rings, ROOM, &cause) < 0)
		side->rings = NULL;
	else if (open_events(side) < 0)
		sideband_close(side);
}

void
sideband_close(struct sideband *side)
{
	wp_events_close(&side->events, 0);
	wp_events_close(&side->clocks, 0);
	if (side->rings != NULL)
		wp_rings_close(side->rings);
	side->rings = NULL;
}

uint64_t
sideband_ran(const struct sideband *side)
{
	struct wp_perf_count count;
	uint64_t sum = 0;

	for (size_t i = 0; i < side->clocks.n; i++)
		if (wp_perf_read(side->clocks.event[i].fd, WP_INSIDE_FORMAT,
		    &count) == 0)
			sum += count.running;
	return sum;
}

unsigned
sideband_threads(const struct sideband *side)
{
	return side->since == 0 || side->lost ? 0 : 1 + side->made;
}

static void
take_child(struct sideband *side, const struct perf_event_header *header,
    const struct sideband_calls *calls, void *arg)
{
	const struct sideband_child child = {
		(pid_t)get32(header, FORK_PID), (pid_t)get32(header, FORK_PPID),
		(pid_t)get32(header, FORK_PTID), get64(header, FORK_TIME),
	};
	const struct wp_loan loan = {child.parent, child.tid, child.pid};

	if (child.pid == child.parent) {	/* a thread */
		side->made += child.pid == side->pid && side->since > 0 &&
		    side->since <= child.time;
		return;
	}
	wp_shared_vm_add(&side->lent, &loan);
	calls->made(arg, &child);
}

static void
take_mapping(const struct perf_event_header *header,
    const struct sideband_calls *calls, void *arg)
{
	const uint64_t start = get64(header, MMAP_START);
	const struct sideband_mapping map = {
		(pid_t)get32(header, MMAP_PID),
		start, start + get64(header, MMAP_LEN),
		(get32(header, MMAP_FLAGS) & MAP_SHARED) != 0,
		get64(header, wp_attr_time_offset(header)),
	};

	calls->mapped(arg, &map);
}

bool
sideband_look(struct sideband *side, const struct sideband_calls *calls,
    void *arg)
{
	const struct perf_event_header *header;

	while (side->rings != NULL &&
	    (header = wp_rings_next(side->rings, UINT64_MAX)) != NULL)
		if (header->type == PERF_RECORD_FORK)
			take_child(side, header, calls, arg);
		else if (header->type == PERF_RECORD_LOST)
			side->lost = true;
		else if (header->type == PERF_RECORD_MMAP2)
			take_mapping(header, calls, arg);
	/* before it is asked, because a process that no longer has it may have
	   written until now */
	for (unsigned i = 0; i < side->lent.n; i++)
		calls->lent(arg, side->lent.loan[i].pid);
	(void)wp_shared_vm_left(&side->lent, 0, wp_shared_vm_shares);
	return side->rings != NULL && !side->lost && !side->lent.more &&
	    wp_rings_uncovered(side->rings) < 0;
}
