/*
 * family: a process and its children, which write to a word of theirs.
 *
 *	family			ends with status 7.  What is written, in order,
 *				is what `family' of jobs.sh expects
 *	family exclusive	a child uses it by ldxr and stxr, on arm64
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN __attribute__((noinline))

volatile long word;

static OWN void
store(long value)
{
	word = value;
}

static void
await(void)
{
	int status;

	if (wait(&status) < 0 || status != 0)
		abort();
}

static void *
store_51(void *unused)
{
	store(51);
	return unused;
}

static void
by_fork(void)
{
	if (fork() == 0) {
		store(11);
		store(12);
		_exit(0);
	}
	await();
	store(2);
}

/* The child has its parent's memory. */
static void
by_vfork(void)
{
	if (vfork() == 0) {
		store(20);
		_exit(0);
	}
	await();
	store(21);
}

static void
by_grandchild(void)
{
	if (fork() == 0) {
		if (fork() == 0) {
			store(31);
			_exit(0);
		}
		await();
		store(22);
		_exit(0);
	}
	await();
}

static void
by_thread_of_child(void)
{
	pthread_t thread;

	if (fork() == 0) {
		if (pthread_create(&thread, NULL, store_51, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			abort();
		store(52);
		_exit(0);
	}
	await();
}

static void
by_another_program(void)
{
	if (fork() == 0) {
		store(41);
		(void)execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	await();
}

static OWN void
exclusive(void)
{
#if defined(__aarch64__)
	long value, failed;

	__asm__ volatile("1: ldxr %0, [%2]; add %0, %0, 1;"
	    "stxr %w1, %0, [%2]; cbnz %w1, 1b"
	    : "=&r"(value), "=&r"(failed) : "r"(&word) : "memory");
#endif
}

static void
by_exclusive(void)
{
	if (fork() == 0) {
		for (int i = 0; i < 3; i++)
			exclusive();
		_exit(word == 4 ? 0 : 1);
	}
	await();
}

int
main(int argc, char **argv)
{
	(void)argv;
	store(1);
	if (argc > 1) {
		by_exclusive();
		return 7;
	}
	by_fork();
	by_vfork();
	by_grandchild();
	by_thread_of_child();
	by_another_program();
	store(3);
	return 7;
}
