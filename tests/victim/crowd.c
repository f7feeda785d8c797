/*
 * crowd: a victim of many threads, at the same addresses in each process, that
 * does what it is told, line by line:
 *
 *	add N		each of the threads adds 1 to the word N times, at once
 *	read N		have read(2) put N numbers there
 *	thread N	a new thread adds 1 to it N times
 *	fork N		a child adds 1 to it N times
 *	exec		execute the same again, with as many threads
 *
 *	crowd THREADS
 *
 * Says "pid PID word ADDRESS" once they all exist, and "done N" after each: how
 * often the word was written by the process in all.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile long word;
static pthread_barrier_t begin, end;
static long each, writes;

static void
add(long n)
{
	for (long i = 0; i < n; i++)
		(void)__atomic_fetch_add(&word, 1, __ATOMIC_RELAXED);
}

static void *
add_when_told(void *unused)
{
	(void)unused;
	for (;;) {
		(void)pthread_barrier_wait(&begin);
		add(each);
		(void)pthread_barrier_wait(&end);
	}
	return NULL;
}

static void *
add_at_once(void *n)
{
	add(*(long *)n);
	return NULL;
}

static void
read_numbers(long n)
{
	long value = n;
	int fd[2];

	if (pipe(fd) != 0)
		abort();
	for (long i = 0; i < n; i++)
		if (write(fd[1], &value, sizeof(value)) != sizeof(value) ||
		    read(fd[0], (void *)&word, sizeof(value)) !=
		    sizeof(value))
			abort();
	(void)close(fd[0]);
	(void)close(fd[1]);
	writes += n;
}

static void
run_thread(long n)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, add_at_once, &n) != 0)
		abort();
	(void)pthread_join(thread, NULL);
	writes += n;
}

static void
run_child(long n)
{
	const pid_t pid = fork();

	if (pid == 0) {
		add(n);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void
run_all(long n, int threads)
{
	each = n;
	(void)pthread_barrier_wait(&begin);
	(void)pthread_barrier_wait(&end);
	writes += n * threads;
}

int
main(int argc, char **argv)
{
	const int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t attr;
	pthread_t thread;
	char line[64], what[16];
	long n;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 65536);
	(void)pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	(void)pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread, &attr, add_when_told, NULL) != 0)
			abort();
	printf("pid %d word %p\n", (int)getpid(), (void *)&word);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strcmp(line, "exec\n") == 0)
			(void)execv("/proc/self/exe", argv);
		if (sscanf(line, "%15s %ld", what, &n) != 2)
			return 1;
		if (strcmp(what, "add") == 0)
			run_all(n, threads);
		else if (strcmp(what, "read") == 0)
			read_numbers(n);
		else if (strcmp(what, "thread") == 0)
			run_thread(n);
		else if (strcmp(what, "fork") == 0)
			run_child(n);
		printf("done %ld\n", writes);
		(void)fflush(stdout);
	}
	return 0;
}
