/* follow_thread: watches that move while the threads of their program run. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "follow/follow_private.h"

enum {
	TRIES_MAX = 8,		/* moves for one change, if pointers change
				   on */
	POLL_MS = 100,		/* between looks, if a record should be lost;
				   and between reports of doubts */
	LATE_NS = 1000000,	/* what a store may be recorded after it */
};

/* Whether something may have been at a place between this write to a pointer
   and the one before, after which nothing could have been missed: when that was
   looked at, its successor had been executed already, perhaps, and was only
   recorded later. */
static bool
is_second(const struct followed *one, uint64_t wrote)
{
	return one->wrote != 0 && wrote <= one->looked + LATE_NS;
}

/* A pointer was written at this time, ns, and is what it was.  If that was the
   only write, it was that value which was written; else there may have been
   another one in between. */
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

/* Since when something may have been missed at a move after this write, ns; 0:
   nothing was. */
static uint64_t
gap_since(const struct followed *one, uint64_t wrote, bool gap)
{
	return one->doubt != 0 ? one->doubt :
	    is_second(one, wrote) ? one->wrote : gap ? wrote : 0;
}

/* Say that it has moved; gap: after this write something was missed. */
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

/* A pointer was written at this time, ns; same: and has been looked at
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

/* A pointer was written; it may be one that is watched no more, which led to
   any of the process. */
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

/* What was written since they were looked at is not known. */
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

/* Report the gaps that may be, and began before this time, ns: each as one with
   those which followed. */
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

/* It does not wait for its turn, where that is permitted: meanwhile hits are
   missed. */
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
