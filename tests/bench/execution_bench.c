/*
 * execution: measures what a call of a watched function costs a program, by a
 * uprobe and by a slot, over one that is not watched; in processor time, of the
 * same process.  The function begins with a push, which the kernel emulates.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { RUNS = 9, ARGUMENTS = 32 };

/* us for a call. */
static double
ask(struct running *v, const char *what)
{
	return bench_least(v, what, RUNS) / 1e3;
}

/* place0 to place11, the first ones of which have the slots. */
static void
watch(struct running *w, const char *pid, const char *how)
{
	static const char *const places[] = {
		"place0", "place1", "place2", "place3", "place4", "place11",
	};
	const char *argv[ARGUMENTS] = {watchctl()};
	char line[4096];
	size_t n = 1;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		argv[n++] = "-x";
		argv[n++] = places[i];
	}
	argv[n++] = how;
	argv[n++] = "-o";
	argv[n++] = "json";
	argv[n++] = "-p";
	argv[n++] = pid;
	argv[n] = NULL;
	start(w, argv);
	hear(w, line, sizeof(line));
	if (strstr(line, "\"spec\":\"place11\"") == NULL ||
	    strstr(line, "\"uprobe\":true}]") == NULL)
		fail_msg("%s", line);
}

static void
measure(const char *how, const char *name, const char *calls, double limit)
{
	char pid[16], addr[32], slot[32], uprobe[32];
	double none, over, by_slot;
	struct running v, w;
	struct outcome o;

	(void)snprintf(slot, sizeof(slot), "time %s\n", calls);
	(void)snprintf(uprobe, sizeof(uprobe), "last %s\n", calls);
	start(&v, (const char *[]){victim("places"), NULL});
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	none = ask(&v, uprobe);
	watch(&w, pid, how);
	over = ask(&v, uprobe) - none;
	by_slot = ask(&v, slot) - none;
	bench_end(&v);
	finish(&w, &o);
	printf("%s: a call costs %.2f us more by a uprobe, %.2f us by a slot\n",
	    name, over, by_slot);
	bench_tell(name, over, "us", "a call over one that is not watched",
	    limit, 0);
}

int
main(void)
{
	measure("--count", "a uprobe, counted", "20000", 1.5);
	measure("--user-only", "a uprobe, reported", "300", 1.5);
	return bench_status();
}
