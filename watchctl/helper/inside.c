/*
 * inside: serving the channel of a program that watches itself.
 */
#include "helper/inside.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "os/clock.h"
#include "util/complain.h"
#include "watch/look.h"
#include "os/proc.h"

/* How long to sleep when nothing happens, ms. */
enum { TICK = 100 };

int
inside_open(struct inside *in, struct wp_channel *channel, int fd,
    pid_t program)
{
	static const struct ex_value_options values = {
		.read = wp_proc_read, .now = wp_clock_ns, .at_once = true,
		.in_order = true,
	};
	struct perf_event_attr attr;

	in->channel = channel;
	in->fd = fd;
	in->program = program;
	in->began = wp_clock_ns();
	/* the process that starts a command is there to read; others may have
	   forgotten */
	room_open(&in->room, in->ours ? -1 : fileno(in->session.report.out));
	in->mapped = (struct mapped){.space = in->session.space, .pid =
	    program};
	in->known = (struct known){.pid = program};
	sideband_open(&in->sideband, program);
	if ((in->pidfd = pidfd_open(program, 0)) < 0)
		return complain("pidfd_open: %s", strerror(errno));
	wp_channel_attr(&attr);
	in->formats = ex_formats_new();
	if (in->formats == NULL ||
	    ex_formats_add(in->formats, &attr, NULL, 0) < 0 ||
	    session_ready(&in->session) < 0 ||
	    ex_explainer_values(in->session.explainer, &values) < 0 ||
	    tracing_open(&in->tracing, program) < 0)
		return complain("out of memory");
	/* it may be no more when its first hit is explained */
	(void)mapped_look(&in->mapped);
	return 0;
}

void
inside_close(struct inside *in)
{
	vigil_end(&in->vigil);
	tracing_close(in->tracing);
	copies_close(&in->copies);
	sideband_close(&in->sideband);
	known_free(&in->known);
	ex_formats_free(in->formats);
	session_close(&in->session);
	if (in->pidfd >= 0)
		(void)close(in->pidfd);
}

void
inside_start(struct inside *in)
{
	struct wp_proc_status status = {0};
	struct report_start start = {
		.pid = in->program, .mode = "inside", .frozen_ms = -1,
		.time = in->began, .wall = wp_clock_wall(in->began),
	};

	if (wp_proc_status(in->program, &status) == 0) {
		start.threads = status.threads;
		start.comm = status.comm;
	}
	session_start(&in->session, &start);
	(void)session_flush(&in->session, 0);
	in->started = true;
}

static void
ignore(void *arg, const struct sideband_mapping *map)
{
	(void)arg;
	(void)map;
}

/* For how long the watches have been on.  Nothing is explained any more. */
static void
measure(struct inside *in)
{
	const struct wp_channel_watch *watch;
	int slot;

	if (in->left || in->measured)
		return;
	in->measured = true;
	(void)sideband_is_quiet(&in->sideband, ignore, NULL);
	presence_end(&in->presence, &in->uptime);
	if (in->uptime.worst == 0)
		return;
	watch = &in->channel->watch[in->uptime.watch];
	slot = known_slot(&in->known, &in->session, &watch->what, -1);
	in->uptime.watch = slot < 0 ? UINT_MAX :
	    in->session.slots[slot].watch->id - 1;
}

/* No more hits are wanted: the program goes on without. */
static void
end_watch(struct inside *in, const char *reason)
{
	measure(in);
	in->reason = reason;
	atomic_store(&in->channel->off, 1);
	copies_disable(&in->copies);
}

/* Hits for which there was no room are reported when there is. */
static void
tell_unreported(struct inside *in)
{
	session_lost(&in->session, in->unreported);
	in->unreported = 0;
}

static void
take_cell(struct inside *in, struct wp_cell *cell)
{
	const bool room = room_wait(&in->room);

	if (room)
		tell_unreported(in);
	else
		in->unreported++;
	cell_report(in, cell, room);
}

static void
take_cells(struct inside *in)
{
	struct wp_cell *cell;

	for (unsigned i = 0; i < WP_CELLS; i++) {
		if ((cell = wp_channel_next(in->channel)) == NULL)
			return;
		if (!in->started)
			inside_start(in);
		take_cell(in, cell);
		wp_channel_done(in->channel, cell);
	}
}

/* Until a report has begun, warnings wait. */
static void
tell_warning(struct inside *in)
{
	uint32_t warned = atomic_load(&in->channel->warned);
	char text[sizeof(in->channel->warning)];

	if (warned == in->warned || !in->started)
		return;
	in->warned = warned;
	memcpy(text, in->channel->warning, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	session_warn(&in->session, "%s", text);
	(void)session_flush(&in->session, 0);
}

/* Hits that were not counted: that they may have been is all that is known. */
static void
tell_gaps(struct inside *in)
{
	uint32_t gaps = atomic_load(&in->channel->gaps);

	if (gaps == in->gaps || !in->started)
		return;
	in->gaps = gaps;
	session_warn(&in->session, "the process that traces the program's "
	    "threads was killed, and replaced: accesses in between may be neither "
	    "reported nor counted as lost");
	session_doubt(&in->session, "the process that traces the program's "
	    "threads was killed");
	(void)session_flush(&in->session, 0);
}

/* What a child does matters only to a run that has to be vouched for. */
static void
tell_children(struct inside *in)
{
	if (!in->ours || in->parted || !in->started || in->reason != NULL ||
	    atomic_load(&in->channel->children) == 0)
		return;
	in->parted = true;
	session_warn(&in->session, "process %d created a child by fork(2), "
	    "which is not watched; without --inside, -f watches children too",
	    in->program);
	session_doubt(&in->session, "a child that process %d created by fork(2) "
	    "was not watched", in->program);
	(void)session_flush(&in->session, 0);
}

/* Warn that the kernel's accesses are not seen, unless the user accepts that.
    */
static void
tell_unseen(struct inside *in)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_channel_watch *w = &in->channel->watch[i];

		if (atomic_load(&w->serial) == 0 || w->kernel != 0 ||
		    w->what.access == WP_EXEC)
			continue;
		session_warn(&in->session, "the kernel's accesses on the "
		    "program's behalf are not watched: not permitted, or not "
		    "seen this way; --user-only accepts that");
		(void)session_flush(&in->session, 0);
		return;
	}
}

/* A preloaded library has opened what it was to open, or could not.  What is
   open now stays so.  Result: 1 if that is so even if the program closes it. */
static int
take_armed(struct inside *in, const struct wp_request *request)
{
	char text[sizeof(request->text)];
	struct wp_proc_status status;
	bool kept;

	memcpy(text, request->text, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	if (text[0] != '\0') {
		in->refused = true;
		(void)complain("%s", text);
		return 0;
	}
	if (in->armed)
		return 0;
	in->armed = true;
	vigil_heed(&in->vigil);
	kept = copies_take(&in->copies, in->channel, in->pidfd);
	if (kept)
		presence_begin(&in->presence, &in->copies, &in->sideband,
		    wp_proc_status(in->program, &status) == 0 &&
		    status.threads == 1);
	if (!in->started)
		inside_start(in);
	if (in->ours && !in->options->user_only)
		tell_unseen(in);
	return kept;
}

/* The other requests are for the process that traces the program. */
static void
answer(struct inside *in)
{
	struct wp_request *request = &in->channel->request;

	if (!wp_channel_asked(in->channel))
		return;
	switch (request->what) {
	case WP_ASK_RESOLVE:
		wp_channel_answer(in->channel, inside_resolve(in, request));
		break;
	case WP_ASK_ARMED:
		wp_channel_answer(in->channel, take_armed(in, request));
		break;
	default:
		break;
	}
}

/* The signal that reports hits; 0: nothing is watched. */
static int
signal_of_hits(const struct wp_channel *channel)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		uint32_t sig = channel->watch[i].signal;

		if (atomic_load(&channel->watch[i].serial) != 0 &&
		    sig > 0 && sig <= (uint32_t)SIGRTMAX)
			return (int)sig;
	}
	return 0;
}

static void
tell_suspicion(struct inside *in)
{
	in->suspected = true;
	session_warn(&in->session, "%s", in->suspicion);
	(void)session_flush(&in->session, 0);
}

/* Nothing has happened for this many ticks.  What two looks in a row see is
   reported, once.  That the signal is caught is looked at each time, since the
   next access may end the program. */
static void
look(struct inside *in, unsigned idle)
{
	const bool far = idle <= 2 || idle % 20 == 0;
	char why[sizeof(in->suspicion)] = "";
	int sig;

	if (idle == 0 || in->left || (in->ours && !in->armed))
		return;
	if (far && !look_has(in->program, in->fd)) {
		atomic_store(&in->vigil.executed, true);
		return;
	}
	if (in->suspected || (sig = signal_of_hits(in->channel)) == 0)
		return;
	if (!look_deaf(in->channel, sig, far, why, sizeof(why)) && !far)
		return;
	if (why[0] != '\0' && strcmp(why, in->suspicion) == 0)
		tell_suspicion(in);
	memcpy(in->suspicion, why, sizeof(why));
}

static void
check_limits(struct inside *in)
{
	const struct session *s = &in->session;

	if (!in->ours || in->reason != NULL)
		return;
	if (s->err < 0)
		end_watch(in, "detached");
	else if (s->full)
		end_watch(in, "count");
	else if (s->options->seconds > 0 && in->started &&
	    (double)(wp_clock_ns() - in->began) >= s->options->seconds * 1e9)
		end_watch(in, "time");
}

/* How long to sleep, ms. */
static int
nap(const struct inside *in)
{
	double left = in->session.options->seconds * 1e3 -
	    (double)(wp_clock_ns() - in->began) / 1e6;

	return in->session.options->seconds <= 0 || left >= TICK ||
	    left < 0 ? TICK : (int)left + 1;
}

/* How many accesses did not reach the program: as it says itself, or if it has
   not come to that, as is seen from here; but as instructions say, where all of
   them are known. */
static uint64_t
count_missed(const struct inside *in)
{
	const struct wp_channel *channel = in->channel;
	uint64_t sum = atomic_load(&channel->undelivered);

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_channel_watch *w = &channel->watch[i];
		const uint64_t told = atomic_load(&w->hits) - w->before;
		uint64_t counted, missed;

		if (!copies_counted(&in->copies, i, &counted))
			continue;
		if (tally_missed(&in->tally, channel, i, counted, &missed))
			sum += missed - atomic_load(&w->undelivered);
		else if (atomic_load(&channel->goodbye) == 0)
			sum += counted > told ? counted - told : 0;
	}
	return sum;
}

/* What the program left behind, and what did not reach it. */
static void
take_rest(struct inside *in)
{
	struct wp_channel *channel = in->channel;
	uint64_t missed;

	in->room.fd = -1;	/* now no thread waits for us */
	tracing_await_end(in->tracing);
	while (wp_channel_next(channel) != NULL || wp_channel_skip(channel))
		take_cells(in);
	tell_unreported(in);
	if (in->armed)
		measure(in);
	in->session.handled = atomic_load(&channel->handled);
	tell_warning(in);
	tell_gaps(in);
	tell_children(in);
	if (in->suspicion[0] != '\0' && !in->suspected && in->started &&
	    atomic_load(&channel->goodbye) == 0)
		tell_suspicion(in);
	missed = count_missed(in);
	if (missed == 0 || !in->started || in->reason != NULL)
		return;
	session_lost(&in->session, missed);
	session_warn(&in->session, "%llu access%s counted, but the program got "
	    "no signal of %s: it was blocked, ignored, taken by another or "
	    "reset to its default action, or the program ended before it came",
	    (unsigned long long)missed, missed == 1 ? " was" : "es were",
	    missed == 1 ? "it" : "them");
}

/* Whether the program is another now, and nothing is left to do.  A command of
   ours is served to its end, whatever it has become. */
static bool
has_left(struct inside *in)
{
	if (!atomic_load(&in->vigil.executed) &&
	    atomic_load(&in->channel->executed) == 0)
		return false;
	if (!in->ours)
		return true;
	if (!in->left && in->started && in->reason == NULL) {
		session_warn(&in->session, "process %d executed another "
		    "program, where addresses mean something else: its "
		    "watches have ended", in->program);
		session_doubt(&in->session, "process %d executed another "
		    "program, which was not watched", in->program);
		(void)session_flush(&in->session, 0);
	}
	in->left = true;
	return false;
}

void
inside_serve(struct inside *in)
{
	uint32_t heard = 0, before;
	unsigned idle = 0;

	wp_channel_serve(in->channel);
	vigil_begin(&in->vigil, in->channel, in->program, in->pidfd);
	if (!in->ours)
		vigil_heed(&in->vigil);
	while (!vigil_ended(&in->vigil) && !has_left(in)) {
		take_cells(in);
		tell_warning(in);
		answer(in);
		tracing_request(in->tracing, in->channel);
		tell_gaps(in);
		tell_children(in);
		check_limits(in);
		look(in, idle);
		before = heard;
		wp_channel_sleep(in->channel, &heard, nap(in));
		idle = heard == before ? idle + 1 : 0;
	}
	(void)has_left(in);
	take_rest(in);
}
