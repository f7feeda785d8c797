/*
 * storm: a victim that knows what its word must hold.
 *
 *	storm		until a line on stdin
 *	storm once	for so many rounds
 *
 * Says "pid PID word ADDRESS".  Two threads add to `word`, one of them by a
 * thread that it makes each time; the first makes children, which add to
 * theirs, and has a thread handle signals.  Says "done" in the end, with status
 * 7, if `word` is what was added, no signal was lost, and children ended as
 * they should; else what was wrong, with status 1.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 6, CHILD = 3 };

_Atomic long word;
static _Atomic long added;
static sem_t handled;
static atomic_bool over;
static const char *wrong;

/* The one instruction that hits. */
__attribute__((noinline)) void
bump(void)
{
	word++;
}

static void
add(void)
{
	added++;
	bump();
}

static void
rest(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *
add_once(void *unused)
{
	add();
	return unused;
}

static void *
add_on(void *unused)
{
	while (!over) {
		for (int i = 0; i < 4; i++)
			add();
		rest();
	}
	return unused;
}

static void *
make_threads(void *unused)
{
	pthread_t thread;

	while (!over) {
		if (pthread_create(&thread, NULL, add_once, NULL) != 0)
			wrong = "pthread_create";
		else
			(void)pthread_join(thread, NULL);
		rest();
	}
	return unused;
}

static void
handle(int sig)
{
	(void)sig;
	(void)sem_post(&handled);
}

static void
make_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		bump();
		_exit(CHILD);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid ||
	    status != CHILD << 8)
		wrong = "a child";
}

/* This thread runs meanwhile, unless the other one is held for long. */
static void
send(pthread_t thread)
{
	(void)pthread_kill(thread, SIGUSR1);
	for (int i = 0; i < 50; i++) {
		if (sem_trywait(&handled) == 0)
			return;
		(void)sched_yield();
	}
	while (sem_wait(&handled) != 0)
		;
}

static void
play(bool once, pthread_t thread)
{
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};

	for (int i = 0; once ? i < ROUNDS : poll(&in, 1, 0) == 0; i++) {
		add();
		send(thread);
		if (once || i % 4 == 0)	/* the dearest */
			make_child();
		rest();
	}
}

int
main(int argc, char *argv[])
{
	pthread_t thread[2];

	(void)argv;
	(void)sem_init(&handled, 0, 0);
	(void)signal(SIGUSR1, handle);
	(void)printf("pid %d word %p\n", (int)getpid(), (void *)&word);
	(void)fflush(stdout);
	if (pthread_create(&thread[0], NULL, add_on, NULL) != 0 ||
	    pthread_create(&thread[1], NULL, make_threads, NULL) != 0)
		return 2;
	play(argc > 1, thread[0]);
	over = true;
	(void)pthread_join(thread[0], NULL);
	(void)pthread_join(thread[1], NULL);
	if (word != added)
		wrong = "the word";
	if (wrong != NULL)
		return puts(wrong), 1;
	(void)puts("done");
	return 7;
}
