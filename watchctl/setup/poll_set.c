/*
 * poll_set: the descriptors that the loop waits for, and the signals that it
 * takes.
 */
#include "setup/setup.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>

#include "follow/follow.h"
#include "run/run.h"
#include "setup/arrivals.h"
#include "setup/mappers.h"
#include "util/complain.h"
#include "util/interrupt.h"

/* The signals that a run takes: those that end it, and that of --last. */
static void
taken_signals(const struct options *options, sigset_t *signals)
{
	interrupt_signals(signals);
	if (options->last != 0)
		(void)sigaddset(signals, SIGUSR1);
}

int
run_poll_make(struct run *run)
{
	struct wp_rings *rings = wp_target_rings(run->target);
	unsigned nrings = wp_rings_count(rings);
	const unsigned more = arrivals_fds(run->arrivals) +
	    mappers_fds(run->mappers) +
	    (run->follow != NULL);
	struct pollfd *p = calloc(2 + nrings + more + run->nprocesses,
	    sizeof(*p));
	sigset_t signals;

	if (p == NULL)
		return complain("out of memory");
	run->poll = p;
	run->npoll = 2 + run->nprocesses + more + nrings;
	for (size_t i = 0; i < run->npoll; i++)
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	taken_signals(run->options, &signals);
	p->fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->fd < 0)
		return complain_errno(errno, "waiting for signals");
	p += 1 + run->nprocesses;
	for (unsigned i = 0; i < arrivals_fds(run->arrivals); i++)
		p++->fd = arrivals_fd(run->arrivals, i);
	for (unsigned i = 0; i < mappers_fds(run->mappers); i++)
		p++->fd = mappers_fd(run->mappers, i);
	if (run->follow != NULL)
		p++->fd = follow_fd(run->follow);
	for (unsigned i = 0; i < nrings; i++)
		p[i].fd = wp_rings_fd(rings, i);
	return 0;
}

int
run_poll_processes(struct run *run)
{
	for (size_t i = 0; i < run->nprocesses &&
	    !options_everywhere(run->options); i++) {
		struct pollfd *p = &run->poll[1 + i];

		p->fd = pidfd_open(run->process[i].pid, 0);
		if (p->fd < 0 && errno != ESRCH)
			return complain_errno(errno, "following process %d",
			    run->process[i].pid);
	}
	return 0;
}

static void
nothing_yet(int sig)
{
	(void)sig;
}

/* In a command the signal has its usual effect. */
void
run_expect_signals(const struct options *options)
{
	struct sigaction was;

	if (options->last != 0 && sigaction(SIGUSR1, NULL, &was) == 0 &&
	    was.sa_handler == SIG_DFL)
		(void)signal(SIGUSR1, nothing_yet);
}

/* From here on signals come through the descriptor, and a report whose reader
   has gone ends with an error.  Only now, because a command must not inherit
   that. */
void
run_take_over_signals(const struct options *options)
{
	sigset_t signals;

	taken_signals(options, &signals);
	if (options->last != 0)	/* ignored, it would not come */
		(void)signal(SIGUSR1, nothing_yet);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}
