/*
 * idle: a victim with many threads that wait.
 *
 *	idle THREADS
 *
 * Says "pid PID counter ADDRESS" once they all exist; ends when killed, or when
 * stdin ends.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

volatile long counter;
static pthread_barrier_t all;

static void *
wait_for_ever(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&all);
	for (;;)
		pause();
	return NULL;
}

int
main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, &attr, wait_for_ever, NULL) != 0)
			abort();
	pthread_barrier_wait(&all);
	printf("pid %d counter %p\n", (int)getpid(), (void *)&counter);
	fflush(stdout);
	(void)getchar();
	return 0;
}
