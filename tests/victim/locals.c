/*
 * locals: a victim of two threads, each with its own instance of a thread-local
 * variable.
 *
 *	locals LIBRARY
 *
 * Opens the library, prints "MAIN WORKER ADDRESS ADDRESS ERRNO": the threads'
 * ids, where each has the variable own, and the first one its errno.  At each
 * line it reads: "w": the worker writes its own, the first thread its own, and
 * the worker that of the first thread; then the first one has errno set.  "e":
 * the worker ends.  "a": another thread, which gets its memory, writes its
 * own.  After each it says "done".  Ends with status 7.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

struct pair {
	long first, second;
};

static __thread volatile struct pair own;
static __thread volatile char small[5];

static volatile struct pair *of_worker, *of_main;
static pid_t worker_id;
static sem_t to_worker, from_worker;
static volatile int ends;

static void *
work(void *arg)
{
	of_worker = &own;
	worker_id = gettid();
	small[0]++;
	(void)sem_post(&from_worker);
	for (;;) {
		(void)sem_wait(&to_worker);
		if (ends)
			return arg;
		own.second = 1;
		(void)sem_post(&from_worker);
		(void)sem_wait(&to_worker);
		of_main->second = 3;
		(void)sem_post(&from_worker);
	}
}

static void
hand_over(void)
{
	(void)sem_post(&to_worker);
	(void)sem_wait(&from_worker);
}

static void *
write_again(void *arg)
{
	own.second = 9;
	return arg;
}

static void
end_worker(pthread_t worker)
{
	ends = 1;
	(void)sem_post(&to_worker);
	(void)pthread_join(worker, NULL);
}

int
main(int argc, char **argv)
{
	pthread_t thread;
	char line[64];

	if (argc < 2 || dlopen(argv[1], RTLD_NOW) == NULL)
		return 9;
	of_main = &own;
	(void)sem_init(&to_worker, 0, 0);
	(void)sem_init(&from_worker, 0, 0);
	(void)pthread_create(&thread, NULL, work, NULL);
	(void)sem_wait(&from_worker);
	printf("%d %d %p %p %p\n", getpid(), worker_id, (void *)&own,
	    (void *)of_worker, (void *)&errno);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (*line == 'w') {
			hand_over();
			own.second = 2;
			hand_over();
			(void)close(-1);
		} else if (*line == 'e') {
			end_worker(thread);
		} else {
			(void)pthread_create(&thread, NULL, write_again, NULL);
			(void)pthread_join(thread, NULL);
		}
		printf("done\n");
		(void)fflush(stdout);
	}
	return 7;
}
