/*
 * counter: what can be counted between the hits of a thread.
 *
 * All functions except wp_counter_open are pure.
 */
#ifndef WP_COUNTER_H
#define WP_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* Recordings contain these numbers, so they never change. */
enum wp_counter {
	WP_COUNTER_PAGE_FAULTS, WP_COUNTER_MINOR_FAULTS,
	WP_COUNTER_MAJOR_FAULTS, WP_COUNTER_CONTEXT_SWITCHES,
	WP_COUNTER_CPU_MIGRATIONS, WP_COUNTER_TASK_CLOCK,
	WP_COUNTER_INSTRUCTIONS, WP_COUNTER_CYCLES, WP_COUNTER_BRANCHES,
	WP_COUNTER_BRANCH_MISSES, WP_COUNTER_CACHE_REFERENCES,
	WP_COUNTER_CACHE_MISSES,
	WP_COUNTERS
};

#pragma GCC visibility push(default)

/* What perf(1) calls it; NULL: there is no such counter. */
const char *wp_counter_name(unsigned);

/* Whether it is a counter of the processor, which counts only in user mode,
   rather than of the kernel; whether it is a time, in ns. */
bool wp_counter_is_hardware(unsigned);
bool wp_counter_is_time(unsigned);

/* Count everything that runs on a processor, pinned, so that it counts always
   or not at all.  Result: a descriptor, close-on-exec, or -errno; -EBUSY: all
   of the processor's counters are taken. */
int wp_counter_open(unsigned counter, int cpu);

#pragma GCC visibility pop

#endif
