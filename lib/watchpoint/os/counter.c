/* counter: the counters, and their perf events. */
#include "os/counter.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "os/perf_event.h"
#include "os/perf.h"

/* The running time of a thread is the time of its processor meanwhile. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} counters[WP_COUNTERS] = {
#define KERNEL(name, config) {name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config}
#define PROCESSOR(name, config) \
	{name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config}
	[WP_COUNTER_PAGE_FAULTS] = KERNEL("page-faults", PAGE_FAULTS),
	[WP_COUNTER_MINOR_FAULTS] = KERNEL("minor-faults", PAGE_FAULTS_MIN),
	[WP_COUNTER_MAJOR_FAULTS] = KERNEL("major-faults", PAGE_FAULTS_MAJ),
	[WP_COUNTER_CONTEXT_SWITCHES] = KERNEL("context-switches",
	    CONTEXT_SWITCHES),
	[WP_COUNTER_CPU_MIGRATIONS] = KERNEL("cpu-migrations",
	    CPU_MIGRATIONS),
	[WP_COUNTER_TASK_CLOCK] = KERNEL("task-clock", CPU_CLOCK),
	[WP_COUNTER_INSTRUCTIONS] = PROCESSOR("instructions", INSTRUCTIONS),
	[WP_COUNTER_CYCLES] = PROCESSOR("cycles", CPU_CYCLES),
	[WP_COUNTER_BRANCHES] = PROCESSOR("branches", BRANCH_INSTRUCTIONS),
	[WP_COUNTER_BRANCH_MISSES] = PROCESSOR("branch-misses",
	    BRANCH_MISSES),
	[WP_COUNTER_CACHE_REFERENCES] = PROCESSOR("cache-references",
	    CACHE_REFERENCES),
	[WP_COUNTER_CACHE_MISSES] = PROCESSOR("cache-misses", CACHE_MISSES),
};

const char *
wp_counter_name(unsigned counter)
{
	return counter < WP_COUNTERS ? counters[counter].name : NULL;
}

bool
wp_counter_is_hardware(unsigned counter)
{
	return counters[counter].type == PERF_TYPE_HARDWARE;
}

bool
wp_counter_is_time(unsigned counter)
{
	return counter == WP_COUNTER_TASK_CLOCK;
}

int
wp_counter_open(unsigned counter, int cpu)
{
	struct perf_event_attr attr;
	uint64_t count;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = counters[counter].type;
	attr.config = counters[counter].config;
	attr.exclude_hv = 1;
	attr.exclude_kernel = wp_counter_is_hardware(counter);
	/* it would take turns with other counters otherwise */
	attr.pinned = wp_counter_is_hardware(counter);
	fd = wp_perf_open(&attr, -1, cpu);
	/* a pinned event that finds no free counter can be opened, but reading
	   it gives an end of file */
	if (fd < 0 || read(fd, &count, sizeof(count)) > 0)
		return fd;
	(void)close(fd);
	return -EBUSY;
}
