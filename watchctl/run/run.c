/*
 * run: decides when a run continues, sleeps and ends; its signals and records.
 */
#include <float.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "run/run.h"
#include "util/interrupt.h"

/* ns after which tickets have been compared (attach/ticket_marks.h), so that
   the values of hits are proved */
enum { PROVED_AFTER = 50000000 };

void
run_release(struct run *run, const char *reason)
{
	run->release = wp_clock_ns() + PROVED_AFTER;
	run->release_reason = reason;
}

/* Whether the command has ended.  Its status is not consumed. */
static bool
command_has_ended(const struct run *run)
{
	siginfo_t info = {.si_pid = 0};

	return run->options->command != NULL &&
	    (waitid(P_PID, (id_t)run->command, &info, WEXITED | WNOHANG |
	    WNOWAIT) != 0 || info.si_pid != 0);
}

/* The terminal sends its signals to the command as well; signals that were sent
   to watchctl alone are passed on.  Once the command has ended they are for
   watchctl, which may still be watching children. */
void
run_signal(struct run *run, int sig)
{
	const struct options *o = run->options;
	const bool ended = command_has_ended(run);

	if (sig == SIGUSR1)
		run_release(run, "signal");
	else if (o->command == NULL ||
	    (ended && o->follow && run->reason == NULL)) {
		run->reason = "signal";
		interrupt_take();
	} else if (!ended && (sig == SIGTERM || sig == SIGHUP))
		(void)kill(run->command, sig);
}

void
run_take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->poll[0].fd, &info, sizeof(info)) ==
	    (ssize_t)sizeof(info))
		run_signal(run, (int)info.ssi_signo);
}

double
run_left_ms(const struct run *run)
{
	return run->options->seconds <= 0 ? DBL_MAX :
	    run->options->seconds * 1e3 -
	    (double)(wp_clock_ns() - run->began) / 1e6;
}

int
run_left_for_wait(const struct run *run)
{
	const double left = run_left_ms(run);

	return left > INT_MAX - 1 ? 0 : left > 0 ? (int)left + 1 : 1;
}

bool
run_is_ending(const struct run *run)
{
	return run->reason != NULL || interrupt_pending() ||
	    run_left_ms(run) <= 0;
}

int
run_sleep_ms(const struct run *run, int ms)
{
	const uint64_t now = wp_clock_ns();

	if (run->wake == 0 || run->wake > now + (uint64_t)ms * 1000000)
		return ms;
	return run->wake <= now ? 0 : (int)((run->wake - now) / 1000000) + 1;
}

void
run_poll(struct run *run, struct pollfd *p, size_t n)
{
	const double left = run_left_ms(run);
	int ms = run_sleep_ms(run, RUN_LOOK_MS);

	(void)poll(p, n, left < ms ? left > 0 ? (int)left + 1 : 0 : ms);
	if (p->revents != 0)
		run_take_signals(run);
}

bool
run_goes_on(struct run *run)
{
	run_take_signals(run);
	run_check_time(run);
	return run->reason == NULL;
}

void
run_round(struct run *run)
{
	if (run->remote != NULL && run->options->stop)
		remote_session_round(run->remote, run->ops->registers);
}

bool
run_decode(struct run *run, const struct perf_event_header *header,
    struct ex_record *record)
{
	int got = ex_record_decode(run->formats, header, header->size, record);

	if (got == 0)
		run->session.skipped++;
	if (got > 0 && run->session.recording != NULL)
		perf_output_learn(run, record);
	return got > 0;
}

void
run_check_time(struct run *run)
{
	if (run->reason == NULL && run_left_ms(run) <= 0)
		run->reason = "time";
}
