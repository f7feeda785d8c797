/*
 * live: tests that set real breakpoints.  They are skipped only where the probe
 * finds that this machine has none, and print the reason.
 */
#ifndef LIVE_H
#define LIVE_H

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/perf.h"
#include "probe/probe.h"

/* Long enough for a busy machine; only a failure waits so long. */
#define LIVE_PATIENCE_MS 60000

/* The features of this machine. */
static struct wp_features live_features;

/* The count of an event opened with the attributes of wp_attr_watch. */
static inline uint64_t
live_format(void)
{
	return wp_attr_format(&(struct wp_options){
		.format_lost = live_features.format_lost,
	});
}

static inline bool
live_possible(void)
{
	struct wp_cause cause;

	if (wp_probe_features(&live_features, &cause) == 0)
		return true;
	print_message("wp_probe_features: %s\n", cause.text);
	return false;
}

/* The tests of a program that sets breakpoints. */
#define RUN_LIVE_TESTS(...) RUN_TESTS(.possible = live_possible, __VA_ARGS__)
#define run_live_tests(...)						\
	run_all_tests(.possible = live_possible, __VA_ARGS__)

/* The number of free slots in a thread, found by filling them. */
static inline unsigned
live_free_slots(pid_t tid)
{
	static uint64_t word;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.disabled = 1, .exclude_kernel = 1,
		.bp_type = HW_BREAKPOINT_W, .bp_len = sizeof(word),
		.bp_addr = (uintptr_t)&word,
	};
	int fd[WP_SLOTS_MAX];
	unsigned n = 0;

	while (n < WP_SLOTS_MAX && (fd[n] = wp_perf_open(&attr, tid, -1)) >= 0)
		n++;
	for (unsigned i = 0; i < n; i++)
		(void)close(fd[i]);
	return n;
}

/* Wait until this many are free.  One may be occupied a moment longer: by the
   kernel, for a thread that has inherited its event and is just ending; by a
   helper that reads its count. */
static inline void
live_await_free_slots(pid_t tid, unsigned n)
{
	unsigned found;

	for (unsigned ms = 0; (found = live_free_slots(tid)) != n &&
	    ms < LIVE_PATIENCE_MS; ms++)
		(void)usleep(1000);
	assert_int_equal(found, n);
}

/* Whether one access hits each of several breakpoints, as processors report it;
   emulators may report one of them. */
static inline bool
live_hits_several(void)
{
	static volatile uint64_t word;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.exclude_kernel = 1, .bp_type = HW_BREAKPOINT_W,
		.bp_len = sizeof(word), .bp_addr = (uintptr_t)&word,
	};
	uint64_t count[2] = {0};
	int fd[2];

	for (unsigned i = 0; i < 2; i++)
		fd[i] = wp_perf_open(&attr, 0, -1);
	word = 1;
	for (unsigned i = 0; i < 2; i++)
		if (fd[i] >= 0 && read(fd[i], &count[i], sizeof(count[i])) >= 0)
			(void)close(fd[i]);
	if (count[0] + count[1] == 1)
		print_message("one access hits one breakpoint only here, as "
		    "in emulators\n");
	return count[0] + count[1] != 1;
}

/* For a test that needs that. */
#define LIVE_NEEDS_SEVERAL if (!live_hits_several()) skip()

#endif
