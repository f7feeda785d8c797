/*
 * follow: measures what it costs a program to change a pointer that is
 * followed, so that a watch moves, against what an ordinary hit costs it.  Both
 * are hits of the same run, each with some work behind it, in which a thread
 * that runs is interrupted by the move; the time of the work alone is taken
 * away.  The work takes much longer than a hit, and other programs make it
 * longer still, so of each only the least time is used.  Of a thread that stops
 * it is the time that passes, of one that runs its processor time.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { RUNS = 7 };

/* us; of this measurement or the least of earlier ones (0: there is none) */
static double
ask(struct running *v, const char *what, bool stops, double least)
{
	double took, ran, time;
	char line[64];

	say(v, what);
	hear(v, line, sizeof(line));
	assert_int_equal(sscanf(line, "done %lf %lf", &took, &ran), 2);
	time = (stops ? took : ran) / 1e3;
	return least > 0 && least < time ? least : time;
}

/* Have the victim followed, into a file. */
static void
follow(struct running *w, const char *how, const char *pid, const char *report)
{
	char text[4096];
	size_t n = 0;

	start(w, (const char *[]){watchctl(), "-w", "box->item->count",
	    "--follow", how, "-o", "json", "-O", report, "-p", pid, NULL});
	for (int i = 0; i < 6000 && n == 0; i++) {
		FILE *f = fopen(report, "r");

		(void)usleep(10000);
		n = f != NULL ? fread(text, 1, sizeof(text), f) : 0;
		if (f != NULL)
			(void)fclose(f);
	}
	assert_true(n > 0);
}

/* limit 0: none, for a thread that sleeps has to be woken to be held. */
static void
measure(const char *how, const char *threads, const char *name, double limit)
{
	double work = 0, hit = 0, move = 0;
	struct running v, w;
	struct outcome o;
	char report[] = "/tmp/watchctl_bench.XXXXXX", pid[16], addr[32];
	const bool stops = strcmp(how, "--stop") == 0;
	int fd = mkstemp(report);

	start(&v, (const char *[]){victim("moving"), threads, NULL});
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	assert_true(fd >= 0);
	(void)close(fd);
	follow(&w, how, pid, report);
	for (int i = 0; i < RUNS; i++) {
		work = ask(&v, "w\n", stops, work);
		hit = ask(&v, "t\n", stops, hit);
		move = ask(&v, "p\n", stops, move);
	}
	bench_end(&v);
	finish(&w, &o);
	(void)unlink(report);
	printf("%s: a hit costs %.1f us, one that moves the watch %.1f us\n",
	    name, hit - work, move - work);
	if (limit > 0)
		bench_tell(name, (move - work) / (hit - work), "x",
		    "an ordinary hit", limit, 0);
}

int
main(void)
{
	measure("--follow", NULL, "followed, of threads that run", 3);
	measure("--stop", "alone", "followed, of a thread that stops", 3);
	measure("--stop", NULL, "followed, of two threads that stop", 0);
	return bench_status();
}
