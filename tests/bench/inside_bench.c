/*
 * inside: what watches inside a program cost it.
 *
 * A hit, captured and handed to the helper, beside the same signal with a
 * handler that returns at once; a watch that is never hit, on a loop that waits
 * for memory; opening, closing and moving a watch, beside the bare system
 * calls.  Runs of both sides alternate, and the middle of their ratios counts.
 *
 * A hit is measured as the thread meets it that does not wait for the report
 * (WP_ASYNC), with the helper on another processor, in bursts that the queue
 * holds; what waiting for the report costs is printed, too.
 */
#include "test.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "os/perf.h"
#include "handler/watches.h"

enum {
	BURSTS = 400, BURST = 32, DEPTH = 16,
	LOOPS = 61, STEPS = 200000, NODES = 1 << 19,
	ROUNDS = 101, CALLS = 100,
};

static volatile uint64_t word, other;

static struct wp_watch *
open_watch(unsigned flags)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = &word, .len = sizeof(word),
		.label = "word", .flags = flags,
	};
	struct wp_watch *w;

	if (wp_open(&attr, &w) < 0)
		fail_msg("wp_open: %s", wp_cause());
	return w;
}

/* The event that a watch has, opened by hand. */
static struct perf_event_attr
bare_attr(void)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(struct
		    perf_event_attr), .sample_period = 1, .bp_len = 8,
		.bp_type = HW_BREAKPOINT_W, .bp_addr = (uintptr_t)&word,
		.inherit = 1, .inherit_thread = 1, .remove_on_exec = 1,
		.sigtrap = 1, .exclude_hv = 1,
		.exclude_kernel = geteuid() != 0,
	};
}

static int
open_bare(void)
{
	struct perf_event_attr attr = bare_attr();
	int fd = wp_perf_open(&attr, 0, -1);

	assert_true(fd >= 0);
	return fd;
}

/* A burst of hits, from some calls deep.  Seconds. */
__attribute__((noinline)) static double
hit(int depth)
{
	double began;

	if (depth > 0) {
		began = hit(depth - 1);
		__asm__ volatile("" : : : "memory");
		return began;
	}
	began = bench_now();
	for (unsigned i = 0; i < BURST; i++)
		word = i;
	return bench_now() - began;
}

static void
do_nothing(int sig)
{
	(void)sig;
}

static double
hit_bare(void)
{
	const struct sigaction nothing = {.sa_handler = do_nothing};
	struct sigaction ours;
	double took;
	int fd = open_bare();

	(void)sigaction(SIGTRAP, &nothing, &ours);
	took = hit(DEPTH);
	(void)sigaction(SIGTRAP, &ours, NULL);
	(void)close(fd);
	return took;
}

static double
hit_watch(unsigned flags)
{
	struct wp_channel *channel = wp_state.channel;
	struct wp_watch *w = open_watch(flags);
	double took = hit(DEPTH);

	wp_close(w);
	while (channel->served != channel->ticket)
		(void)usleep(1000);
	(void)usleep(2000);	/* so that it has gone to sleep */
	return took;
}

/* This program here, and its helper elsewhere; where there is a choice. */
static void
part_from_helper(void)
{
	cpu_set_t all, here, there;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&here);
	there = all;
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&here) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &here);
	CPU_XOR(&there, &all, &here);
	if (CPU_COUNT(&there) == 0)
		return;
	(void)sched_setaffinity(0, sizeof(here), &here);
	(void)sched_setaffinity(wp_state.channel->helper_pid, sizeof(there),
	    &there);
}

static void
bench_hits(void)
{
	static double ratio[BURSTS], waits[BURSTS], bare[BURSTS];

	part_from_helper();
	for (unsigned i = 0; i < BURSTS; i++) {
		bare[i] = hit_bare();
		ratio[i] = hit_watch(WP_ASYNC) / bare[i];
	}
	for (unsigned i = 0; i < BURSTS / 8; i++)
		waits[i] = hit_watch(0);
	printf("a hit with an empty handler %.2f us, waiting for its report "
	    "%.2f us\n", bench_median(bare, BURSTS) / BURST * 1e6,
	    bench_median(waits, BURSTS / 8) / BURST * 1e6);
	bench_tell("a hit, captured and posted", bench_median(ratio, BURSTS),
	    "x", "an empty handler", 1.15, 0);
}

/* A walk in no order over more memory than caches hold. */
static size_t *
make_walk(void)
{
	size_t *next = mmap(NULL, NODES * 64, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at = 0;

	assert_true(next != MAP_FAILED);
	for (size_t i = 0; i < NODES; i++) {
		size_t to = (at * 5 + 12345) % NODES;

		next[at * 8] = to;
		at = to;
	}
	return next;
}

static double
walk(const size_t *next)
{
	double began = bench_now();
	size_t at = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		at = next[at * 8];
		other = at;
	}
	return bench_now() - began;
}

static void
bench_unhit(void)
{
	const size_t *next = make_walk();
	double ratio[LOOPS];

	(void)walk(next);
	for (unsigned i = 0; i < LOOPS; i++) {
		double times[2];

		for (unsigned k = 0; k < 2; k++) {	/* either goes first */
			unsigned armed = (i + k) % 2;
			struct wp_watch *w = armed ? open_watch(0) : NULL;

			times[armed] = walk(next);
			wp_close(w);
		}
		ratio[i] = times[1] / times[0];
	}
	bench_tell("armed and never hit", bench_median(ratio, LOOPS), "x",
	    "without", 1.01, 0);
}

static double
open_and_close(void)
{
	double began = bench_now();

	for (unsigned i = 0; i < CALLS; i++)
		wp_close(open_watch(0));
	return bench_now() - began;
}

static double
open_and_close_bare(void)
{
	double began = bench_now();

	for (unsigned i = 0; i < CALLS; i++)
		(void)close(open_bare());
	return bench_now() - began;
}

static const volatile uint64_t *
place(unsigned i)
{
	return i % 2 == 0 ? &other : &word;
}

static double
move(struct wp_watch *w)
{
	double began = bench_now();

	for (unsigned i = 0; i < CALLS; i++)
		assert_int_equal(wp_move(w, place(i)), 0);
	return bench_now() - began;
}

static double
move_bare(int fd)
{
	struct perf_event_attr attr = bare_attr();
	double began = bench_now();

	for (unsigned i = 0; i < CALLS; i++) {
		attr.bp_addr = (uintptr_t)place(i);
		assert_int_equal(wp_perf_modify(fd, &attr), 0);
	}
	return bench_now() - began;
}

static void
bench_calls(void)
{
	double opens[ROUNDS], moves[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct wp_watch *w;
		int fd;

		opens[i] = open_and_close() / open_and_close_bare();
		w = open_watch(0);
		moves[i] = move(w);
		wp_close(w);
		fd = open_bare();
		moves[i] /= move_bare(fd);
		(void)close(fd);
	}
	bench_tell("wp_open and wp_close", bench_median(opens, ROUNDS), "x",
	    "bare open and close", 3, 0);
	bench_tell("wp_move", bench_median(moves, ROUNDS), "x",
	    "bare MODIFY_ATTRIBUTES", 1.5, 0);
}

int
main(void)
{
	assert_int_equal(setenv("WATCHPOINT_HELPER", watchctl(), 1), 0);
	assert_int_equal(setenv("WATCHPOINT_OUTPUT", "/dev/null", 1), 0);
	wp_close(open_watch(0));
	if (wp_state.channel == NULL)
		fail_msg("there is no helper: %s", watchctl());
	bench_calls();
	bench_unhit();
	bench_hits();
	return bench_status();
}
