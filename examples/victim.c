/*
 * victim: a program with a bug to find.  It counts up, yet the counter keeps
 * falling back to zero.  Which thread does that, and where?
 *
 *	victim & watchctl -w counter -n 6 -p $!
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rounds = 100;	/* half a minute */
static long counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
bump(long by)
{
	pthread_mutex_lock(&lock);
	counter += by;
	pthread_mutex_unlock(&lock);
}

static void
level(long by)
{
	bump(by);
	usleep(300000);
}

static void *
worker(void *unused)
{
	(void)unused;
	for (int i = 0; i < rounds; i++)
		level(10);
	return NULL;
}

static void *
janitor(void *unused)
{
	(void)unused;
	for (int i = 0; i < rounds; i++) {
		usleep(500000);
		pthread_mutex_lock(&lock);
		counter = 0;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void
start(const char *name, void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) == 0)
		pthread_setname_np(thread, name);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	printf("pid %d counter %p\n", (int)getpid(), (void *)&counter);
	fflush(stdout);
	start("worker", worker);
	start("janitor", janitor);
	for (int i = 0; i < rounds; i++)
		level(1);
	return 0;
}
