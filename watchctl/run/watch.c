/*
 * watch: the main job.
 *
 * Overview: begin (begin.c); read the rings until there is a reason to end;
 * disarm; close the account, which must come out even; wait for the command.
 */
#include "run/watch.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "util/complain.h"
#include "run/guarding.h"
#include "util/interrupt.h"
#include "os/proc.h"
#include "run/run.h"
#include "run/stopping.h"

/* How often the rings are looked at when nothing wakes us, in ms; and how long
   a record may be on its way into a ring, in ns. */
enum { LOOK_MS = 20, ON_ITS_WAY = 1000000 };

int
run_poll_make(struct run *run)
{
	struct wp_rings *rings = wp_target_rings(run->target);
	unsigned nrings = wp_rings_count(rings);
	struct pollfd *p = calloc(1 + nrings + run->nprocesses, sizeof(*p));
	sigset_t signals;

	if (p == NULL)
		return complain("out of memory");
	run->poll = p;
	run->npoll = 1 + run->nprocesses + nrings;
	for (size_t i = 0; i < run->npoll; i++)
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	interrupt_signals(&signals);
	p->fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->fd < 0)
		return complain("signalfd: %s", strerror(errno));
	p += 1 + run->nprocesses;
	for (unsigned i = 0; i < nrings; i++)
		p[i].fd = wp_rings_fd(rings, i);
	return 0;
}

int
run_poll_processes(struct run *run)
{
	for (size_t i = 0; i < run->nprocesses; i++) {
		struct pollfd *p = &run->poll[1 + i];

		p->fd = pidfd_open(run->process[i].pid, 0);
		if (p->fd < 0 && errno != ESRCH)
			return complain("pidfd_open: %s", strerror(errno));
	}
	return 0;
}

/* From here on signals come by the descriptor, and a report whose reader has
   gone ends by its error.  Only now, for a command must not inherit that. */
static void
take_over_signals(void)
{
	sigset_t signals;

	interrupt_signals(&signals);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Those of the terminal reach a command by themselves; others are passed on to
   it, since it is what they are meant for. */
void
run_signal(struct run *run, int sig)
{
	if (run->options->command == NULL) {
		run->reason = "signal";
		interrupt_take();
	} else if (sig == SIGTERM || sig == SIGHUP)
		(void)kill(run->process->pid, sig);
}

void
run_take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->poll[0].fd, &info, sizeof(info)) ==
	    (ssize_t)sizeof(info))
		run_signal(run, (int)info.ssi_signo);
}

/* What it executed was not watched, and may have touched anything. */
void
run_executed(struct run *run, struct process *process)
{
	if (process->executed)
		return;
	process->executed = true;
	session_warn(&run->session, "process %d executed another program, "
	    "where addresses mean something else: its watches have ended",
	    process->pid);
	session_doubt(&run->session, "process %d executed another program, "
	    "which was not watched", process->pid);
}

void
run_check_processors(struct run *run)
{
	int cpu = run->uncovered ? -1 :
	    wp_rings_uncovered(wp_target_rings(run->target));

	if (cpu < 0)
		return;
	run->uncovered = true;
	session_warn(&run->session, "processor %d runs and cannot be watched: "
	    "perf_event_open(2) refused it; accesses there are neither seen nor "
	    "counted", cpu);
	session_doubt(&run->session, "processor %d was not watched", cpu);
}

/*
 * Whether a process has nothing to watch any more: it ended (and with -f its
 * children too), or executed another program, which ends its watches.  Its
 * slot in the poll set is then empty.
 */
static bool
has_ended(struct run *run, size_t i)
{
	struct process *process = &run->process[i];
	struct pollfd *p = &run->poll[1 + i];
	bool watched = wp_target_alive(run->target, process->first,
	    run->options->nspecs);

	if (p->fd < 0)
		return !run->options->follow || !watched;
	if (p->revents == 0 && watched)
		return false;
	if (p->revents == 0 && !wp_proc_exiting(process->pid))
		run_executed(run, process);
	(void)close(p->fd);
	p->fd = -1;	/* poll(2) passes over it */
	return !run->options->follow || !watched;
}

static bool
all_ended(struct run *run)
{
	bool all = true;

	for (size_t i = 0; i < run->nprocesses; i++)
		all = has_ended(run, i) && all;
	return all;
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

/* Wait for something to happen, but not for long. */
static void
wait_a_little(struct run *run)
{
	const double left = run_left_ms(run);
	int ms = LOOK_MS;

	if (left < ms)
		ms = left > 0 ? (int)left + 1 : 0;
	(void)poll(run->poll, run->npoll, ms);
	if (run->poll[0].revents != 0)
		run_take_signals(run);
	run_check_processors(run);
	if (run->reason == NULL && all_ended(run))
		run->reason = "exit";
	if (run->reason == NULL && left <= 0)
		run->reason = "time";
}

/* Keep count of the threads that are covered. */
static void
count_threads(struct run *run, const struct ex_record *r)
{
	bool thread = r->task.pid == r->task.ppid;

	run->made += r->type == PERF_RECORD_FORK &&
	    (thread || run->options->follow);
	for (size_t i = 0; i < run->nprocesses; i++) {
		struct process *process = &run->process[i];

		if (process->pid != r->task.pid)
			continue;
		if (r->type == PERF_RECORD_EXIT)
			process->threads--;
		else if (thread)
			process->threads++;
	}
}

/* Read what the rings hold up to a time.  False: no more are wanted. */
static bool
read_rings(struct run *run, uint64_t horizon)
{
	struct wp_rings *rings = wp_target_rings(run->target);
	const struct perf_event_header *header;
	struct ex_record record;

	while ((header = wp_rings_next(rings, horizon)) != NULL) {
		int got = ex_record_decode(run->formats, header, header->size,
		    &record);

		if (got == 0)
			run->session.skipped++;
		if (got <= 0)
			continue;
		if (record.type == PERF_RECORD_FORK ||
		    record.type == PERF_RECORD_EXIT)
			count_threads(run, &record);
		if (!session_record(&run->session, &record))
			return false;
	}
	return session_flush(&run->session, horizon);
}

static uint64_t
counted(const struct run *run, size_t watch)
{
	struct wp_perf_count count;

	return wp_target_count(run->target, watch, &count) < 0 ? 0 :
	    count.value;
}

static uint64_t
counted_in_all(const struct run *run)
{
	uint64_t sum = 0;

	for (size_t w = 0; w < run->session.nwatches; w++)
		sum += counted(run, w);
	return sum;
}

static void
loop(struct run *run)
{
	bool more = true;

	while (run->reason == NULL) {
		wait_a_little(run);
		if (run->options->count)
			more = run->options->limit == 0 ||
			    counted_in_all(run) < run->options->limit;
		else
			more = read_rings(run, wp_clock_ns() - ON_ITS_WAY);
		if (!more)
			run->reason = run->session.full ||
			    run->options->count ? "count" : "detached";
	}
	wp_target_stop(run->target);
}

/* Who executes another program and soon ends may not be caught at it.  But all
   threads that end under watch leave a record of that; if none was lost, the
   missing ones show it. */
static void
tell_all_executed(struct run *run)
{
	if (strcmp(run->reason, "exit") != 0 || run->session.lost > 0)
		return;
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].threads > 0)
			run_executed(run, &run->process[i]);
}

static void
account(struct run *run)
{
	struct session *s = &run->session;

	if (s->err < 0)		/* what else was counted is lost */
		session_counted(s, counted_in_all(run));
	if (s->full || s->err < 0 || !read_rings(run, UINT64_MAX))
		return;
	session_counted(s, counted_in_all(run));
	tell_all_executed(run);
}

/* Wait for the command, also for one that was left stopped (--on-hit pause):
   without us the kernel would end it, as a stopped job without a shell.  Signals
   that are meant for it are passed on. */
static int
command_status(struct run *run)
{
	struct pollfd wait[] = {
		run->poll[0],
		{.fd = pidfd_open(run->process->pid, 0), .events = POLLIN},
	};
	const int ms = wait[1].fd < 0 ? LOOK_MS : -1;
	int status = run->command_status;

	while (status < 0 && waitpid(run->process->pid, &status, WNOHANG) == 0) {
		status = -1;
		(void)poll(wait, 2, ms);
		run_take_signals(run);
	}
	(void)close(wait[1].fd);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}

/* Threads that were made under watch are known by their records. */
static void
account_uptime(struct run *run)
{
	struct session *s = &run->session;
	struct wp_uptime uptime = {0};

	if (run->stopping != NULL) {
		stopping_uptime(run->stopping, &uptime);
	} else {
		wp_target_uptime(run->target, &uptime);
		uptime.threads = run->options->count || s->lost > 0 ||
		    s->full || s->err < 0 ? 0 : uptime.threads + run->made;
	}
	session_uptime(s, &uptime);
}

static int
finish(struct run *run)
{
	struct session *s = &run->session;
	uint64_t *counts = NULL;
	int status = 0;

	if (run->options->count) {
		if ((counts = calloc(s->nwatches, sizeof(*counts))) == NULL)
			return complain("out of memory"), STATUS_OWN_FAILURE;
		for (size_t w = 0; w < s->nwatches; w++)
			counts[w] = counted(run, w);
	} else if (run->stopping != NULL) {
		stopping_account(run);
	} else if (run->guarding == NULL) {
		account(run);
	}
	account_uptime(run);
	if (s->recording != NULL)
		recording_build_ids(run);
	if (run->options->command != NULL)
		status = command_status(run);
	else if (run->guarding != NULL && guarding_failed(run->guarding))
		status = STATUS_OWN_FAILURE;
	status = session_end(s, run->reason, status, counts);
	free(counts);
	return status;
}

void
run_leave_out(struct run *run, size_t i)
{
	struct process *process = &run->process[i];
	struct pollfd *p;

	for (size_t k = 0; process->place != NULL &&
	    k < run->options->nspecs; k++)
		free(process->place[k].symbol);
	free(process->place);
	run->nprocesses--;
	memmove(process, process + 1,
	    (run->nprocesses - i) * sizeof(*process));
	if (run->poll == NULL)
		return;
	p = &run->poll[1 + i];
	if (p->fd >= 0)
		(void)close(p->fd);
	run->npoll--;
	memmove(p, p + 1, (run->npoll - 1 - i) * sizeof(*p));
}

static void
run_free(struct run *run)
{
	while (run->process != NULL && run->nprocesses > 0)
		run_leave_out(run, run->nprocesses - 1);
	free(run->process);
	if (run->poll != NULL && run->poll->fd >= 0)
		(void)close(run->poll->fd);
	free(run->poll);
	earlier_free(&run->earlier);
	session_close(&run->session);
	ex_formats_free(run->formats);
	stopping_close(run->stopping);
	guarding_close(run->guarding);
	if (run->target != NULL)
		wp_target_abandon(run->target);
	wp_target_free(run->target);
}

int
watch(const struct options *options)
{
	struct run run = {.options = options, .command_status = -1};
	int status = run_begin(&run);

	if (status == 0) {
		take_over_signals();
		/* a reader that sees it begin may send a signal */
		run_announce(&run);
		if (run.guarding != NULL)
			guarding_loop(&run);
		else if (run.stopping != NULL)
			stopping_loop(&run);
		else
			loop(&run);
		status = finish(&run);
	}
	run_free(&run);
	return status;
}
