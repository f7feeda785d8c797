/* follow: watches that move with pointers. */
#include "follow/follow_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "run/initial_values.h"
#include "util/complain.h"

int
follow_open(struct follow **out, struct run *run)
{
	const struct wp_options wish = {
		.kernel = !run->options->user_only, .eager = true,
		.stop = run->options->stop,
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

/* Whether there is anything at this address. */
static bool
is_there(pid_t pid, uint64_t addr)
{
	uint8_t byte;

	return wp_proc_read(pid, addr, &byte, sizeof(byte)) > 0;
}

/* The size of a pointer. */
static size_t
word_of(const struct followed *one)
{
	return one->place.narrow ? sizeof(uint32_t) : sizeof(uint64_t);
}

void
follow_look(const struct followed *one, uint64_t at[SPEC_MORE_MAX + 1])
{
	const unsigned n = one->place.nmore;
	uint64_t pointer = 0;

	memset(at, 0, (SPEC_MORE_MAX + 1) * sizeof(*at));
	at[0] = one->place.addr;
	for (unsigned i = 0; i < n && at[i] != 0; i++) {
		if (wp_proc_read(one->pid, at[i], &pointer, word_of(one)) !=
		    (ssize_t)word_of(one) || pointer == 0)
			break;
		pointer += one->place.more[i];
		at[i + 1] = is_there(one->pid, pointer) ? pointer : 0;
	}
}

static struct wp_region
pointer_at(const struct followed *one, uint64_t addr)
{
	return (struct wp_region){
		.addr = addr, .len = word_of(one), .access = WP_WRITE,
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
		follow_look(one, one->at);
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

/* Changes are recorded from now on; earlier ones have no record. */
static void
look_again(struct follow *f, pid_t pid)
{
	uint64_t at[SPEC_MORE_MAX + 1];

	for (size_t i = 0; i < f->n; i++) {
		if (f->one[i].pid != pid)
			continue;
		follow_look(&f->one[i], at);
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
			region[k] = pointer_at(one, one->at[k]);
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
	if ((first = run->ops->scout(run, f->scouts, process->pid,
	    (size_t)first, n, cause)) < 0)
		return first;
	if (!run->options->stop)
		look_again(f, process->pid);
	return 0;
}

/* --- moves --- */

bool
follow_is_gone(const struct followed *one)
{
	return one->at[one->place.nmore] == 0 &&
	    !is_there(one->pid, one->at[0]);
}

bool
follow_misses_nothing(const struct followed *one,
    const uint64_t before[SPEC_MORE_MAX + 1])
{
	for (unsigned i = 1; i <= one->place.nmore; i++)
		if (one->at[i] != 0 && one->at[i] != before[i])
			return false;
	return one->at[one->place.nmore] == 0;
}

bool
follow_has_pointer(const struct followed *one, uint64_t addr)
{
	for (unsigned i = 0; i < one->place.nmore; i++)
		if (one->at[i] != 0 && addr < one->at[i] + word_of(one) &&
		    addr + word_of(one) > one->at[i])
			return true;
	return false;
}

bool
follow_any_has_pointer(const struct follow *f, pid_t pid, uint64_t addr)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->one[i].pid == pid &&
		    follow_has_pointer(&f->one[i], addr))
			return true;
	return false;
}

/* An event records each write once, so if this event has a record of the last
   write, another one is of another write. */
static bool
has_recorded(const struct followed *one, uint64_t id)
{
	for (unsigned i = 0; i < one->scouts; i++)
		if (one->scout_id[i] == id)
			return true;
	return false;
}

bool
follow_is_same_write(struct followed *one, const struct wp_sample *sample)
{
	const struct wp_sample *last = &one->write;
	const bool same = one->scouts > 0 && one->scouts < WP_SLOTS_MAX &&
	    last->tid == sample->tid && last->cpu == sample->cpu &&
	    last->ip == sample->ip && last->addr == sample->addr &&
	    !has_recorded(one, sample->id);

	if (!same) {
		one->write = *sample;
		one->scouts = 0;
	}
	one->scout_id[one->scouts++] = sample->id;
	return same;
}

void
follow_say(struct follow *f, const struct move *move)
{
	(void)pthread_mutex_lock(&f->lock);
	if (wp_array_room(&f->move, f->nmoves, &f->moves_cap,
	    sizeof(*f->move)) == 0)
		f->move[f->nmoves++] = *move;
	if (!atomic_exchange(&f->any, true))
		(void)eventfd_write(f->moved, 1);
	(void)pthread_mutex_unlock(&f->lock);
}

bool
follow_move(struct follow *f, struct followed *one,
    const uint64_t at[SPEC_MORE_MAX + 1])
{
	struct run *run = f->run;
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
		follow_say(f, &about);
		good = run->ops->move(run, one->pid, run->target, one->watch,
		    &object) == 0;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct wp_region pointer = pointer_at(one, at[i]);

		if (at[i] != one->at[i] && run->ops->move(run, one->pid,
		    f->scouts, one->scout + i, &pointer) < 0)
			good = false;
	}
	memcpy(one->at, at, sizeof(one->at));
	return good;
}

int
follow_begin(struct follow *f)
{
	return f->run->options->stop ? 0 : follow_thread_begin(f);
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

/* Describe the place to which it is about to move.  Whenever it comes to a
   place, that becomes a new watch of the session, because the place was not
   watched in between. */
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
