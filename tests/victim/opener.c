/*
 * opener: a victim that opens a library (plug.c) again and again.
 *
 *	opener THREADS LIBRARY [move|fork|fork-other|fork-twice|urgent|
 *	    wait|wait-open|execute|outlive]
 *
 * Each of the threads, one after the other (0: the first one, once), opens the
 * library, and has it write its variable twice, after the constructor has; then
 * it closes it.  With move something is mapped where it was, so that it is at
 * another place the next time.  With fork a child process does the same once
 * more, with fork-other it opens another library, with fork-twice a child of it
 * does, which outlives it.  With urgent it handles SIGURG, opens the library
 * three thousand times, and says how often its handler was called.  With wait
 * all threads are made first, it says "ready", and they begin when it reads a
 * line; with wait-open it has the library open until then, and with execute it
 * executes itself.  With outlive a thread is made while the library is open,
 * which uses it when it was closed.  Ends with status 7, or 9 if the library
 * cannot be opened.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *library;
static int move;

static void *
use(void *arg)
{
	void *plug = dlopen(library, RTLD_NOW);
	void (*plug_write)(volatile long *);
	volatile long word;

	if (plug == NULL || (*(void **)&plug_write =
	    dlsym(plug, "plug_write")) == NULL)
		exit(9);
	plug_write(&word);
	plug_write(&word);
	(void)dlclose(plug);
	if (move)
		(void)mmap((void *)((uintptr_t)plug_write & -4096ul), 4096,
		    PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
		    MAP_FIXED_NOREPLACE, -1, 0);
	return arg;
}

static void
in_a_child(const char *how)
{
	const int other = strcmp(how, "-other") == 0;
	int status = 0;

	if (fork() == 0) {
		if (strcmp(how, "-twice") == 0 && fork() != 0)
			_exit(0);
		if (!other)
			(void)use(NULL);
		_exit(!other || dlopen("libm.so.6", RTLD_NOW) != NULL ? 0 : 9);
	}
	if (wait(&status) < 0 || status != 0)
		exit(9);
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *
use_in_turn(void *arg)
{
	(void)pthread_mutex_lock(&turn);
	(void)use(NULL);
	(void)pthread_mutex_unlock(&turn);
	return arg;
}

/* Until a line is read. */
static void
wait_with(int threads, int open)
{
	pthread_t thread[16];
	void *plug = open ? dlopen(library, RTLD_NOW) : NULL;

	(void)pthread_mutex_lock(&turn);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, use_in_turn, NULL) != 0)
			exit(9);
	printf("ready\n");
	(void)fflush(stdout);
	(void)getchar();
	if (plug != NULL)
		(void)dlclose(plug);
	(void)pthread_mutex_unlock(&turn);
	for (int i = 0; i < threads; i++)
		(void)pthread_join(thread[i], NULL);
}

static void
outlive(void)
{
	pthread_t thread;
	void *plug;

	(void)pthread_mutex_lock(&turn);
	plug = dlopen(library, RTLD_NOW);
	if (plug == NULL || pthread_create(&thread, NULL, use_in_turn,
	    NULL) != 0)
		exit(9);
	(void)dlclose(plug);
	(void)pthread_mutex_unlock(&turn);
	(void)pthread_join(thread, NULL);
}

static volatile sig_atomic_t urgent;

static void
handle(int sig)
{
	(void)sig;
	urgent++;
}

int
main(int argc, char **argv)
{
	pthread_t thread;

	library = argv[2];
	move = argc > 3 && strcmp(argv[3], "move") == 0;
	if (argc > 3 && strcmp(argv[3], "urgent") == 0) {
		(void)signal(SIGURG, handle);
		for (int i = 0; i < 3000; i++)
			(void)use(NULL);
		printf("\nurgent %d\n", (int)urgent);
		return 7;
	}
	if (argc > 3 && strncmp(argv[3], "wait", 4) == 0) {
		wait_with(atoi(argv[1]), strcmp(argv[3], "wait-open") == 0);
		return 7;
	}
	if (argc > 3 && strcmp(argv[3], "outlive") == 0) {
		outlive();
		return 7;
	}
	if (argc > 3 && strcmp(argv[3], "execute") == 0) {
		wait_with(0, 0);
		(void)execl("/proc/self/exe", argv[0], argv[1], argv[2],
		    (char *)NULL);
		return 9;
	}
	if (atoi(argv[1]) == 0)
		(void)use(NULL);
	for (int i = atoi(argv[1]); i > 0; i--)
		if (pthread_create(&thread, NULL, use, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			exit(9);
	if (argc > 3 && strncmp(argv[3], "fork", 4) == 0)
		in_a_child(argv[3] + 4);
	return 7;
}
