/* stop_arm: the events of a thread that stops at its hits. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "proc.h"
#include "stop_private.h"

/* How long what was seen of a process's handlers is good for, in ns. */
enum { CAUGHT_FRESH = 100000000 };

static bool
has(uint64_t signals, int sig)
{
	return (signals >> (sig - 1) & 1) != 0;
}

/* Signals that programs ignore by default. */
static const int harmless[] = {SIGURG, SIGWINCH};

/* One that is not blocked, and if possible has no handler, which would run
   should we die; 0: none. */
static int
choose(uint64_t blocked, uint64_t caught)
{
	int chosen = 0;

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		if (has(blocked, harmless[i]))
			continue;
		if (!has(caught, harmless[i]))
			return harmless[i];
		if (chosen == 0)
			chosen = harmless[i];
	}
	return chosen;
}

static void
look_at_handlers(struct wp_stop_process *process)
{
	struct wp_proc_status status;

	if (wp_proc_status(process->pid, &status) == 0)
		process->caught = status.caught;
	process->looked = true;
}

static void
warn_of_signal(struct wp_stops *stops, struct wp_stop_thread *thread,
    int chosen)
{
	char text[192];

	if (thread->process->warned)
		return;
	thread->process->warned = true;
	if (chosen == 0)
		(void)snprintf(text, sizeof(text), "thread %d blocks SIGURG "
		    "and SIGWINCH, which would stop it: its hits are reported, "
		    "but their values are not exact", thread->traced.tid);
	else
		(void)snprintf(text, sizeof(text), "process %d has handlers "
		    "for SIGURG and SIGWINCH: should watchctl be killed, one "
		    "may be called once", thread->process->pid);
	stops->calls->warn(stops->arg, text);
}

static void
set_signal(struct wp_stop_thread *thread, int sig)
{
	for (size_t i = 0; i < thread->events.n; i++)
		(void)wp_perf_signal(thread->events.event[i].fd, thread->traced.tid,
		    sig);
	thread->signal = sig;
}

bool
wp_stop_signal_check(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	const int before = thread->signal;
	struct wp_proc_status status = {0};
	int chosen;

	look_at_handlers(thread->process);
	if (wp_proc_status(thread->traced.tid, &status) < 0)
		return false;
	chosen = choose(status.blocked, thread->process->caught);
	if (chosen == 0 || has(thread->process->caught, chosen))
		warn_of_signal(stops, thread, chosen);
	if (chosen != 0 && chosen != thread->signal)
		set_signal(thread, chosen);
	return !has(status.blocked, before);
}

/* Whether programs have come to use what stops them. */
void
wp_stop_look_at_signals(struct wp_stops *stops)
{
	const uint64_t now = wp_clock_ns();

	if (now - stops->looked < CAUGHT_FRESH)
		return;
	stops->looked = now;
	for (struct wp_stop_process *p = stops->process; p != NULL;
	    p = p->next) {
		look_at_handlers(p);
		for (struct wp_stop_thread *t = p->thread; t != NULL;
		    t = t->sister)
			if (has(p->caught, t->signal))
				(void)wp_stop_signal_check(stops, t);
	}
}

/* Open the events of one slot, with their ids. */
static int
open_slot(struct wp_stops *stops, struct wp_stop_thread *thread, size_t w,
    unsigned s)
{
	const struct wp_target *target = stops->target;
	const bool side = w == thread->process->first && s == 0;
	const size_t before = thread->events.n;
	struct perf_event_attr attr;
	uint64_t *ids;
	int err;

	wp_attr_watch(&attr, &target->watch[w].slot[s], &target->options, side);
	err = wp_events_open(&thread->events, &attr, (uint16_t)w, (uint16_t)s,
	    thread->traced.tid, target->rings);
	if (err < 0)
		return err;
	ids = realloc(thread->id, thread->events.n * sizeof(*ids));
	if (ids == NULL)
		return -ENOMEM;
	thread->id = ids;
	for (size_t i = before; i < thread->events.n && err == 0; i++)
		err = wp_perf_id(thread->events.event[i].fd, &ids[i]);
	return err;
}

/* Who makes a thread blocks all signals meanwhile, and so does the new one at
   first: that means nothing. */
static int
first_signal(struct wp_stop_thread *thread, bool made)
{
	int sig;

	if (!thread->process->looked)
		look_at_handlers(thread->process);
	sig = choose(made ? 0 : wp_trace_blocked(thread->traced.tid),
	    thread->process->caught);
	return sig != 0 ? sig : choose(0, thread->process->caught);
}

int
wp_stop_arm(struct wp_stops *stops, struct wp_stop_thread *thread, bool made)
{
	const struct wp_stop_process *process = thread->process;
	int err = 0;

	for (size_t w = process->first; w < process->first + process->n; w++)
		for (unsigned s = 0; err == 0 &&
		    s < stops->target->watch[w].nslots; s++)
			err = open_slot(stops, thread, w, s);
	if (err < 0)
		wp_events_close(&thread->events, 0);
	else
		set_signal(thread, first_signal(thread, made));
	return err;
}

void
wp_stop_disarm(struct wp_stops *stops, struct wp_stop_thread *thread)
{
	const bool has_lost = stops->target->options.format_lost;

	for (size_t i = 0; i < thread->events.n; i++)
		(void)wp_perf_disable(thread->events.event[i].fd);
	for (size_t i = 0; i < thread->events.n; i++) {
		const struct wp_event *event = &thread->events.event[i];
		struct wp_perf_count one;

		if (event->watch < stops->ngone &&
		    wp_perf_read(event->fd, has_lost, &one) == 0) {
			stops->gone[event->watch].value += one.value;
			stops->gone[event->watch].lost += one.lost;
		}
	}
	wp_events_close(&thread->events, 0);
	free(thread->id);
	thread->id = NULL;
}

static uint64_t
counted(const struct wp_stops *stops, const struct wp_stop_thread *thread,
    size_t watch, uint64_t *lost)
{
	const bool has_lost = stops->target->options.format_lost;
	uint64_t sum = 0;

	for (size_t i = 0; i < thread->events.n; i++) {
		const struct wp_event *event = &thread->events.event[i];
		struct wp_perf_count one;

		if (event->watch == watch &&
		    wp_perf_read(event->fd, has_lost, &one) == 0) {
			sum += one.value;
			*lost += one.lost;
		}
	}
	return sum;
}

uint64_t
wp_stop_counted(const struct wp_stops *stops,
    const struct wp_stop_thread *thread, size_t watch)
{
	uint64_t lost = 0;

	return counted(stops, thread, watch, &lost);
}

int
wp_stops_count(const struct wp_stops *stops, size_t watch,
    struct wp_perf_count *count)
{
	*count = (struct wp_perf_count){0};
	if (watch >= stops->ngone)
		return -EINVAL;
	*count = stops->gone[watch];
	for (size_t i = 0; i < stops->all.n; i++)
		count->value += counted(stops, wp_stop_at(stops, i), watch,
		    &count->lost);
	return 0;
}

bool
wp_stop_is_ours(const struct wp_stop_thread *thread, int sig)
{
	siginfo_t info;

	if ((sig != harmless[0] && sig != harmless[1]) ||
	    wp_trace_get_signal(thread->traced.tid, &info) < 0 ||
	    info.si_code <= 0 || info.si_code == SI_KERNEL)
		return false;
	for (size_t i = 0; i < thread->events.n; i++)
		if (thread->events.event[i].fd == info.si_fd)
			return true;
	return false;
}
