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

/* Have a victim act, which then prints "done".  Seconds. */
double bench_go(struct running *);

/* Have a victim end. */
void bench_end(struct running *);

/* Have gdb watch counter, and silently continue at each hit. */
extern const char bench_gdb_script[];

/* Print "name: value (limit: at most LIMIT)" and whether it is kept; at_least
   turns the limit around.  Remembers a limit that is not kept. */
void bench_tell(const char *name, double value, const char *unit,
    const char *what, double limit, int at_least);

/* The exit status: 1 when a limit was not kept. */
int bench_status(void);

#endif
