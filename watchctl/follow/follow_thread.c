/* follow_thread: watches that move while the threads of their program run. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "follow/follow_private.h"

enum {
	TRIES_MAX = 8,		/* most moves for one change, if the pointers
				   go on changing */
	POLL_MS = 100,		/* ms between looks in case a record is lost,
				   and between reports of doubts */
	LATE_NS = 1000000,  /* ns after which a store may still be recorded */
};

/* Whether the object may have been at another place between this write of a
   pointer and the previous one.  When the previous one was looked at, this one
   may have been executed already, and recorded only later. */
static bool
is_second(const struct followed *one, uint64_t wrote)
{
	return one->wrote != 0 && wrote <= one->looked + LATE_NS;
}

/* A pointer was written at this time, ns, and still has its value.  If there
   was only one write, it wrote that value; otherwise it may have had another
   one in between. */
static void
stay(struct followed *one, uint64_t wrote, uint64_t looked, bool gone)
{
	const bool second = is_second(one, wrote);

	if (wrote <= one->gap_looked)
		return;
	if (second || gone) {
		if (one->doubt == 0)
			one->doubt = second ? one->wrote : wrote;
		one->until = wp_clock_ns();
		one->gap_looked = looked;
		one->wrote = 0;
	} else {
		one->wrote = wrote;
		one->looked = looked;
	}
}

/* Since when, in ns, accesses may have been missed by a move after this write;
   0 if none were. */
static uint64_t
gap_since(const struct followed *one, uint64_t wrote, bool gap)
{
	return one->doubt != 0 ? one->doubt :
	    is_second(one, wrote) ? one->wrote : gap ? wrote : 0;
}

/* Report the move.  gap: accesses after this write were missed. */
static void
say_moved(struct follow *f, struct followed *one, uint64_t wrote,
    uint64_t looked, bool gap, bool good)
{
	const uint64_t since = gap_since(one, wrote, gap);
	struct move done = {
		.followed = (size_t)(one - f->one), .done = true,
		.addr = one->at[one->place.nmore], .time = wp_clock_ns(),
		.gap = WATCH_NO_GAP, .failed = !good,
	};

	if (since != 0) {
		done.gap = done.time - since;
		one->gap_looked = looked;
	}
	one->doubt = 0;
	one->wrote = since != 0 ? 0 : wrote;
	one->looked = looked;
	follow_say(f, &done);
}

/* A pointer was written at this time, ns.  same: it has been looked at
   since. */
static void
follow_one(struct follow *f, struct followed *one, uint64_t wrote, bool same)
{
	uint64_t before[SPEC_MORE_MAX + 1], at[SPEC_MORE_MAX + 1];
	uint64_t looked = wp_clock_ns();
	bool good = true, gone;
	unsigned moves = 0;

	memcpy(before, one->at, sizeof(before));
	for (; moves < TRIES_MAX; moves++) {
		looked = wp_clock_ns();
		follow_look(one, at);
		if (memcmp(at, one->at, sizeof(at)) == 0)
			break;
		good = follow_move(f, one, at);
	}
	gone = follow_is_gone(one);
	if (moves == 0 && !same)
		stay(one, wrote, looked, gone);
	else if (moves > 0)
		say_moved(f, one, wrote, looked, moves > 1 || gone ||
		    !follow_misses_nothing(one, before), good);
}

/* A pointer was written.  It may be one that is no longer watched, and led to
   any of the process's watches. */
static void
take_write(struct follow *f, const struct wp_sample *sample)
{
	const pid_t pid = (pid_t)sample->pid;
	const bool any = !follow_any_has_pointer(f, pid, sample->addr);

	for (size_t i = 0; i < f->n; i++)
		if (f->one[i].pid == pid && (any ||
		    follow_has_pointer(&f->one[i], sample->addr)))
			follow_one(f, &f->one[i], sample->time,
			    follow_is_same_write(&f->one[i], sample));
}

/* Writes since the last look are not known. */
static void
take_loss(struct follow *f)
{
	const uint64_t now = wp_clock_ns();

	for (size_t i = 0; i < f->n; i++) {
		struct followed *one = &f->one[i];
		const uint64_t since = one->wrote != 0 ? one->wrote :
		    one->gap_looked != 0 ? one->gap_looked : f->run->began;

		if (one->doubt == 0)
			one->doubt = since;
		one->until = now;
		one->scouts = 0;
		follow_one(f, one, now, false);
	}
}

/* Take the records of writes to pointers. */
static void
take_writes(struct follow *f)
{
	struct wp_rings *rings = wp_target_rings(f->scouts);
	const struct perf_event_header *header;

	while ((header = wp_rings_next(rings, UINT64_MAX)) != NULL)
		if (header->type == PERF_RECORD_SAMPLE)
			take_write(f, (const void *)header);
		else if (header->type == PERF_RECORD_LOST)
			take_loss(f);
}

/* Report possible gaps that started before this time, ns, each together with
   those that followed it. */
static void
say_doubts(struct follow *f, uint64_t before)
{
	for (size_t i = 0; i < f->n; i++) {
		struct followed *one = &f->one[i];

		if (one->doubt == 0 || one->doubt >= before)
			continue;
		follow_say(f, &(struct move){
			.followed = i, .done = true, .stayed = true,
			.addr = one->at[one->place.nmore], .time = one->until,
			.gap = one->until - one->doubt,
		});
		one->doubt = 0;
	}
}

/* Hits are missed while this thread waits for its turn, so it gets real-time
   priority if that is permitted. */
static void *
follow_thread(void *arg)
{
	const struct sched_param first = {.sched_priority = 1};
	struct follow *f = arg;
	struct wp_rings *rings = wp_target_rings(f->scouts);
	const unsigned n = wp_rings_count(rings);
	struct pollfd *p = calloc(n + 1, sizeof(*p));

	(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	for (unsigned i = 0; p != NULL && i <= n; i++)
		p[i] = (struct pollfd){
			.fd = i == 0 ? f->end : wp_rings_fd(rings, i - 1),
			.events = POLLIN,
		};
	for (size_t i = 0; i < f->n; i++)
		if (f->one[i].since != 0)
			follow_one(f, &f->one[i], f->one[i].since,
			    false);
	while (p != NULL && p->revents == 0) {
		take_writes(f);
		say_doubts(f, wp_clock_ns() - POLL_MS * 1000000ull);
		(void)poll(p, n + 1, POLL_MS);
	}
	take_writes(f);
	say_doubts(f, UINT64_MAX);
	free(p);
	return NULL;
}

int
follow_thread_begin(struct follow *f)
{
	sigset_t all, before;
	int err;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&f->thread, NULL, follow_thread, f);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	f->running = err == 0;
	return -err;
}
