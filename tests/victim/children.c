/*
 * children: a program that creates children, in each way.
 *
 *	children ACT ...
 *
 * Adds 1 to `counter` after each act.  Ends with status 3.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 600, LIFE = 60, SLOW_US = 300000 };

extern char **environ;
volatile long counter;

static char name[] = "true";
static char *const nothing[] = {name, NULL};

static void
execute(void)
{
	(void)execvp(nothing[0], nothing);
	_exit(1);
}

static void
await_all(void)
{
	while (wait(NULL) > 0)
		;
}

/* Whoever waits for its output does not wait for a child's. */
static void
let_go(void)
{
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
}

static void
forks(void)
{
	if (fork() == 0) {
		counter = 99;
		_exit(0);
	}
	await_all();
}

static void
leaves(void)
{
	if (fork() != 0)
		return;
	let_go();
	(void)sleep(LIFE);
	_exit(0);
}

static void
executes(void)
{
	if (fork() == 0)
		execute();
	await_all();
}

/* When its parent has ended. */
static void
executes_late(void)
{
	const pid_t parent = getpid();

	if (fork() != 0)
		return;
	let_go();
	while (getppid() == parent)
		(void)usleep(1000);
	(void)usleep(SLOW_US);
	execute();
}

/* That one has executed it when the parent goes on. */
static void
leaves_other(void)
{
	int begun[2];
	char c;

	if (pipe2(begun, O_CLOEXEC) != 0)
		_exit(1);
	if (fork() != 0) {
		(void)close(begun[1]);
		if (read(begun[0], &c, 1) != 0)
			_exit(1);
		(void)close(begun[0]);
		return;
	}
	let_go();
	(void)execlp("sleep", "sleep", "60", (char *)NULL);
	_exit(1);
}

/* A child of one that executes another program; both have ended. */
static void
grandchild(void)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		_exit(1);
	if (fork() == 0) {
		if (fork() != 0)
			execute();
		let_go();
		counter = 99;
		_exit(0);
	}
	await_all();
}

static void
calls_system(void)
{
	if (system("true") != 0)
		_exit(1);
}

static void
calls_many(void)
{
	for (int i = 0; i < MANY; i++)
		executes();
}

static void
calls_popen(void)
{
	FILE *f = popen("true", "r");

	if (f == NULL || pclose(f) != 0)
		_exit(1);
}

static void
spawns(void)
{
	pid_t pid;

	if (posix_spawnp(&pid, nothing[0], NULL, NULL, nothing, environ) != 0)
		_exit(1);
	await_all();
}

static void
vforks(void)
{
	if (vfork() == 0)
		execute();
	await_all();
}

static void
vforks_and_ends(void)
{
	if (vfork() == 0)
		_exit(0);
	await_all();
}

static void *
nothing_more(void *arg)
{
	return arg;
}

static void
threads(void)
{
	pthread_t thread;

	for (int i = 0; i < MANY; i++)
		if (pthread_create(&thread, NULL, nothing_more, NULL) == 0)
			(void)pthread_join(thread, NULL);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} acts[] = {
		{"fork", forks}, {"leave", leaves}, {"execute", executes},
		{"late", executes_late}, {"leave-other", leaves_other},
		{"grandchild", grandchild}, {"system", calls_system},
		{"many", calls_many}, {"popen", calls_popen},
		{"spawn", spawns}, {"vfork", vforks},
		{"vfork-end", vforks_and_ends}, {"threads", threads},
	};

	for (int k = 1; k < argc; k++) {
		for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
			if (strcmp(argv[k], acts[i].name) == 0)
				acts[i].run();
		counter++;
	}
	return 3;
}
