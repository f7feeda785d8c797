/*
 * brood: a victim whose threads write their own instances of thread-local
 * variables, from the first instruction that they can on.
 *
 *	brood THREADS [WAY]
 *
 * The first thread writes 1 to own; so many threads, all there at once, write
 * their number, from 1, times 10, and that plus 1, each to its own; and the
 * first one writes 2.  WAY: "wait": it says "ready" and reads a line before
 * that, and another one behind it.  "fork": a child does it all before.
 * "execute": all is done by the same program, which it executes after its own
 * first write.  Ends with status 7.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 512 };

static __thread volatile long own;
static sem_t all_there;

static void *
write_own(void *arg)
{
	own = (intptr_t)arg * 10;
	(void)sem_wait(&all_there);
	own = (intptr_t)arg * 10 + 1;
	return NULL;
}

static void
make_threads(int n)
{
	pthread_t thread[THREADS_MAX];

	for (intptr_t i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, write_own,
		    (void *)(i + 1)) != 0)
			_exit(9);
	for (int i = 0; i < n; i++)
		(void)sem_post(&all_there);
	for (int i = 0; i < n; i++)
		(void)pthread_join(thread[i], NULL);
}

static void
act(int n)
{
	own = 1;
	make_threads(n);
	own = 2;
}

int
main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 0;
	const char *way = argc > 2 ? argv[2] : "";
	char line[16];

	if (n > THREADS_MAX || sem_init(&all_there, 0, 0) != 0)
		return 9;
	if (strcmp(way, "wait") == 0) {
		printf("ready\n");
		(void)fflush(stdout);
		(void)fgets(line, sizeof(line), stdin);
	} else if (strcmp(way, "execute") == 0) {
		own = 1;
		(void)execl(argv[0], argv[0], argv[1], (char *)NULL);
		return 9;
	} else if (strcmp(way, "fork") == 0) {
		if (fork() == 0) {
			act(n);
			_exit(0);
		}
		(void)wait(NULL);
	}
	act(n);
	if (strcmp(way, "wait") == 0)
		(void)fgets(line, sizeof(line), stdin);
	return 7;
}
