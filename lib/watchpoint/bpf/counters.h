/*
 * counters: the counts of a thread between its hits.
 *
 * Overview: an event that threads inherit can be read neither by a program at
 * the hit nor, where it is one of several processors' events, as a whole.  So
 * the counters are the processors', of which each has its own, and two programs
 * divide what they count among the threads: at each switch, what was counted on
 * this processor since the last one is the outgoing thread's; when a thread has
 * ended, it is forgotten.  A thread is known from its first hit on.
 *
 *	thread A  --hit----------hit--.            .--hit--
 *	thread B                       `----------'
 *	counter   100            107   109         130  134
 *	A's                      +7    `-- +2 -------- +4   = 6 since its hit
 *
 * Kernels were seen to switch without running a program there, now and then.
 * So whether they did is proved: the first counter is that of switches, which
 * goes up by one from one to the next; a processor's counts name the thread
 * that came; and a thread that comes again must have gone.  Otherwise, what it
 * has counted is not known, and it is forgotten.
 */
#ifndef WP_COUNTERS_H
#define WP_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/cause.h"
#include "os/counter.h"

struct wp_counters {
	unsigned n;
	unsigned counter[WP_COUNTERS];	/* n of them: enum wp_counter; the
					   first is of switches, */
	bool hidden;	/* which is not asked for */
	int events[WP_COUNTERS];	/* maps: the same, by processor */
	int since;	/* a map: what a processor's were at its last switch,
			   then whether one could not be read, then the task
			   that came */
	int threads;	/* a map: by its task, what a thread has counted until
			   it last went; then what it had at its last hit; then
			   whether it has not gone; then its number, since its
			   task may be another's later */
	int switching, ending;		/* the programs' attachments */
};

/* The sizes of its elements. */
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

/* Begin to count what has its bit (1 << counter) in `which'.  0, or -errno with
   a cause: nothing is left. */
int wp_counters_open(struct wp_counters *, uint32_t which, struct wp_cause *);
void wp_counters_close(struct wp_counters *);

#endif
