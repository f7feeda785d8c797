/*
 * counters: what a thread counts between two of its hits.
 *
 * Overview: an inherited event cannot be read by a program at the hit, and with
 * an event for each processor no single one has the thread's whole count.  So
 * each processor has counters of its own, and two programs divide their counts
 * among the threads: at each switch, what the processor counted since the
 * previous switch is added to the outgoing thread; at a thread's end, its
 * counts are forgotten.  Counting for a thread starts at its first hit.
 *
 *	thread A  --hit----------hit--.            .--hit--
 *	thread B                       `----------'
 *	counter   100            107   109         130  134
 *	A's                      +7    `-- +2 -------- +4   = 6 since its hit
 *
 * Now and then kernels switch threads without running the program.  The
 * programs therefore check that they saw each switch: the first counter counts
 * switches, and must go up by one from one switch to the next; the processor's
 * entry names the thread that was switched to; and a thread that is switched to
 * again must have been switched from.  If a check fails, the thread's counts
 * are unknown, and are forgotten.
 */
#ifndef WP_COUNTERS_H
#define WP_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/cause.h"
#include "os/counter.h"

struct wp_counters {
	unsigned n;
	unsigned counter[WP_COUNTERS];	/* n of them: enum wp_counter; the first
					   one counts switches */
	bool hidden;	/* nobody asked for switches, so they are not
			   reported */
	int events[WP_COUNTERS];	/* maps: the events of each counter, by
					   processor */
	int since;	/* a map by processor: the counts at its last switch,
			   then whether one could not be read, then the task
			   that was switched to */
	int threads;	/* a map by task: what the thread had counted when it
			   was last switched from; then at its last hit; then
			   whether it is still running; then its thread ID,
			   since the task's address may be reused */
	int switching, ending;		/* the programs' attachments */
};

/* The sizes of elements of the maps since and threads. */
static inline unsigned
wp_counters_since(unsigned n)
{
	return (n + 2) * (unsigned)sizeof(uint64_t);
}

static inline unsigned
wp_counters_thread(unsigned n)
{
	return (2 * n + 2) * (unsigned)sizeof(uint64_t);
}

/* Start the counters whose bits (1 << counter) are set in `which'.  0, or
   -errno with a cause; nothing stays open then. */
int wp_counters_open(struct wp_counters *, uint32_t which, struct wp_cause *);
void wp_counters_close(struct wp_counters *);

#endif
