/*
 * traps: a program that uses the signals of hits itself, and writes to `word'
 * in between.
 *
 *	traps [raw] ACT...
 *
 * Each act checks that the program finds what it would find if nobody watched
 * it; the exit status is the line of the first check that failed.  raw:
 * handlers are installed behind libwatchpoint's back.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) \
			_exit(__LINE__ % 100 + 1); \
	} while (0)

extern __typeof__(sigaction) __sigaction;

static __typeof__(sigaction) *act_on = sigaction;
volatile long word;
static volatile sig_atomic_t got, code;

static void
count(int sig)
{
	(void)sig;
	got++;
}

static void
note(int sig, siginfo_t *info, void *context)
{
	(void)context;
	count(sig);
	code = info->si_code;
}

static struct sigaction
set(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {
		.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags,
	}, old;

	CHECK(act_on(sig, &action, &old) == 0);
	return old;
}

static void
own_handlers(void)
{
	struct sigaction old = set(SIGTRAP, note, 0);

	CHECK(old.sa_handler == SIG_DFL);
	word++;
	CHECK(got == 0);
	CHECK(raise(SIGTRAP) == 0 && got == 1 && code == SI_TKILL);
	__asm__ volatile("int3");
	CHECK(got == 2 && code == SI_KERNEL);
	word++;
	CHECK(act_on(SIGTRAP, NULL, &old) == 0 && old.sa_sigaction == note &&
	    (old.sa_flags & SA_SIGINFO) != 0);
	CHECK(signal(SIGTRAP, count) != SIG_ERR);
	CHECK(raise(SIGTRAP) == 0 && raise(SIGTRAP) == 0 && got == 4);
	CHECK(signal(SIGTRAP, SIG_IGN) == count);
	CHECK(raise(SIGTRAP) == 0 && got == 4);
	CHECK(signal(SIGTRAP, count) == SIG_IGN);
	CHECK(raise(SIGTRAP) == 0 && got == 5);
	word++;
	CHECK(got == 5);
}

static void
for_one_signal(void)
{
	struct sigaction old;

	(void)set(SIGTRAP, note, (int)SA_RESETHAND);
	word++;
	CHECK(raise(SIGTRAP) == 0 && got == 1);
	CHECK(act_on(SIGTRAP, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
	word++;
}

/* And so it is by what is executed. */
static void
ignored(void)
{
	CHECK(signal(SIGTRAP, SIG_IGN) == SIG_DFL);
	CHECK(system("kill -TRAP $$") == 0);
	CHECK(signal(SIGTRAP, SIG_DFL) == SIG_IGN);
	word++;
}

/* As the runtime of Go does, which ends the program by SIGTRAP. */
static void
every_signal(void)
{
	struct sigaction old;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && (sig < 32 ||
		    sig >= SIGRTMIN)) {
			CHECK(act_on(sig, NULL, &old) == 0);
			(void)set(sig, note, SA_ONSTACK | SA_RESTART);
		}
	word++;
	CHECK(raise(SIGTRAP) == 0 && raise(SIGRTMAX - 1) == 0 && got >= 2);
	word++;
}

/* What does nothing by default. */
static void
signals_of_no_effect(void)
{
	CHECK(raise(SIGURG) == 0 && raise(SIGWINCH) == 0);
	word++;
}

static void
urgent(void)
{
	signals_of_no_effect();
	(void)set(SIGURG, note, SA_RESTART);
	(void)set(SIGWINCH, note, SA_RESTART);
	for (int i = 0; i < 30; i++) {
		word++;
		CHECK(raise(SIGURG) == 0 && got > i);
	}
}

static _Atomic bool done;

/* Until the call has returned: the first signal may come before it waits. */
static void *
interrupt(void *arg)
{
	while (!done) {
		(void)usleep(1000);
		CHECK(pthread_kill(*(pthread_t *)arg, SIGTRAP) == 0);
	}
	return NULL;
}

static void
interrupted_calls(void)
{
	pthread_t self = pthread_self(), thread;
	int pipes[2];
	char c;

	(void)set(SIGTRAP, note, 0);
	CHECK(pipe(pipes) == 0);
	CHECK(pthread_create(&thread, NULL, interrupt, &self) == 0);
	CHECK(read(pipes[0], &c, 1) == -1 && errno == EINTR);
	done = true;
	CHECK(pthread_join(thread, NULL) == 0);
	word++;
}

/* The child has this memory, and actions of its own. */
static void
children(void)
{
	int status;
	pid_t pid;

	(void)set(SIGTRAP, note, 0);
	if ((pid = vfork()) == 0) {
		(void)signal(SIGTRAP, SIG_DFL);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(raise(SIGTRAP) == 0 && got == 1);
	word++;
	if ((pid = fork()) == 0) {
		(void)signal(SIGTRAP, SIG_DFL);
		(void)raise(SIGTRAP);
		_exit(1);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid &&
	    WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
	CHECK(raise(SIGTRAP) == 0 && got == 2);
	word++;
}

static void
other(int sig, siginfo_t *info, void *context)
{
	note(sig, info, context);
}

static void *
change(void *arg)
{
	struct sigaction old;

	for (unsigned i = 0; !done; i++) {
		old = set(SIGTRAP, i % 2 == 0 ? other : note,
		    i % 3 == 0 ? SA_ONSTACK : 0);
		CHECK(old.sa_sigaction == note || old.sa_sigaction == other);
	}
	return arg;
}

static void
changes_elsewhere(void)
{
	pthread_t thread;

	(void)set(SIGTRAP, note, 0);
	CHECK(pthread_create(&thread, NULL, change, NULL) == 0);
	for (int i = 0; i < 50; i++) {
		CHECK(raise(SIGTRAP) == 0 && got == i + 1);
		word++;
	}
	done = true;
	CHECK(pthread_join(thread, NULL) == 0);
}

static void
die(void)
{
	(void)signal(SIGTRAP, count);
	word++;
	(void)signal(SIGTRAP, SIG_DFL);
	word++;
	(void)raise(SIGTRAP);
}

static void
behind_its_back(void)
{
	act_on = __sigaction;
}

static const struct {
	const char *name;
	void (*run)(void);
} acts[] = {
	{"own_handlers", own_handlers}, {"for_one_signal", for_one_signal},
	{"every_signal", every_signal}, {"urgent", urgent},
	{"signals_of_no_effect", signals_of_no_effect},
	{"interrupted_calls", interrupted_calls}, {"children", children},
	{"changes_elsewhere", changes_elsewhere}, {"die", die},
	{"ignored", ignored},
	{"raw", behind_its_back},
};

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(acts) / sizeof(acts[0]); k++)
			if (strcmp(argv[i], acts[k].name) == 0)
				acts[k].run();
	word++;
	return 0;
}
