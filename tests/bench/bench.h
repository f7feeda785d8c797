/*
 * bench: what the benchmarks share: time, medians, and a verdict in one line.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>

#include "command.h"

/* Seconds on the monotonic clock. */
double bench_now(void);

/* The middle of n values (which are put in order). */
double bench_median(double *values, size_t n);

/* Seconds of processor time that children have taken who were waited for, and
   those that they waited for. */
double bench_cpu(void);

/* Two recordings of what one victim writes, of which one is longer. */
struct bench_recordings {
	char file[2][32];
	double hits[2];
};

/* Make them, in /tmp; the arguments are the victim's, up to NULL.  Where
   breakpoints do not fire, of bench_stand_in(). */
void bench_record(struct bench_recordings *, const char *const shorter[],
    const char *const longer[]);
void bench_remove(const struct bench_recordings *);

/* Make a recording of what a victim, counter with a single thread or paths,
   writes, of a uprobe behind the write; how many hits. */
double bench_stand_in(const char *file, const char *const argv[]);

/* Whether breakpoints fire on this machine. */
bool bench_fires(void);

/* What takes processor time of a recording; what it takes of it is measured by
   bench_cpu, and which one it is handed. */
struct bench_way {
	void (*run)(const struct bench_way *, const char *file);
	const char *command;	/* for run */
	double least[2];	/* bench_compare: seconds, for each recording */
	double hit;		/* the same: seconds for a hit */
};

/* Run each way with both recordings, so often, one after the other.  What it
   takes to begin is left out of a hit's time: the least of the longer recording
   and the least of the shorter one differ by hits alone. */
void bench_compare(struct bench_way *, size_t n, unsigned rounds,
    const struct bench_recordings *);

/* Have a victim act, which then prints "done".  Seconds. */
double bench_go(struct running *);

/* Have a victim act some times, which then prints "done NS": the least, since
   others want the processors, too. */
double bench_least(struct running *, const char *what, unsigned times);

/* Have a victim end. */
void bench_end(struct running *);

/* Wait until watchctl, whose JSON lines go to this file, watches: the first is
   written then, while the file is there earlier. */
void bench_await_start(const char *report);

/* Have gdb watch counter, and silently continue at each hit. */
extern const char bench_gdb_script[];

/* Print "name: value (limit: at most LIMIT)" and whether it is kept; at_least
   turns the limit around.  Remembers a limit that is not kept. */
void bench_tell(const char *name, double value, const char *unit,
    const char *what, double limit, int at_least);

/* The exit status: 1 when a limit was not kept. */
int bench_status(void);

#endif
