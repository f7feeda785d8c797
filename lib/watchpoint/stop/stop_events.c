/* stop_events: the events of a thread that stops at its hits. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/clock.h"
#include "proc/proc.h"
#include "stop/stop_private.h"

/* ns for which a process's set of handlers is kept */
enum { CAUGHT_FRESH = 100000000 };

/* Signals that are ignored by default.  SIGCONT is too, but it cancels a
   pending SIGSTOP and interrupts all threads. */
static const int harmless[] = {SIGURG, SIGWINCH, SIGCHLD};

enum { HARMLESS = sizeof(harmless) / sizeof(harmless[0]) };

/* Choose one that is not blocked, preferably one without a handler.  0 if all
   are blocked. */
static int
choose(uint64_t blocked, uint64_t caught)
{
	int chosen = 0;

	for (size_t i = 0; i < HARMLESS; i++) {
		if (wp_proc_signal_in(blocked, harmless[i]))
			continue;
		if (!wp_proc_signal_in(caught, harmless[i]))
			return harmless[i];
		if (chosen == 0)
			chosen = harmless[i];
	}
	return chosen;
}

/* Read which signals the process handles now.  Returns whether they have
   changed. */
static bool
look_at_handlers(struct wp_stop_process *process)
{
	const uint64_t before = process->caught;
	struct wp_proc_status status;

	if (wp_proc_caught(process->stat, &process->caught) < 0 &&
	    wp_proc_status(process->pid, &status) == 0)
		process->caught = status.caught;
	return process->caught != before;
}

static void
warn_of_signal(struct wp_stops *stops, struct wp_stop_thread *thread,
    int chosen)
{
	char text[256];

	if (thread->process->warned)
		return;
	thread->process->warned = true;
	if (chosen == 0)
		(void)snprintf(text, sizeof(text), "thread %d blocks SIGURG, "
		    "SIGWINCH and SIGCHLD, which would stop it: its hits are "
		    "reported, but their values are not exact",
		    thread->traced.tid);
	else
		(void)snprintf(text, sizeof(text), "process %d handles SIGURG, "
		    "SIGWINCH and SIGCHLD, which would stop it: its handler of "
		    "one is called after each hit, because a signal of its own "
		    "may have been merged with that of the hit",
		    thread->process->pid);
	stops->calls->warn(stops->arg, 0, text);
}

static void
set_signal(struct wp_stop_thread *thread, int sig)
{
	for (size_t i = 0; i < thread->events.n; i++)
		(void)wp_perf_signal(thread->events.event[i].fd,
		    thread->traced.tid, sig);
	for (size_t i = 0; i < thread->scouts.n; i++)
		(void)wp_perf_signal(thread->scouts.event[i].fd,
		    thread->traced.tid, sig);
	thread->signal = sig;
}

bool
wp_stop_signal_check(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	const int before = thread->signal;
	const uint64_t caught = thread->process->caught;
	struct wp_proc_status status = {0};
	int chosen;

	if (wp_proc_status(thread->traced.tid, &status) < 0)
		return false;
	chosen = choose(status.blocked, caught);
	if ((chosen == 0 && !wp_proc_is_making_thread(status.blocked)) ||
	    wp_proc_signal_in(caught, chosen))
		warn_of_signal(stops, thread, chosen);
	if (chosen != 0 && chosen != before)
		set_signal(thread, chosen);
	return !wp_proc_signal_in(status.blocked, before);
}

/* Choose another signal for each thread that has none, or whose signal the
   process now handles. */
static void
check_all(struct wp_stops *stops, struct wp_stop_process *process)
{
	for (struct wp_stop_thread *t = process->thread; t != NULL;
	    t = t->next_in_process)
		if (t->signal == 0 ||
		    wp_proc_signal_in(process->caught, t->signal))
			(void)wp_stop_signal_check(stops, t);
}

/* Check whether processes have started to handle a signal that stops their
   threads. */
void
wp_stop_look_at_signals(struct wp_stops *stops)
{
	const uint64_t now = wp_clock_ns();

	if (now - stops->looked < CAUGHT_FRESH)
		return;
	stops->looked = now;
	for (struct wp_stop_process *p = stops->process; p != NULL;
	    p = p->next) {
		(void)look_at_handlers(p);
		check_all(stops, p);
	}
}

static bool
is_harmless(int sig)
{
	for (size_t i = 0; i < HARMLESS; i++)
		if (harmless[i] == sig)
			return true;
	return false;
}

static bool
has_event(const struct wp_events *events, int fd)
{
	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].fd == fd)
			return true;
	return false;
}

/* Whether the signal that a thread is about to get is from one of its
   events. */
static bool
is_ours(const struct wp_stop_thread *thread, const siginfo_t *info)
{
	if (info->si_code <= 0 || info->si_code == SI_KERNEL)
		return false;
	return has_event(&thread->events, info->si_fd) ||
	    has_event(&thread->scouts, info->si_fd);
}

/* Make the signal look as if a thread of the process had sent it, as must have
   been the case for the one it was merged with. */
static void
make_its_own(const struct wp_stop_thread *thread, int sig)
{
	struct wp_proc_status status;
	siginfo_t info = {.si_signo = sig, .si_code = SI_TKILL};

	info.si_pid = thread->process->pid;
	if (wp_proc_status(thread->process->pid, &status) == 0)
		info.si_uid = status.uid;
	(void)wp_trace_set_signal(thread->traced.tid, &info);
}

/*
 * The kernel keeps only one instance of each of these signals for a thread, so
 * one of the program's own is lost if it arrives while ours is pending.  Ours
 * stops the thread as soon as possible, and nothing is merged with it after
 * that.  So if the program has no handler at this stop, it had none for the
 * lost signal, and would have ignored it; if it has one, the handler is called.
 */
enum wp_stop_signal
wp_stop_signal_of(struct wp_stops *stops, struct wp_stop_thread *thread,
    int sig)
{
	siginfo_t info;

	if (!is_harmless(sig) ||
	    wp_trace_get_signal(thread->traced.tid, &info) < 0)
		return WP_STOP_SIGNAL_ITS_OWN;
	if (look_at_handlers(thread->process))
		check_all(stops, thread->process);
	/* it may have blocked all other signals when this one was chosen, as
	   libc does while it creates a thread */
	else if (wp_proc_signal_in(thread->process->caught, thread->signal))
		(void)wp_stop_signal_check(stops, thread);
	if (!is_ours(thread, &info))
		return WP_STOP_SIGNAL_ITS_OWN;
	if (!wp_proc_signal_in(thread->process->caught, sig))
		return WP_STOP_SIGNAL_OURS;
	make_its_own(thread, sig);
	return WP_STOP_SIGNAL_MERGED;
}

void
wp_stop_mute(struct wp_stop_thread *thread)
{
	set_signal(thread, 0);
	thread->signal_blocked = true;
}

/* Read the ids of its events, except the last one, the reference. */
static int
take_ids(struct wp_stop_thread *thread)
{
	const size_t n = thread->events.n - 1;
	int err = 0;

	if ((thread->id = calloc(n + 1, sizeof(*thread->id))) == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n && err == 0; i++)
		err = wp_perf_id(thread->events.event[i].fd, &thread->id[i]);
	return err;
}

/* While a thread is created, its creator and, at first, the new thread block
   all signals; so a mask with all of them blocked does not count. */
static int
first_signal(struct wp_stop_thread *thread, bool made)
{
	int sig;

	(void)look_at_handlers(thread->process);
	sig = choose(made ? 0 : wp_trace_blocked(thread->traced.tid),
	    thread->process->caught);
	return sig != 0 ? sig : choose(0, thread->process->caught);
}

enum { BIRTH_US = 50, BIRTH_TRIES = 100000 };

/* Each thread may have its own instance of what is watched.  Its address cannot
   be read before the new thread has stopped for the first time, which it does
   before it runs.  Returns 0, or -ESRCH if it has ended. */
static int
await_birth(const struct wp_stops *stops, const struct wp_stop_process *process,
    pid_t tid)
{
	unsigned tries = 0;
	bool local = false;

	for (size_t i = 0; i < process->n; i++)
		local = local || stops->target->watch[process->first +
		    i].block != 0;
	while (local && wp_trace_pc(tid) == 0) {
		if (wp_proc_exiting(tid) || ++tries == BIRTH_TRIES)
			return -ESRCH;
		wp_clock_sleep(BIRTH_US * 1000);
	}
	return 0;
}

int
wp_stop_arm(struct wp_stops *stops, struct wp_stop_thread *thread, bool made)
{
	const struct wp_stop_process *process = thread->process;
	int err = await_birth(stops, process, thread->traced.tid);

	if (err == 0)
		err = wp_target_open_thread(stops->target, &thread->events,
		    process->first, process->n, thread->traced.tid);
	thread->block = wp_trace_thread_block(thread->traced.tid);
	if (err == 0 && process->nscouts > 0)
		err = wp_target_open_thread(stops->scouts, &thread->scouts,
		    process->scout, process->nscouts, thread->traced.tid);
	if (err == 0)
		err = take_ids(thread);
	if (err < 0) {
		wp_events_close(&thread->scouts, 0);
		wp_events_close(&thread->events, 0);
	}
	if (err == 0)
		set_signal(thread, first_signal(thread, made));
	return err;
}

void
wp_stop_disarm(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	const struct wp_stop_process *process = thread->process;

	wp_events_stop(&thread->events, &stops->target->options);
	wp_events_stop(&thread->scouts, &stops->target->options);
	wp_uptime_add(&stops->uptime, &thread->events, &stops->target->options);
	for (size_t w = process->first; w < process->first + process->n; w++)
		wp_events_count(&thread->events, &stops->target->options, w,
		    &stops->closed_total[w]);
	wp_events_close(&thread->events, 0);
	wp_events_close(&thread->scouts, 0);
	free(thread->id);
	thread->id = NULL;
}

uint64_t
wp_stop_counted(const struct wp_stops *stops,
    const struct wp_stop_thread *thread, size_t watch)
{
	struct wp_perf_count count = {0};

	wp_events_count(&thread->events, &stops->target->options, watch,
	    &count);
	return count.value;
}

int
wp_stops_count(const struct wp_stops *stops, size_t watch,
    struct wp_perf_count *count)
{
	*count = (struct wp_perf_count){0};
	if (watch >= stops->nclosed)
		return -EINVAL;
	*count = stops->closed_total[watch];
	for (size_t i = 0; i < stops->loop.all.n; i++)
		wp_events_count(&wp_stop_at(stops, i)->events,
		    &stops->target->options, watch, count);
	return 0;
}

void
wp_stops_turn_off(struct wp_stops *stops, size_t watch)
{
	wp_target_turn_off(stops->target, watch);
	for (size_t i = 0; i < stops->loop.all.n; i++)
		wp_target_turn_off_events(stops->target,
		    &wp_stop_at(stops, i)->events, watch);
}

void
wp_stops_uptime(const struct wp_stops *stops, struct wp_uptime *uptime)
{
	*uptime = stops->uptime;
	for (size_t i = 0; i < stops->loop.all.n; i++)
		wp_uptime_add(uptime, &wp_stop_at(stops, i)->events,
		    &stops->target->options);
}
