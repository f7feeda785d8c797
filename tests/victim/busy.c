/*
 * busy: a victim that checks itself all the time.
 *
 *	busy [alone]
 *
 * Says "pid PID progress ADDRESS": of PARTS longs, which grow as long as all is
 * well.  At a line on stdin it stops, says "done" and ends with status 7; or
 * says what went wrong, with status 1.
 *
 * Two threads calculate and write `word`; one sends signals, which these
 * handle; one sleeps in system calls that never fail; one makes threads and,
 * unless it is alone, children.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALCULATE, CALCULATE_TOO, SEND, SLEEP, MAKE, PARTS };

volatile long word;
static _Atomic long progress[PARTS];
static atomic_bool over;
static bool alone;
static _Atomic(const char *) wrong;
static _Atomic long sent, handled;

static void
check(int good, const char *what)
{
	if (!good)
		wrong = what;
}

/* The same in integers and in floating point, up to 2^40; one thread has a rest
   now and then. */
static void *
calculate(void *arg)
{
	intptr_t part = (intptr_t)arg;
	uint64_t n = 1;
	double x = 1;

	while (!over) {
		for (int i = 0; i < 1000; i++) {
			n = n * 3 + 7;
			x = x * 3 + 7;
			if (n > UINT64_C(1) << 40) {
				n >>= 20;
				x = (double)(uint64_t)(x / (1 << 20));
			}
			check((double)n == x, "calculation");
		}
		word = (long)n;
		progress[part]++;
		if (part == CALCULATE_TOO)
			(void)usleep(100);
	}
	return NULL;
}

static void
handle(int sig)
{
	(void)sig;
	handled++;
}

static void *
send_signals(void *arg)
{
	while (!over) {
		sent++;
		check(kill(getpid(), SIGRTMIN) == 0, "kill");
		while (handled < sent)
			(void)usleep(20);
		check(handled == sent, "signals handled");
		progress[SEND]++;
	}
	return arg;
}

/* In calls that are begun again, unseen, whatever stops the thread. */
static void *
sleep_a_lot(void *arg)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int fd[2];
	char c = 0;
	sem_t never;

	check(pipe(fd) == 0 && sem_init(&never, 0, 0) == 0, "pipe");
	while (!over) {
		struct pollfd p = {fd[0], POLLIN, 0};
		struct timespec until;

		check(nanosleep(&ms, NULL) == 0, "nanosleep");
		check(poll(&p, 1, 1) == 0, "poll");
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		while (sem_timedwait(&never, &until) == 0)
			check(0, "sem_timedwait");
		check(write(fd[1], "x", 1) == 1 && read(fd[0], &c, 1) == 1 &&
		    c == 'x', "read");
		progress[SLEEP]++;
	}
	return arg;
}

static void *
come_and_go(void *arg)
{
	return arg;
}

static void
make_child(void)
{
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0)
		_exit(42);
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	    WEXITSTATUS(status) == 42, "child");
}

static void *
make(void *arg)
{
	while (!over) {
		pthread_t thread;
		void *result = NULL;

		check(pthread_create(&thread, NULL, come_and_go, arg) == 0 &&
		    pthread_join(thread, &result) == 0 && result == arg,
		    "thread");
		if (!alone)
			make_child();
		progress[MAKE]++;
		(void)usleep(500);
	}
	return arg;
}

int
main(int argc, char **argv)
{
	static void *(*const part[PARTS])(void *) = {
		calculate, calculate, send_signals, sleep_a_lot, make,
	};
	struct sigaction action = {.sa_handler = handle,
	    .sa_flags = SA_RESTART};
	pthread_t thread[PARTS];
	sigset_t signals;
	char line[64];

	alone = argc > 1 && strcmp(argv[1], "alone") == 0;
	(void)sigaction(SIGRTMIN, &action, NULL);
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGRTMIN);
	for (intptr_t i = 0; i < PARTS; i++) {
		(void)pthread_sigmask(i < SEND ? SIG_UNBLOCK : SIG_BLOCK,
		    &signals, NULL);
		if (pthread_create(&thread[i], NULL, part[i], (void *)i) != 0)
			abort();
	}
	printf("pid %d progress %p\n", (int)getpid(), (void *)progress);
	fflush(stdout);
	check(fgets(line, sizeof(line), stdin) != NULL, "no line");
	over = 1;
	for (int i = 0; i < PARTS; i++)
		(void)pthread_join(thread[i], NULL);
	check(sent == handled, "signals in the end");
	printf("%s\n", wrong == NULL ? "done" : wrong);
	return wrong == NULL ? 7 : 1;
}
