/*
 * instances: the instances of a thread-local variable, one for each thread.
 *
 * All are watched by one watch, and each that is hit becomes a part of it, with
 * a value of its own.  Threads are armed by who traces them, which may be
 * another thread than the one that reports: what they say is kept until that
 * one takes it, which it does before it takes a hit of theirs.
 */
#include "pending/instances.h"

#include <errno.h>
#include <stdlib.h>

#include "os/array.h"
#include "os/clock.h"
#include "run/run.h"

/* --- as they are hit --- */

/* glibc aligns thread control blocks to this, so instances are aligned alike */
enum { BLOCK_ALIGNMENT = 64 };

/* The address of the instance that contains this slot's event. */
static uint64_t
instance_at(const struct wp_watched *watched, uint64_t addr, unsigned *slot)
{
	for (*slot = 0; *slot < watched->nslots; ++*slot) {
		const uint64_t start = addr - (watched->slot[*slot].addr -
		    watched->region.addr);

		if ((start - watched->region.addr) % BLOCK_ALIGNMENT == 0)
			return start;
	}
	return 0;
}

static struct instance *
find_known(struct instances *known, unsigned whole, uint64_t addr)
{
	for (size_t i = known->n; i > 0; i--)
		if (known->at[i - 1].addr == addr &&
		    known->at[i - 1].whole == whole)
			return &known->at[i - 1];
	return NULL;
}

/* Add the instance, when it is first hit, as a part of the session's watch.
   Others may write to it without a hit. */
static struct instance *
describe(struct run *run, const struct ex_watch *whole, size_t w, uint64_t addr)
{
	struct session *s = &run->session;
	size_t n;
	const struct wp_watched *watched =
	    &wp_target_watches(run->target, &n)[w];
	int err = WP_ARRAY_ROOM(&run->instances, at);

	session_of_process(s, ex_watch_number(whole), whole->pid, whole->comm);
	session_pending(s, false);
	session_local(s, false, watched->block + addr - watched->region.addr);
	session_part(s, whole->id);
	if (err == 0)
		err = session_add_watch(s, whole->spec, whole->symbol, addr,
		    whole->len, whole->access, watched->nslots);
	session_part(s, 0);
	for (unsigned i = 0; i < watched->nslots && err == 0; i++) {
		struct wp_slot slot = watched->slot[i];

		slot.addr += addr - watched->region.addr;
		err = run_describe_place(run, (int)s->nwatches - 1, w, &slot);
	}
	session_note(s, err);
	if (err < 0)
		return NULL;
	session_unseen(s, s->watches[s->nwatches - 1]);
	run->instances.at[run->instances.n] = (struct instance){
		.whole = whole->id, .addr = addr,
	};
	return &run->instances.at[run->instances.n++];
}

void
instances_take(struct run *run, const struct ex_record *record)
{
	struct session *s = &run->session;
	const struct ex_watch *whole;
	const struct wp_watched *watched;
	uint64_t addr;
	unsigned slot;
	size_t w, n;

	if (!session_is_sample(s, record) ||
	    !(whole = s->slots[record->attr].watch)->local)
		return;
	w = (size_t)run_target_index(run, whole->id - 1);
	watched = &wp_target_watches(run->target, &n)[w];
	addr = instance_at(watched, record->sample.addr, &slot);
	if (addr != 0 && find_known(&run->instances, whole->id, addr) == NULL)
		(void)describe(run, whole, w, addr);
}

/* --- messages about threads --- */

static void
say(struct run *run, const struct instances_said *said)
{
	struct instances *all = &run->instances;

	(void)pthread_mutex_lock(&all->lock);
	if (wp_array_room(&all->said, all->nsaid, &all->said_cap,
	    sizeof(*all->said)) == 0)
		all->said[all->nsaid++] = *said;
	else
		all->starved = true;
	(void)pthread_mutex_unlock(&all->lock);
	atomic_store(&all->any, true);
}

void
instances_armed(struct run *run, pid_t pid, pid_t tid,
    const struct wp_target_event *event, int n)
{
	struct instances_said said = {
		.time = wp_clock_ns(), .pid = pid, .tid = tid,
	};

	for (int i = 0; i < n; i++) {
		said.event = event[i];
		say(run, &said);
	}
}

void
instances_left(struct run *run, pid_t pid, pid_t tid, size_t first, size_t n)
{
	struct instances_said said = {
		.time = wp_clock_ns(), .pid = pid, .tid = tid, .left = true,
	};

	for (size_t w = first; w < first + n; w++) {
		said.event.watch = w;
		say(run, &said);
	}
}

/* The index of the event format of a watch's slot; nslots if it has none. */
static size_t
format_of(const struct session *s, const struct ex_watch *watch, unsigned slot)
{
	size_t i = 0;

	while (i < s->nslots && (s->slots[i].watch != watch || slot-- > 0))
		i++;
	return i;
}

/* Note that records with these ids belong to the watch. */
static void
take_ids(struct run *run, const struct ex_watch *watch, unsigned slot,
    const uint64_t *ids, size_t n)
{
	struct session *s = &run->session;
	const size_t format = format_of(s, watch, slot);

	if (format == s->nslots)
		return;
	session_note(s, ex_formats_ids(run->formats, (int)format, ids, n));
	session_ids(s, format, ids, n);
}

void
instances_learn(struct run *run)
{
	size_t nwatches;
	const struct wp_watched *watched = wp_target_watches(run->target,
	    &nwatches);

	for (size_t w = 0; w < run->ndescribed; w++) {
		for (unsigned i = 0; run->described[w] != SIZE_MAX &&
		    i < watched[w].nslots; i++) {
			struct perf_event_attr attr;
			uint64_t *ids = NULL;
			const int n = wp_target_slot_ids(run->target, w, i,
			    &attr, &ids);

			if (n < 0)
				session_note(&run->session, n);
			else
				take_ids(run, run_watch(run, w), i, ids,
				    (size_t)n);
			free(ids);
		}
	}
}

/* A slot has an event on each of several processors; one of them is enough. */
static bool
is_again(const struct instances_said *said, const struct instances_said *last)
{
	return last != NULL && last->tid == said->tid &&
	    last->left == said->left && last->event.watch == said->event.watch;
}

static void
report(struct run *run, const struct instances_said *said,
    const struct instances_said *last)
{
	const struct ex_watch *watch = run_watch(run, said->event.watch);

	if (!said->left)
		take_ids(run, watch, said->event.slot, &said->event.id, 1);
	if (!watch->local || is_again(said, last))
		return;
	session_event(&run->session, &(struct watch_event){
		.what = said->left ? WATCH_DISARMED : WATCH_ARMED,
		.watch = watch->id - 1, .time = said->time,
		.pid = said->pid, .tid = said->tid, .gap = WATCH_NO_GAP,
		.addr = said->left ? 0 : said->event.addr,
		.len = said->left ? 0 : watch->len,
	});
}

static void
report_starved(struct run *run)
{
	session_note(&run->session, -ENOMEM);
	session_doubt(&run->session, "a thread may not have been watched");
}

void
instances_report(struct run *run)
{
	struct instances *all = &run->instances;
	struct instances_said *said;
	size_t n;

	if (!run->session.started || !atomic_exchange(&all->any, false))
		return;
	(void)pthread_mutex_lock(&all->lock);
	said = all->said;
	n = all->nsaid;
	all->said = NULL;
	all->nsaid = all->said_cap = 0;
	(void)pthread_mutex_unlock(&all->lock);
	for (size_t i = 0; i < n; i++)
		report(run, &said[i], i > 0 ? &said[i - 1] : NULL);
	free(said);
	if (all->starved)
		report_starved(run);
}

void
instances_free(struct run *run)
{
	free(run->instances.at);
	free(run->instances.said);
	(void)pthread_mutex_destroy(&run->instances.lock);
}
