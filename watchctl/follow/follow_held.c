/*
 * follow_held: watches that move while all threads of their process are held.
 *
 * By then each write to a pointer is recorded, and none can follow.  So what is
 * known is how many there were since the pointers were looked at last.  After
 * one, of the only thread there is, which is stopped behind it, nothing has
 * been missed.
 */
#include <string.h>

#include "os/clock.h"
#include "follow/follow_private.h"
#include "stop/stop.h"

static void
wrote(struct followed *one, const struct wp_sample *sample)
{
	const bool user = (sample->header.misc &
	    PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;

	if (follow_is_same_write(one, sample))
		return;
	if (one->writes == 0) {
		one->first = sample->time;
		one->pc = user ? sample->ip : 0;
	}
	if (one->writes < 2)
		one->writes++;
}

static void
lost(struct followed *one, uint64_t began)
{
	if (one->writes == 0)
		one->first = one->looked != 0 ? one->looked : began;
	one->writes = 2;
}

void
follow_scouted(struct follow *f, const struct wp_sample *sample)
{
	bool any;

	if (sample == NULL) {
		for (size_t i = 0; i < f->n; i++)
			lost(&f->one[i], f->run->began);
		return;
	}
	/* it may be a pointer that is no longer watched */
	any = !follow_any_has_pointer(f, (pid_t)sample->pid, sample->addr);
	for (size_t i = 0; i < f->n; i++)
		if (f->one[i].pid == (pid_t)sample->pid && (any ||
		    follow_has_pointer(&f->one[i], sample->addr)))
			wrote(&f->one[i], sample);
}

/* Whether it was the only write, and its thread has executed nothing since. */
static bool
is_behind(const struct followed *one, const struct wp_stops_held *held)
{
	return one->writes == 1 && one->pc != 0 && one->pc == held->pc &&
	    held->since < one->first;
}

/* Whether no other write is possible: a thread that could not be held may have
   made one that is recorded later. */
static bool
is_only_write(const struct followed *one, const struct wp_stops_held *held)
{
	return one->writes == 1 && held->time != 0;
}

/* For how many ns accesses may have been missed. */
static uint64_t
gap_of(const struct followed *one, const struct wp_stops_held *held)
{
	const uint64_t end = held->time != 0 ? held->time : wp_clock_ns();

	return end > one->first ? end - one->first : 1;
}

/* The pointers lead to another place. */
static void
move(struct follow *f, struct followed *one, const struct wp_stops_held *held,
    const uint64_t at[SPEC_MORE_MAX + 1])
{
	struct move done = {
		.followed = (size_t)(one - f->one), .done = true,
		.gap = WATCH_NO_GAP,
	};
	uint64_t before[SPEC_MORE_MAX + 1];

	memcpy(before, one->at, sizeof(before));
	done.failed = !follow_move(f, one, at);
	done.addr = at[one->place.nmore];
	done.time = wp_clock_ns();
	/* without a write they led there before they were watched */
	if (one->writes == 0)
		one->first = f->run->began;
	if (follow_is_gone(one) || (!is_behind(one, held) &&
	    (!is_only_write(one, held) || !follow_misses_nothing(one, before))))
		done.gap = gap_of(one, held);
	follow_say(f, &done);
}

/* The pointers lead to the same place, but may have led to another one in
   between. */
static void
stay(struct follow *f, const struct followed *one,
    const struct wp_stops_held *held)
{
	if (one->writes > 0 && (!is_only_write(one, held) ||
	    follow_is_gone(one)))
		follow_say(f, &(struct move){
			.followed = (size_t)(one - f->one), .done = true,
			.stayed = true, .addr = one->at[one->place.nmore],
			.time = wp_clock_ns(), .gap = gap_of(one, held),
		});
}

void
follow_held(struct follow *f, const struct wp_stops_held *held)
{
	for (size_t i = 0; i < f->n; i++) {
		struct followed *one = &f->one[i];
		uint64_t at[SPEC_MORE_MAX + 1];

		if (one->pid != held->pid)
			continue;
		follow_look(one, at);
		if (memcmp(at, one->at, sizeof(at)) != 0)
			move(f, one, held, at);
		else
			stay(f, one, held);
		one->writes = one->scouts = 0;
		one->looked = wp_clock_ns();
	}
}
