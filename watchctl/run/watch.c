/*
 * watch: the main job.
 *
 * Overview: begin (setup.c); report hits until there is a reason to end;
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
#include "os/proc.h"
#include "util/complain.h"
#include "util/executable.h"
#include "util/interrupt.h"
#include "run/run.h"

enum {
	LOOK_MS = 20,		/* between looks when nothing happens */
	CHILD_MS = 1000,	/* for one to execute another program */
};

/* ns: by then tickets have been compared (attach/marks.h), which proves the values of
   hits. */
enum { PROVED_AFTER = 50000000 };

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

/* Before there are hits to tell, that signal does nothing; of a command it does
   what it would have done. */
static void
expect_tell(const struct options *options)
{
	struct sigaction was;

	if (options->last != 0 && sigaction(SIGUSR1, NULL, &was) == 0 &&
	    was.sa_handler == SIG_DFL)
		(void)signal(SIGUSR1, nothing_yet);
}

/* From here on signals come through the descriptor, and a report whose reader
   has gone ends with an error.  Only now, because a command must not inherit
   that. */
static void
take_over_signals(const struct options *options)
{
	sigset_t signals;

	taken_signals(options, &signals);
	if (options->last != 0)	/* ignored, it would not come */
		(void)signal(SIGUSR1, nothing_yet);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

void
run_tell(struct run *run, const char *reason)
{
	run->tell = wp_clock_ns() + PROVED_AFTER;
	run->tell_reason = reason;
}

/* Whether the command has; its status is left to be taken. */
static bool
command_has_ended(const struct run *run)
{
	siginfo_t info = {.si_pid = 0};

	return run->options->command != NULL &&
	    (waitid(P_PID, (id_t)run->command, &info, WEXITED | WNOHANG |
	    WNOWAIT) != 0 || info.si_pid != 0);
}

/* Signals from the terminal reach a command by themselves; others are passed on
   to it, because it is what they are meant for.  When it has ended they are meant
   for us, who may be watching its children yet. */
void
run_signal(struct run *run, int sig)
{
	const struct options *o = run->options;
	const bool ended = command_has_ended(run);

	if (sig == SIGUSR1)
		run_tell(run, "signal");
	else if (o->command == NULL ||
	    (ended && o->follow && run->reason == NULL)) {
		run->reason = "signal";
		interrupt_take();
	} else if (!ended && (sig == SIGTERM || sig == SIGHUP))
		(void)kill(run->command, sig);
}

/* Take all signals that the first descriptor of the poll set has. */
static void
take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->poll[0].fd, &info, sizeof(info)) ==
	    (ssize_t)sizeof(info))
		run_signal(run, (int)info.ssi_signo);
}

/* What the process executed was not watched, and may have touched anything. */
void
run_executed(struct run *run, pid_t pid)
{
	struct process *process = run->process;

	while (process < run->process + run->nprocesses && process->pid != pid)
		process++;
	if (process == run->process + run->nprocesses || process->executed ||
	    run->options->exe != NULL)
		return;
	process->executed = true;
	session_warn(&run->session, "process %d executed another program, "
	    "where addresses mean something else: its watches have ended",
	    pid);
	session_doubt(&run->session, "process %d executed another program, "
	    "which was not watched", pid);
}

void
run_check_privileges(struct run *run, pid_t pid)
{
	if (run->unprivileged_reported || !executable_lost_privileges(pid))
		return;
	run->unprivileged_reported = true;
	session_warn(&run->session, "process %d runs without the privileges "
	    "that its file gives (set-user-ID, set-group-ID or capabilities), "
	    "because it was traced as it began, by an ordinary user: run "
	    "watchctl as root", pid);
}

/* Whether children are not watched. */
static bool
leaves_children(const struct run *run)
{
	const struct wp_options *got = wp_target_options(run->target);

	return !run->options->follow && (run->ops->registers ||
	    got->inherit_thread || got->stop);
}

/* Knowing what became of children that soon end takes events, so it is done
   only for a run whose status has to vouch for it. */
void
run_track_children(struct run *run, const struct process *process)
{
	if (run->ops->registers)
		run->children.blind = true;
	else if (leaves_children(run) && run->options->error_status != 0)
		children_track(&run->children, process->pid);
}

void
run_take_child(struct run *run, const struct ex_record *r)
{
	if (r->type == PERF_RECORD_FORK && r->task.pid != r->task.ppid &&
	    leaves_children(run))
		children_made(&run->children, r->task.pid, r->task.ppid,
		    r->task.time);
}

/* Where its instance was is nobody's, or soon another thread's: what it has done
   there by now is not reported either (explained_session.c). */
static void
leave_instances(struct run *run, const struct process *process, pid_t tid)
{
	for (size_t i = 0; i < process->n && !process->disarmed; i++) {
		const struct spec *spec = &run->options->spec[process->program ?
		    process->spec[i] : i];

		if (spec->thread != tid)
			continue;
		if (run->ops->turn_off != NULL)
			run->ops->turn_off(run, process->first + i);
		session_warn(&run->session, "thread %d has ended, and with it "
		    "its '%s', which is watched no more", tid, spec->text);
	}
}

static bool
is_named(const struct run *run, pid_t tid)
{
	for (size_t i = 0; i < run->options->nspecs; i++)
		if (run->options->spec[i].thread == tid)
			return true;
	return false;
}

void
run_take_thread_end(struct run *run, const struct ex_record *r)
{
	if (r->type != PERF_RECORD_EXIT || !is_named(run, r->task.tid) ||
	    wp_proc_exiting(r->task.pid))
		return;
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == r->task.pid)
			leave_instances(run, &run->process[i], r->task.tid);
}

/* One is reported. */
static void
report_child(struct run *run)
{
	const struct children *children = &run->children;
	const struct child *child = &children->went_on;

	if (child->pid == 0 || run->child_reported)
		return;
	run->child_reported = true;
	session_warn(&run->session, "process %d created process %d, which %s "
	    "and is not watched%s", child->parent, child->pid,
	    children->ended ? "ended without executing another program" :
	    "goes on in the same program", run->ops->registers ? "" :
	    "; -f watches it too");
	session_doubt(&run->session, "process %d, which process %d created, "
	    "was not watched", child->pid, child->parent);
}

void
run_check_children(struct run *run)
{
	children_look(&run->children);
	report_child(run);
}

/* The last word on them. */
static void
settle_children(struct run *run)
{
	const bool vouched = run->options->error_status != 0;

	if (!leaves_children(run))
		return;
	children_settle(&run->children, vouched ? CHILD_MS : 0);
	report_child(run);
	if (!run->children.unknown || !vouched || run->child_reported)
		return;
	session_warn(&run->session, "a child process may have gone on in the "
	    "program, unwatched: %s%s", run->ops->registers ?
	    "without perf events it is not known what became of it" :
	    run->children.blind ? run->children.side.cause.text :
	    "records of what it did were lost", run->ops->registers ? "" :
	    "; -f watches children too");
	session_doubt(&run->session, "a child process was perhaps not watched");
}

/* --exe watches again what executes its file. */
static bool
vouches_for_descendants(const struct run *run)
{
	const struct options *o = run->options;

	return o->follow && o->error_status != 0 && o->exe == NULL &&
	    !options_everywhere(o);
}

/* Whether it was traced as it executed a program, and so was looked at. */
static bool
was_caught(void *arg, const struct child *child)
{
	const struct run *run = arg;

	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == child->pid &&
		    run->process[i].program &&
		    run->process[i].since >= child->born)
			return true;
	return false;
}

void
run_take_descendant(struct run *run, const struct ex_record *r)
{
	const struct child child = {
		.pid = r->task.pid, .parent = r->task.ppid,
		.born = r->task.time,
	};

	if (!vouches_for_descendants(run))
		return;
	if (r->type == PERF_RECORD_FORK && child.pid != child.parent)
		descendants_made(&run->descendants, &child, was_caught, run);
	else
		descendants_thread(&run->descendants, child.pid,
		    r->type == PERF_RECORD_EXIT);
}

void
run_leave_descendants(struct run *run, uint64_t since)
{
	if (vouches_for_descendants(run))
		descendants_leave(&run->descendants, since);
}

/* Where records were lost, an end may be among them; and that is a reason already
   not to vouch for the run. */
void
run_settle_descendants(struct run *run)
{
	struct descendants *d = &run->descendants;
	const struct child *child = &d->executed;

	if (!vouches_for_descendants(run) || run->session.lost > 0)
		return;
	descendants_settle(d, was_caught, run);
	if (d->unknown)
		session_note(&run->session, -ENOMEM);
	if (child->pid == 0)
		return;
	session_warn(&run->session, "process %d, which process %d created, "
	    "executed another program, where addresses mean something else: "
	    "its watches have ended; --stop watches what it executes too",
	    child->pid, child->parent);
	session_doubt(&run->session, "process %d executed another program, "
	    "which was not watched", child->pid);
}

void
run_check_processors(struct run *run)
{
	int cpu = run->uncovered_reported ? -1 :
	    wp_rings_uncovered(wp_target_rings(run->target));

	if (cpu < 0)
		return;
	run->uncovered_reported = true;
	session_warn(&run->session, "processor %d runs and cannot be watched: "
	    "perf_event_open(2) refused it; accesses there are neither seen "
	    "nor counted", cpu);
	session_doubt(&run->session, "processor %d was not watched", cpu);
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

void
run_poll(struct run *run, struct pollfd *p, size_t n)
{
	const double left = run_left_ms(run);

	(void)poll(p, n, left < LOOK_MS ? left > 0 ? (int)left + 1 : 0 :
	    LOOK_MS);
	if (p->revents != 0)
		take_signals(run);
}

bool
run_goes_on(struct run *run)
{
	take_signals(run);
	run_check_time(run);
	return run->reason == NULL;
}

void
run_round(struct run *run)
{
	if (run->kept != NULL && run->options->stop)
		kept_session_round(run->kept, run->ops->registers);
}

bool
run_decode(struct run *run, const struct perf_event_header *header,
    struct ex_record *record)
{
	int got = ex_record_decode(run->formats, header, header->size, record);

	if (got == 0)
		run->session.skipped++;
	if (got > 0 && run->session.recording != NULL)
		recording_learn(run, record);
	return got > 0;
}

void
run_check_time(struct run *run)
{
	if (run->reason == NULL && run_left_ms(run) <= 0)
		run->reason = "time";
}

/* Wait for the command, also for one that was left stopped (--on-hit pause):
   without us the kernel would end it, as a stopped job without a shell.
   Signals that are meant for it are passed on. */
static int
command_status(struct run *run)
{
	struct pollfd wait[] = {
		run->poll[0],
		{.fd = pidfd_open(run->command, 0), .events = POLLIN},
	};
	const int ms = wait[1].fd < 0 ? LOOK_MS : -1;
	int status = run->command_status;

	while (status < 0 &&
	    waitpid(run->command, &status, WNOHANG) == 0) {
		status = -1;
		(void)poll(wait, 2, ms);
		take_signals(run);
	}
	(void)close(wait[1].fd);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}

static int
finish(struct run *run)
{
	struct wp_uptime uptime = {0};
	int status = run->failed ? STATUS_OWN_FAILURE : 0;

	if (run->ops->account != NULL && run->ops->account(run) < 0)
		return complain("out of memory"), STATUS_OWN_FAILURE;
	settle_children(run);
	if (run->waits && !run->found) {
		session_warn(&run->session, "no %s that has what is to be "
		    "watched: nothing was ever watched",
		    run->options->command != NULL ? "program was executed" :
		    "module was mapped");
		session_doubt(&run->session, "nothing was ever watched");
	}
	if (run->missed_module) {
		session_warn(&run->session, "a library may have been opened "
		    "unseen: a thread blocked SIGURG and SIGWINCH then, or "
		    "had no debug register left for its loader's hook");
		session_doubt(&run->session, "a library may have been opened "
		    "unseen");
	}
	if (run->missed_child != 0) {
		session_warn(&run->session, "process %d, which was made by "
		    "fork(2) and executed no other program, opened or closed a "
		    "module that is waited for: it is not watched there",
		    run->missed_child);
		session_doubt(&run->session, "process %d opened or closed a "
		    "module where it is not watched", run->missed_child);
	}
	if (run->ops->uptime != NULL)
		run->ops->uptime(run, &uptime);
	session_uptime(&run->session, &uptime);
	if (run->session.recording != NULL)
		recording_build_ids(run);
	if (run->options->command != NULL)
		status = command_status(run);
	/* it may have ended by itself meanwhile */
	return session_end(&run->session, run->session.until ? "until" :
	    run->reason, status, run->counts);
}

int
run_poll_add(struct run *run, pid_t pid)
{
	const size_t at = 1 + run->nprocesses - 1;
	struct pollfd *p = reallocarray(run->poll, run->npoll + 1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	run->poll = p;
	memmove(p + at + 1, p + at, (run->npoll - at) * sizeof(*p));
	p[at] = (struct pollfd){.fd = pidfd_open(pid, 0), .events = POLLIN};
	run->npoll++;
	return 0;
}

bool
run_is_armed(const struct run *run, const struct process *process)
{
	return !process->disarmed &&
	    wp_target_alive(run->target, process->first, process->n);
}

void
run_disarm(struct run *run, struct process *process)
{
	if (process->disarmed)
		return;
	process->disarmed = true;
	wp_target_disarm(run->target, process->first, process->n);
}

void
run_turn_off(struct run *run)
{
	const struct wp_watched *watched;
	size_t n;

	if (run->options->each == 0 || run->ops->turn_off == NULL)
		return;
	watched = wp_target_watches(run->target, &n);
	for (size_t w = 0; w < n; w++)
		if (!watched[w].off && sieve_is_full(run->session.sieve,
		    w + run->npending))
			run->ops->turn_off(run, w);
}

void
run_leave_out(struct run *run, size_t i)
{
	struct process *process = &run->process[i];
	const bool program = process->program;
	struct pollfd *p;

	for (size_t k = 0; process->place != NULL &&
	    k < run->options->nspecs; k++)
		free(process->place[k].symbol);
	free(process->place);
	free(process->waits);
	run->nprocesses--;
	memmove(process, process + 1,
	    (run->nprocesses - i) * sizeof(*process));
	if (run->poll == NULL || program)
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
	free(run->chosen.pid);
	if (run->poll != NULL && run->poll->fd >= 0)
		(void)close(run->poll->fd);
	free(run->poll);
	synthetic_records_free(&run->synthetic);
	children_close(&run->children);
	descendants_close(&run->descendants);
	arrivals_close(run->arrivals);
	follow_close(run->follow);
	session_close(&run->session);
	kept_session_close(run->kept);
	live_box_close(&run->live);
	ex_formats_free(run->formats);
	if (run->own != NULL)
		run->ops->close(run);
	free(run->counts);
	absent_free(&run->absent);
	if (run->target != NULL)
		wp_target_abandon(run->target);
	wp_target_free(run->target);
}

int
watch(const struct options *options)
{
	struct run run = {.options = options, .command_status = -1};
	int status;

	expect_tell(options);
	if ((status = run_begin(&run)) == 0) {
		take_over_signals(options);
		/* a reader that sees it begin may send a signal */
		run_announce(&run);
		if (run.follow != NULL && follow_begin(run.follow) < 0)
			session_warn(&run.session, "no thread can be made that "
			    "follows pointers: watches do not move");
		run.ops->loop(&run);
		status = finish(&run);
	}
	run_free(&run);
	return status;
}
