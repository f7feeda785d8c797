/*
 * puppet: a process with a leader and a second thread or process, which obey
 * commands of one letter and report each one's completion.
 *
 *	to the leader:	s store in the word	t make the second, a thread
 *			l call the landmark	f make the second, a process
 *			v make the second by vfork, and sleep until it ends
 *			x execute this program with --exec, which says nothing
 *			q end, which says nothing either
 *	to the second:	anything: store; of a vfork: end
 */
#ifndef PUPPET_H
#define PUPPET_H

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "child.h"

/* What they act on, set before the first one is started. */
static volatile uint64_t *puppet_word;
static void (*volatile puppet_call)(void *);
static volatile int *puppet_signals;	/* shared: SIGUSR1s handled */

struct puppet {
	pid_t pid;
	int lead[2], second[2];	/* pipes to them */
	int back[2];		/* the pipe from both */
};

static inline void
on_usr1(int sig)
{
	(void)sig;
	++*puppet_signals;
}

static inline void
puppet_say(const struct puppet *p)
{
	(void)!write(p->back[1], "", 1);
}

/* The second one: store when told to. */
static inline void *
be_second(void *arg)
{
	const struct puppet *p = arg;
	char c;

	puppet_say(p);
	while (read(p->second[0], &c, 1) == 1) {
		*puppet_word = 1;
		puppet_say(p);
	}
	return NULL;
}

static inline void
be_second_process(struct puppet *p)
{
	(void)prctl(PR_SET_PDEATHSIG, 0);
	(void)close(p->second[1]);
	(void)be_second(p);
	_exit(0);
}

/* A vfork child, which holds its parent until it is */
static inline int
be_vforked(void *arg)
{
	const struct puppet *p = arg;
	char c;

	puppet_say(p);
	(void)!read(p->second[0], &c, 1);
	puppet_say(p);
	return 0;
}

static inline void
puppet_obey(struct puppet *p, char c)
{
	static _Alignas(16) char stack[64 << 10];
	pthread_t thread;

	switch (c) {
	case 's':
		*puppet_word = 1;
		break;
	case 't':
		if (pthread_create(&thread, NULL, be_second, p) != 0)
			_exit(1);
		return;		/* the second reports when it has started */
	case 'f':
		if (fork() == 0)
			be_second_process(p);
		return;
	case 'v':
		(void)clone(be_vforked, stack + sizeof(stack), CLONE_VFORK |
		    CLONE_VM | SIGCHLD, p);
		break;
	case 'l':
		puppet_call(p);
		break;
	case 'x':
		(void)execl("/proc/self/exe", "puppet", "--exec", NULL);
		_exit(1);
	default:
		_exit(0);
	}
	puppet_say(p);
}

static inline void
be_puppet(void *arg)
{
	struct puppet *p = arg;
	char c;

	(void)signal(SIGUSR1, on_usr1);	/* with SA_RESTART */
	(void)close(p->lead[1]);
	while (read(p->lead[0], &c, 1) == 1)
		puppet_obey(p, c);
}

static inline void
puppet_pipes(struct puppet *p)
{
	assert_int_equal(pipe(p->lead), 0);
	assert_int_equal(pipe(p->second), 0);
	assert_int_equal(pipe(p->back), 0);
}

static inline void
puppet_start(struct puppet *p)
{
	puppet_pipes(p);
	p->pid = child_start(be_puppet, p);
}

static inline void
puppet_hear(const struct puppet *p)
{
	struct pollfd said = {p->back[0], POLLIN, 0};
	char c;

	assert_int_equal(poll(&said, 1, CHILD_PATIENCE_MS), 1);
	assert_int_equal(read(p->back[0], &c, 1), 1);
}

/* Send a command without waiting for an answer. */
static inline void
puppet_tell(int fd, char c)
{
	assert_int_equal(write(fd, &c, 1), 1);
}

static inline void
puppet_lead(const struct puppet *p, char c)
{
	puppet_tell(p->lead[1], c);
	puppet_hear(p);
}

static inline void
puppet_second(const struct puppet *p, char c)
{
	puppet_tell(p->second[1], c);
	puppet_hear(p);
}

static inline void
puppet_hang_up(const struct puppet *p)
{
	for (unsigned i = 0; i < 2; i++) {
		(void)close(p->lead[i]);
		(void)close(p->second[i]);
		(void)close(p->back[i]);
	}
}

static inline void
puppet_end(const struct puppet *p)
{
	puppet_hang_up(p);
	child_kill(p->pid);
}

#endif
