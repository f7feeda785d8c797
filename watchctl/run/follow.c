/* follow: watches that move with pointers. */
#include "run/follow.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "os/proc.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "util/complain.h"

enum {
	TRIES_MAX = 8,		/* moves for one change, if pointers change on */
	POLL_MS = 100,		/* between looks, if a record should be lost;
				   and between reports of doubts */
	LATE_NS = 1000000,	/* what a store may be recorded after it */
};

/* An object that is followed. */
struct followed {
	pid_t pid;
	size_t watch;		/* of the target */
	size_t spec, scout;	/* its SPEC; the first pointer among the
				   scouts */
	enum wp_access access;
	struct spec_place place;
	uint64_t at[SPEC_MORE_MAX + 1];	/* where the pointers are that are
					   watched, and the object; 0: nowhere;
					   the thread's */
	uint64_t since;		/* not where they led when they were armed;
				   0: they were */
	uint64_t gap_looked;	/* when it was last looked at, for all the
				   gaps so far */
	uint64_t wrote, looked;	/* a write after which nothing was missed, and
				   when it was looked at; 0: none since the last
				   gap */
	uint64_t doubt, until;	/* a gap that may be, and is not reported;
				   0: none */
	unsigned described;	/* of the session's watches, the place that it
				   has moved to, plus 1; 0: it has not */
};

/* What the thread has done, or is about to. */
struct move {
	size_t followed;
	uint64_t addr;		/* of the object; 0: nowhere */
	uint64_t time;		/* ns */
	bool done;		/* else it is about to be */
	uint64_t gap;		/* done: as of struct watch_event */
	bool failed;
	bool stayed;		/* it may have been elsewhere meanwhile */
};

struct follow {
	struct run *run;
	struct wp_target *scouts;	/* with the pointers' watches */
	struct followed *one;	/* n of them */
	size_t n, cap;
	pthread_t thread;
	bool running;
	int end, moved;		/* eventfds: it is to end; there are moves */
	pthread_mutex_t lock;	/* of what follows */
	struct move *move;	/* nmoves, that are not reported */
	size_t nmoves, moves_cap;
	atomic_bool any;	/* there are some */
	bool warned;		/* that one could not be made */
};

int
follow_open(struct follow **out, struct run *run)
{
	const struct wp_options wish = {
		.kernel = !run->options->user_only, .eager = true,
	};
	struct wp_cause cause = {0};
	struct follow *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return complain("out of memory");
	f->run = run;
	f->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->moved = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&f->lock, NULL);
	if (f->end < 0 || f->moved < 0)
		(void)wp_cause_errno(&cause, "following pointers", errno);
	else
		(void)wp_target_new(&f->scouts, &run->features, &wish, &cause);
	if (cause.code != WP_CAUSE_NONE) {
		follow_close(f);
		return complain("%s", cause.text);
	}
	*out = f;
	return 0;
}

void
follow_close(struct follow *f)
{
	if (f == NULL)
		return;
	follow_end(f);
	wp_target_free(f->scouts);
	if (f->end >= 0)
		(void)close(f->end);
	if (f->moved >= 0)
		(void)close(f->moved);
	(void)pthread_mutex_destroy(&f->lock);
	free(f->one);
	free(f->move);
	free(f);
}

/* --- where pointers lead --- */

/* Whether something can be there. */
static bool
is_there(pid_t pid, uint64_t addr)
{
	uint8_t byte;

	return wp_proc_read(pid, addr, &byte, sizeof(byte)) > 0;
}

/* Where they lead now; nowhere from a null pointer on, or from one that leads to
   no memory. */
static void
look(const struct followed *one, uint64_t at[SPEC_MORE_MAX + 1])
{
	const unsigned n = one->place.nmore;
	uint64_t pointer;

	memset(at, 0, (SPEC_MORE_MAX + 1) * sizeof(*at));
	at[0] = one->place.addr;
	for (unsigned i = 0; i < n && at[i] != 0; i++) {
		if (wp_proc_read(one->pid, at[i], &pointer,
		    sizeof(pointer)) != sizeof(pointer) || pointer == 0)
			break;
		pointer += one->place.more[i];
		at[i + 1] = is_there(one->pid, pointer) ? pointer : 0;
	}
}

static struct wp_region
pointer_at(uint64_t addr)
{
	return (struct wp_region){
		.addr = addr, .len = sizeof(uint64_t), .access = WP_WRITE,
	};
}

int
follow_plan(struct follow *f, const struct process *process,
    struct wp_region *regions, struct wp_cause *cause)
{
	const struct options *o = f->run->options;

	for (size_t i = 0; i < o->nspecs; i++) {
		struct followed *one;

		if (o->spec[i].line != 0 || process->place[i].nmore == 0)
			continue;
		if (WP_ARRAY_ROOM(f, one) < 0)
			return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
		one = &f->one[f->n++];
		*one = (struct followed){
			.pid = process->pid, .spec = i,
			.access = o->spec[i].access,
			.place = process->place[i],
		};
		look(one, one->at);
		regions[i].addr = one->at[one->place.nmore];
	}
	return 0;
}

static unsigned
slots_of(const struct wp_target *target, size_t first, size_t n)
{
	size_t all;
	const struct wp_watched *watched = wp_target_watches(target, &all);
	unsigned slots = 0;

	for (size_t w = first; w < first + n && w < all; w++)
		slots += watched[w].nslots;
	return slots;
}

/* From now on each change is recorded; what was before has no record. */
static void
look_again(struct follow *f, pid_t pid)
{
	uint64_t at[SPEC_MORE_MAX + 1];

	for (size_t i = 0; i < f->n; i++) {
		if (f->one[i].pid != pid)
			continue;
		look(&f->one[i], at);
		if (memcmp(at, f->one[i].at, sizeof(at)) != 0)
			f->one[i].since = wp_clock_ns();
	}
}

int
follow_arm(struct follow *f, const struct process *process,
    struct wp_cause *cause)
{
	struct run *run = f->run;
	unsigned slots = slots_of(run->target, process->first, process->n);
	size_t n = 0;
	int first = -1;

	for (size_t i = 0; i < f->n; i++) {
		struct followed *one = &f->one[i];
		struct wp_region region[SPEC_MORE_MAX];
		int scout;

		if (one->pid != process->pid)
			continue;
		one->watch = process->first + one->spec;
		for (unsigned k = 0; k < one->place.nmore; k++)
			region[k] = pointer_at(one->at[k]);
		scout = wp_target_watch(f->scouts, region, one->place.nmore,
		    cause);
		if (scout < 0)
			return scout;
		one->scout = (size_t)scout;
		first = first < 0 ? scout : first;
		n += one->place.nmore;
	}
	if (first < 0)
		return 0;
	slots += slots_of(f->scouts, (size_t)first, n);
	if (slots > run->features.caps.slots)
		return wp_cause_set(cause, WP_CAUSE_TOO_MANY, slots,
		    run->features.caps.slots);
	if ((first = wp_target_attach(f->scouts, process->pid, (size_t)first, n,
	    cause)) < 0)
		return first;
	look_again(f, process->pid);
	return 0;
}

bool
follow_has(const struct follow *f, size_t watch)
{
	for (size_t i = 0; f != NULL && i < f->n; i++)
		if (f->one[i].watch == watch)
			return true;
	return false;
}

/* --- the thread --- */

/* Say what is about to be done, or was. */
static void
say(struct follow *f, const struct move *move)
{
	(void)pthread_mutex_lock(&f->lock);
	if (wp_array_room(&f->move, f->nmoves, &f->moves_cap,
	    sizeof(*f->move)) == 0)
		f->move[f->nmoves++] = *move;
	if (!atomic_exchange(&f->any, true))
		(void)eventfd_write(f->moved, 1);
	(void)pthread_mutex_unlock(&f->lock);
}

/* Move what is not where it was looked for.  False: it cannot be. */
static bool
move_to(struct follow *f, struct followed *one,
    const uint64_t at[SPEC_MORE_MAX + 1])
{
	const unsigned n = one->place.nmore;
	const struct wp_region object = {
		.addr = at[n], .len = one->place.len, .access = one->access,
	};
	const struct move about = {
		.followed = (size_t)(one - f->one), .addr = at[n],
		.time = wp_clock_ns(),
	};
	bool good = true;

	if (at[n] != one->at[n]) {
		say(f, &about);
		good = wp_target_move(f->run->target, one->watch, &object,
		    NULL) == 0;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct wp_region pointer = pointer_at(at[i]);

		if (at[i] != one->at[i] && wp_target_move(f->scouts,
		    one->scout + i, &pointer, NULL) < 0)
			good = false;
	}
	memcpy(one->at, at, sizeof(one->at));
	return good;
}

/* Whether something may have been at a place between this write to a pointer and the
   one before, after which nothing could have been missed: when that was looked at,
   its successor had been executed already, perhaps, and was only recorded later. */
static bool
is_second(const struct followed *one, uint64_t wrote)
{
	return one->wrote != 0 && wrote <= one->looked + LATE_NS;
}

/* A pointer was written at this time, ns, and is what it was.  If that was the only
   write, it was that value which was written; else there may have been another
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

/* Whether nothing can be read any more, which says nothing of what was written. */
static bool
is_gone(const struct followed *one)
{
	return one->at[one->place.nmore] == 0 &&
	    !is_there(one->pid, one->at[0]);
}

/* Whether nothing was missed at a move: there is no object now, nor a pointer that
   has just begun to be watched. */
static bool
misses_nothing(const struct followed *one,
    const uint64_t before[SPEC_MORE_MAX + 1])
{
	for (unsigned i = 1; i <= one->place.nmore; i++)
		if (one->at[i] != 0 && one->at[i] != before[i])
			return false;
	return one->at[one->place.nmore] == 0;
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
	say(f, &done);
}

/* A pointer was written at this time, ns. */
static void
follow_one(struct follow *f, struct followed *one, uint64_t wrote)
{
	uint64_t before[SPEC_MORE_MAX + 1], at[SPEC_MORE_MAX + 1];
	uint64_t looked = wp_clock_ns();
	bool good = true, gone;
	unsigned moves = 0;

	memcpy(before, one->at, sizeof(before));
	for (; moves < TRIES_MAX; moves++) {
		looked = wp_clock_ns();
		look(one, at);
		if (memcmp(at, one->at, sizeof(at)) == 0)
			break;
		good = move_to(f, one, at);
	}
	gone = is_gone(one);
	if (moves == 0)
		stay(one, wrote, looked, gone);
	else
		say_moved(f, one, wrote, looked, moves > 1 || gone ||
		    !misses_nothing(one, before), good);
}

/* Whether it is one of its pointers that is there. */
static bool
has_pointer(const struct followed *one, uint64_t addr)
{
	for (unsigned i = 0; i < one->place.nmore; i++)
		if (one->at[i] != 0 && addr < one->at[i] + sizeof(uint64_t) &&
		    addr + sizeof(uint64_t) > one->at[i])
			return true;
	return false;
}

static bool
any_has_pointer(const struct follow *f, pid_t pid, uint64_t addr)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->one[i].pid == pid && has_pointer(&f->one[i], addr))
			return true;
	return false;
}

/* A pointer was written; it may be one that is watched no more, which led to any
   of the process. */
static void
take_write(struct follow *f, const struct wp_sample *sample)
{
	const pid_t pid = (pid_t)sample->pid;
	const bool any = !any_has_pointer(f, pid, sample->addr);

	for (size_t i = 0; i < f->n; i++)
		if (f->one[i].pid == pid && (any ||
		    has_pointer(&f->one[i], sample->addr)))
			follow_one(f, &f->one[i], sample->time);
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
		follow_one(f, one, now);
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
		say(f, &(struct move){
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
			follow_one(f, &f->one[i], f->one[i].since);
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
follow_begin(struct follow *f)
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

void
follow_end(struct follow *f)
{
	if (f == NULL || !f->running)
		return;
	(void)eventfd_write(f->end, 1);
	(void)pthread_join(f->thread, NULL);
	f->running = false;
	follow_report(f);
}

/* --- the report --- */

int
follow_fd(const struct follow *f)
{
	return f->moved;
}

/* Describe where it is about to be.  Each time it comes to a place that is another
   watch of the session, since what was there meanwhile was not watched. */
static void
describe_place(struct follow *f, struct followed *one, const struct move *move)
{
	struct run *run = f->run;
	struct session *s = &run->session;
	const struct ex_watch *first = run_watch(run, one->watch);
	struct wp_slot slot[WP_SLOTS_MAX];
	const struct wp_region region = {
		.addr = move->addr, .len = one->place.len,
		.access = one->access,
	};
	const int n = wp_slot_plan(&region, &run->features.caps, slot, NULL);

	one->described = 0;
	if (move->addr == 0 || run->options->count)
		return;
	session_of_process(s, ex_watch_number(first), first->pid, first->comm);
	session_pending(s, false);
	session_moves(s, true, move->time);
	if (session_add_watch(s, first->spec, first->symbol, move->addr,
	    first->len, first->access, first->slots) < 0) {
		session_note(s, -ENOMEM);
		return;
	}
	one->described = (unsigned)s->nwatches;
	for (int i = 0; i < n; i++)
		if (run_describe_place(run, (int)s->nwatches - 1, one->watch,
		    &slot[i]) < 0)
			session_note(s, -ENOMEM);
	session_place(s, one->pid, &run->options->spec[one->spec], move->addr,
	    one->place.len);
}

static void
report_move(struct follow *f, struct followed *one, const struct move *move)
{
	struct session *s = &f->run->session;
	const unsigned watch = one->described != 0 ? one->described - 1 :
	    run_watch(f->run, one->watch)->id - 1;

	session_event(s, &(struct watch_event){
		.what = WATCH_RETARGET, .watch = watch, .time = move->time,
		.pid = one->pid, .addr = move->addr,
		.len = move->addr != 0 ? one->place.len : 0, .gap = move->gap,
	});
	if (one->described != 0 && !move->failed && !move->stayed)
		initial_place_report(f->run, s->watches[watch], one->pid);
	if (move->stayed)
		session_doubt(s, "%s may have been elsewhere, and not watched, "
		    "within %.1f us, in which a pointer on the way to it "
		    "was written", s->watches[watch]->spec,
		    (double)move->gap / 1e3);
	else if (move->gap != WATCH_NO_GAP)
		session_doubt(s, "%s was not watched for %.1f us after a "
		    "pointer on the way to it had changed",
		    s->watches[watch]->spec, (double)move->gap / 1e3);
	if (!move->failed)
		return;
	session_doubt(s, "%s could not be moved", s->watches[watch]->spec);
	if (!f->warned)
		session_warn(s, "%s could not be watched where its pointers "
		    "lead: it takes more slots there, or the kernel refused",
		    s->watches[watch]->spec);
	f->warned = true;
}

void
follow_report(struct follow *f)
{
	struct move *moves;
	size_t n;
	eventfd_t count;

	if (f == NULL || !atomic_load(&f->any))
		return;
	(void)pthread_mutex_lock(&f->lock);
	moves = f->move;
	n = f->nmoves;
	f->move = NULL;
	f->nmoves = f->moves_cap = 0;
	(void)eventfd_read(f->moved, &count);
	atomic_store(&f->any, false);
	(void)pthread_mutex_unlock(&f->lock);
	for (size_t i = 0; i < n; i++) {
		struct followed *one = &f->one[moves[i].followed];

		if (moves[i].done)
			report_move(f, one, &moves[i]);
		else
			describe_place(f, one, &moves[i]);
	}
	free(moves);
}
