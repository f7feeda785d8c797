/*
 * rotate: measures what a program pays for slots that move over an object which
 * it does not touch: each move interrupts the thread.  It is processor time for
 * the same computation, beside slots that stay, and no watch at all.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { RUNS = 7, ROUNDS = 5 };

/* ms of processor time */
static double
ask(struct running *v)
{
	return bench_least(v, "w 20000\n", RUNS) / 1e6;
}

static double
ask_watched(struct running *v, const char *pid, const char *const *watch)
{
	const char *argv[16];
	char line[16384];
	struct running w;
	struct outcome o;
	size_t n = 0;
	double ms;

	argv[n++] = watchctl();
	while (*watch != NULL)
		argv[n++] = *watch++;
	argv[n++] = "-o";
	argv[n++] = "json";
	argv[n++] = "-p";
	argv[n++] = pid;
	argv[n] = NULL;
	start(&w, argv);
	hear(&w, line, sizeof(line));
	if (strstr(line, "\"type\":\"start\"") == NULL)
		fail_msg("%s", line);
	ms = ask(v);
	assert_int_equal(kill(w.pid, SIGINT), 0);
	finish(&w, &o);
	return ms;
}

int
main(void)
{
	double none[ROUNDS], fixed[ROUNDS], moving[ROUNDS];
	char pid[16], addr[32];
	struct running v;

	start(&v, (const char *[]){victim("wide"), NULL});
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	for (int i = 0; i < ROUNDS; i++) {
		none[i] = ask(&v);
		fixed[i] = ask_watched(&v, pid, (const char *[]){"-w",
		    "wide:32", NULL}) / none[i];
		moving[i] = ask_watched(&v, pid, (const char *[]){"-w", "wide",
		    "--slots", "rotate", NULL}) / none[i];
	}
	bench_end(&v);
	printf("rotate: slots that stay make a computation %.3f x\n",
	    bench_median(fixed, ROUNDS));
	bench_tell("slots that move", bench_median(moving, ROUNDS), "x",
	    "the program that is not watched", 1.1, 0);
	return bench_status();
}
