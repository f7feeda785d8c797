/*
 * top: what a table on the terminal takes, of watchctl and its explainer,
 * compared with -o summary on the same terminal, which script(1) makes.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define WRITES "200000"

enum { RUNS = 7 };

/* Processor time of watchctl with this option while a victim writes. */
static double
watched(const char *option)
{
	char address[32], command[4096];
	struct running v, w;
	struct outcome o;
	double took;

	start(&v, LIST(victim("counter"), "1", WRITES));
	hear_address(&v, address);
	(void)snprintf(command, sizeof(command), "%s %s -w %s -p %d",
	    watchctl(), option, address, (int)v.pid);
	took = bench_cpu();
	start(&w, LIST("/usr/bin/script", "-qec", command, "/dev/null"));
	(void)usleep(800000);
	(void)bench_go(&v);
	(void)usleep(600000);
	say(&v, "end\n");
	finish(&w, &o);
	took = bench_cpu() - took;
	if (strstr(o.out, WRITES " hits, " WRITES " reported") == NULL)
		fail_msg("%s: %s%s", option, o.out, o.err);
	finish(&v, &o);
	return took;
}

int
main(void)
{
	double table[RUNS], summary[RUNS];

	(void)setenv("TERM", "xterm-256color", 1);
	for (int i = 0; i < RUNS; i++) {
		table[i] = watched("--top");
		summary[i] = watched("-o summary");
	}
	printf("%s hits in a table on the terminal take %.3f s of processor "
	    "time, as a summary %.3f s\n", WRITES, bench_median(table, RUNS),
	    bench_median(summary, RUNS));
	bench_tell("--top", bench_median(table, RUNS) /
	    bench_median(summary, RUNS), "x", "-o summary", 1.1, 0);
	return bench_status();
}
