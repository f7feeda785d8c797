/*
 * lossless: counts the hits that are lost under load: of four threads that
 * write all the time, and of one beside ten tasks that calculate; each with a
 * backtrace and values, as JSON lines into a file.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { RUNS = 5, TASKS = 10 };

struct load {
	const char *name, *threads, *writes;	/* 100,000 in all */
	unsigned tasks;
};

static pid_t
calculate(void)
{
	const pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		;
	_exit(0);
}

static double
number_before(const char *said, const char *what)
{
	const char *at = strstr(said, what);

	assert_non_null(at);
	while (at > said && strchr("0123456789 ", at[-1]) != NULL)
		at--;
	return atof(at);
}

/* Hits lost of those of one run. */
static double
lost_of(const struct load *load, const char *report)
{
	struct running v, w;
	struct outcome o;
	pid_t task[TASKS];
	char pid[16], addr[32];
	double lost;

	start(&v, LIST(victim("counter"), load->threads, load->writes));
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	(void)unlink(report);
	start(&w, LIST(watchctl(), "-w", addr, "-o", "json", "-O", report,
	    "-p", pid));
	bench_await_start(report);
	for (unsigned i = 0; i < load->tasks; i++)
		task[i] = calculate();
	(void)bench_go(&v);
	bench_end(&v);
	finish(&w, &o);
	for (unsigned i = 0; i < load->tasks; i++) {
		(void)kill(task[i], SIGKILL);
		(void)waitpid(task[i], NULL, 0);
	}
	assert_true(number_before(o.err, " hits, ") == 100000);
	lost = number_before(o.err, " lost");
	return lost;
}

int
main(void)
{
	static const struct load loads[] = {
		{"hits lost of four threads", "4", "25000", 0},
		{"hits lost beside ten tasks", "1", "100000", TASKS},
	};
	char report[] = "/tmp/watchctl_bench.XXXXXX";
	int fd = mkstemp(report);

	assert_true(fd >= 0);
	(void)close(fd);
	for (size_t i = 0; i < COUNT(loads); i++) {
		double lost = 0;

		for (int k = 0; k < RUNS; k++)
			lost += lost_of(&loads[i], report);
		bench_tell(loads[i].name, lost, "", "of 5 runs", 0, 0);
	}
	(void)unlink(report);
	return bench_status();
}
