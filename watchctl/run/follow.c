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
	POLL_MS = 100,		/* between looks, if a record should be lost */
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
	return wp_target_attach(f->scouts, process->pid, (size_t)first, n,
	    cause);
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

/* A pointer changed at this time, ns. */
static void
follow_one(struct follow *f, struct followed *one, uint64_t since)
{
	const unsigned n = one->place.nmore;
	const uint64_t before = one->at[n];
	uint64_t at[SPEC_MORE_MAX + 1];
	struct move done = {
		.followed = (size_t)(one - f->one), .done = true,
	};
	bool good = true, moved = false;

	for (unsigned i = 0; i < TRIES_MAX; i++) {
		look(one, at);
		if (memcmp(at, one->at, sizeof(at)) == 0)
			break;
		good = move_to(f, one, at);
		moved = true;
	}
	if (!moved || (at[n] == before && one->at[n] == before && good))
		return;
	done.addr = one->at[n];
	done.time = wp_clock_ns();
	done.gap = done.addr == 0 ? WATCH_NO_GAP : done.time - since;
	done.failed = !good;
	say(f, &done);
}

/* Follow each of a process; pid 0: of all. */
static void
follow_process(struct follow *f, pid_t pid, uint64_t since)
{
	for (size_t i = 0; i < f->n; i++)
		if (pid == 0 || f->one[i].pid == pid)
			follow_one(f, &f->one[i], since);
}

/* Take the records of writes to pointers. */
static void
take_writes(struct follow *f)
{
	struct wp_rings *rings = wp_target_rings(f->scouts);
	const struct perf_event_header *header;

	while ((header = wp_rings_next(rings, UINT64_MAX)) != NULL) {
		const struct wp_sample *sample = (const void *)header;

		if (header->type == PERF_RECORD_SAMPLE)
			follow_process(f, (pid_t)sample->pid, sample->time);
		else if (header->type == PERF_RECORD_LOST)
			follow_process(f, 0, wp_clock_ns());
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
	/* what changed before it was there */
	follow_process(f, 0, f->run->began);
	while (p != NULL && p->revents == 0) {
		take_writes(f);
		(void)poll(p, n + 1, POLL_MS);
	}
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
	if (one->described != 0 && !move->failed)
		initial_place_report(f->run, s->watches[watch], one->pid);
	if (move->gap != WATCH_NO_GAP)
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
