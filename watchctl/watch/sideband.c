/* sideband: what a program does that is no access. */
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
	FORK_PID = 8, FORK_PPID = 12, FORK_PTID = 20,
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
has(const struct sideband *side, pid_t tid)
{
	for (size_t i = 0; i < side->events.n; i++)
		if (side->events.event[i].tid == tid)
			return true;
	return false;
}

/* Open the events of those that have none.  Result: how many; or -errno. */
static int
open_others(struct sideband *side, struct perf_event_attr *attr)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int err = 0, opened = 0, n = wp_proc_threads(side->pid, &tids, &cap);

	for (int i = 0; i < n && err == 0; i++) {
		if (has(side, tids[i]))
			continue;
		err = side->events.n > EVENTS_MAX ? -EMFILE :
		    wp_events_open(&side->events, attr, 0, 0, tids[i],
		    side->rings);
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
open_all(struct sideband *side)
{
	struct perf_event_attr attr;
	int opened;

	wp_attr_side(&attr);
	while ((opened = open_others(side, &attr)) > 0)
		;
	if (opened == -EINVAL) {	/* older kernels */
		attr.inherit_thread = 0;
		while ((opened = open_others(side, &attr)) > 0)
			;
	}
	return opened;
}

void
sideband_open(struct sideband *side, pid_t pid)
{
	struct wp_cause cause;

	*side = (struct sideband){.pid = pid};
	if (wp_rings_open(&side->rings, ROOM, &cause) < 0)
		side->rings = NULL;
	else if (open_all(side) < 0 || side->events.n == 0)
		sideband_close(side);
}

void
sideband_close(struct sideband *side)
{
	wp_events_close(&side->events, 0);
	if (side->rings != NULL)
		wp_rings_close(side->rings);
	side->rings = NULL;
}

uint64_t
sideband_ran(const struct sideband *side)
{
	struct wp_perf_count count;
	uint64_t sum = 0;

	for (size_t i = 0; i < side->events.n; i++)
		if (wp_perf_read(side->events.event[i].fd, WP_INSIDE_FORMAT,
		    &count) == 0)
			sum += count.running;
	return sum;
}

unsigned
sideband_threads(const struct sideband *side)
{
	return side->since == 0 || side->lost ? 0 : 1 + side->made;
}

/* Result: whether it means nothing. */
static bool
take_child(struct sideband *side, const struct perf_event_header *header)
{
	const struct wp_loan loan = {
		.pid = (pid_t)get32(header, FORK_PPID),
		.tid = (pid_t)get32(header, FORK_PTID),
		.child = (pid_t)get32(header, FORK_PID),
	};

	if (loan.child == loan.pid && side->since > 0 && side->since <=
	    get64(header, wp_attr_time_offset(header)))
		side->made++;
	if (loan.child == loan.pid || loan.pid != side->pid)
		return true;
	wp_lent_add(&side->lent, &loan);
	return false;
}

bool
sideband_is_quiet(struct sideband *side,
    void (*fn)(void *arg, const struct sideband_mapping *), void *arg)
{
	const struct perf_event_header *header;
	bool quiet = side->rings != NULL &&
	    wp_rings_uncovered(side->rings) < 0;

	while (side->rings != NULL &&
	    (header = wp_rings_next(side->rings, UINT64_MAX)) != NULL)
		if (header->type == PERF_RECORD_FORK)
			quiet = take_child(side, header) && quiet;
		else if (header->type == PERF_RECORD_LOST)
			side->lost = true;
		else if (header->type == PERF_RECORD_MMAP2 &&
		    (pid_t)get32(header, MMAP_PID) == side->pid)
			fn(arg, &(struct sideband_mapping){
				get64(header, MMAP_START),
				get64(header, MMAP_START) +
				get64(header, MMAP_LEN),
				(get32(header, MMAP_FLAGS) & MAP_SHARED) != 0,
				get64(header, wp_attr_time_offset(header)),
			});
	/* looked at before, because a process that no longer has it may have
	   written until now */
	if (side->lent.n > 0 || side->lent.more)
		quiet = false;
	(void)wp_lent_left(&side->lent, side->pid, wp_lent_shares);
	return quiet && !side->lost;
}
