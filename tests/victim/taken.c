/*
 * taken: takes SIGTRAP away for one write, by a way that libwatchpoint does not
 * see, and writes elsewhere after that.
 *
 *	taken alone | together
 *
 * together: with another thread, which does nothing.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct {
	volatile long first;
	long between[64];
	volatile long second;
} words __attribute__((aligned(64)));

extern __typeof__(sigaction) __sigaction;

static void *
idle(void *arg)
{
	(void)pause();
	return arg;
}

int
main(int argc, char **argv)
{
	struct sigaction ours, ignored = {.sa_handler = SIG_IGN};
	pthread_t thread;

	if (argc == 2 && strcmp(argv[1], "together") == 0 &&
	    pthread_create(&thread, NULL, idle, NULL) != 0)
		return 2;
	(void)__sigaction(SIGTRAP, &ignored, &ours);
	words.first = 1;
	(void)__sigaction(SIGTRAP, &ours, NULL);
	for (long i = 1; i <= 5; i++)
		words.second = i;
	return 0;
}
