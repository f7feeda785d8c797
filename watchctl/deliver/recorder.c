/*
 * recorder: the newest hits, as records.
 *
 * Which hit each record is a sample of is in a ring of numbers, beside the
 * records themselves:
 *
 *	in the drain   [ mapped ] [ sample ] [ sample ] [ sample ] [ sample ]
 *	number            NONE        7          8          7          9
 *	                   ^ next to go                    oldest = 8: so hit 7
 *	                                                   is not reported
 */
#include "deliver/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "hit/sample_group.h"
#include "run/trap_before.h"

enum { LISTS = 256 };		/* lists of open hits, by tid modulo this */

/* In place of a hit's number: not a sample, and not decoded. */
#define NONE	UINT64_MAX
#define UNKNOWN	(UINT64_MAX - 1)

/* A hit that may get more samples. */
struct open_hit {
	struct open_hit *next;
	struct ex_sample_group access;
	const struct ex_watch *watch;
	pid_t tid;
	uint64_t number;
};

struct recorder {
	struct wp_drain *drain;
	uint64_t most;			/* hits */
	size_t room;			/* bytes */
	uint64_t *number;		/* cap of them, a power of two; */
	size_t from, n, cap;	/* n are in use, from `from' on, modulo cap */
	size_t bytes;			/* of the records kept */
	uint64_t newest, oldest;	/* numbers of the hits that are kept */
	uint64_t left_hits, left_samples;	/* not kept, since
						   hits were released */
	bool released;			/* hits were released before */
	bool full;		/* fewer hits were kept because room ran out */
	struct open_hit *open[LISTS];
};

struct recorder *
recorder_new(struct wp_drain *drain, uint64_t hits, size_t bytes)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->drain = drain;
	r->most = hits;
	r->room = bytes;
	r->oldest = 1;
	return r;
}

void
recorder_free(struct recorder *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < LISTS; i++)
		while (r->open[i] != NULL) {
			struct open_hit *open = r->open[i];

			r->open[i] = open->next;
			free(open);
		}
	free(r->number);
	free(r);
}

static bool
grow(struct recorder *r)
{
	const size_t cap = r->cap == 0 ? 1024 : 2 * r->cap;
	uint64_t *number = malloc(cap * sizeof(*number));

	if (number == NULL)
		return false;
	for (size_t i = 0; i < r->n; i++)
		number[i] = r->number[(r->from + i) & (r->cap - 1)];
	free(r->number);
	r->number = number;
	r->from = 0;
	r->cap = cap;
	return true;
}

static bool
push(struct recorder *r, const struct perf_event_header *header,
    uint64_t number)
{
	if (r->n == r->cap && !grow(r))
		return false;
	r->number[(r->from + r->n++) & (r->cap - 1)] = number;
	r->bytes += header->size;
	return true;
}

/* --- which hit it is --- */

/* Close hits that get no more samples, including those of other threads. */
static void
close_old(struct open_hit **link, uint64_t now)
{
	struct open_hit *open;

	while ((open = *link) != NULL) {
		if (!ex_group_over(&open->access, now)) {
			link = &open->next;
			continue;
		}
		*link = open->next;
		free(open);
	}
}

/* Returns the open hit that a sample belongs to, or NULL.  As in explain.c,
   hits that the sample shows to be complete are closed. */
static struct open_hit *
open_hit_of(struct recorder *r, const struct ex_slot *slot,
    const struct ex_record *record)
{
	struct open_hit **link = &r->open[(unsigned)record->tid % LISTS];
	struct open_hit *open, *found = NULL;

	close_old(link, record->time);
	while ((open = *link) != NULL) {
		const bool mine = open->tid == record->tid;
		const bool same = mine && open->watch == slot->watch;

		if (mine && !ex_group_goes_on(&open->access, record, same,
		    slot->addr, slot->len)) {
			*link = open->next;
			free(open);
			continue;
		}
		if (same)
			found = open;
		link = &open->next;
	}
	return found;
}

/* If there is no memory, the next sample counts as another hit, so one hit
   fewer is kept. */
static void
open_new(struct recorder *r, const struct ex_slot *slot,
    const struct ex_record *record)
{
	struct open_hit **link = &r->open[(unsigned)record->tid % LISTS];
	struct open_hit *open;

	if ((!ex_group_kernel(record) && slot->watch->slots == 1) ||
	    (open = malloc(sizeof(*open))) == NULL)
		return;
	*open = (struct open_hit){
		.next = *link, .watch = slot->watch, .tid = record->tid,
		.number = r->newest,
	};
	ex_group_begin(&open->access, record, slot->addr, slot->len);
	*link = open;
}

static uint64_t
number_of(struct recorder *r, const struct session *s,
    const struct ex_record *record)
{
	const struct ex_slot *slot = &s->slots[record->attr];
	const struct open_hit *open;

	if (slot->watch->access != WP_WRITE && ex_group_recording(record))
		return r->newest;
	if ((open = open_hit_of(r, slot, record)) != NULL)
		return open->number;
	r->newest++;
	open_new(r, slot, record);
	return r->newest;
}

/* --- discarded records --- */

/* Remove the oldest record.  It goes to the session if it belongs to no hit, or
   to one that is kept. */
static bool
take_first(struct recorder *r, struct run *run)
{
	const struct perf_event_header *header = wp_drain_next(r->drain);
	const uint64_t number = r->number[r->from];
	struct ex_record record;

	r->from = (r->from + 1) & (r->cap - 1);
	r->n--;
	r->bytes -= header->size;
	if (number < UNKNOWN && number < r->oldest) {
		r->left_samples++;
		return true;
	}
	return number == UNKNOWN || !run_decode(run, header, &record) ||
	    trap_before_record(run, &record);
}

/* Whether the first record need not be kept. */
static bool
is_first_free(const struct recorder *r)
{
	const uint64_t number = r->n == 0 ? 0 : r->number[r->from];

	return r->n > 0 && (number >= UNKNOWN || number < r->oldest);
}

static bool
let_go(struct recorder *r, struct run *run)
{
	do {
		while (r->oldest <= r->newest &&
		    (r->newest - r->oldest >= r->most ||
		    (r->bytes > r->room && !is_first_free(r)))) {
			r->full |= r->newest - r->oldest < r->most;
			r->oldest++;
			r->left_hits++;
		}
		while (is_first_free(r))
			if (!take_first(r, run))
				return false;
	} while (r->bytes > r->room);
	return true;
}

/* --- the verbs --- */

/* Records of mappings and new processes, which explainers may be asked
   about. */
static bool
is_foreseen(const struct ex_record *record)
{
	return record->type == PERF_RECORD_MMAP ||
	    record->type == PERF_RECORD_MMAP2 ||
	    record->type == PERF_RECORD_FORK;
}

bool
recorder_pass(struct recorder *r, const struct perf_event_header *header)
{
	return push(r, header, UNKNOWN);
}

bool
recorder_keep(struct recorder *r, struct run *run,
    const struct perf_event_header *header, const struct ex_record *record)
{
	struct session *s = &run->session;
	const bool sample = session_is_sample(s, record);

	if (!push(r, header, sample ? number_of(r, s, record) : NONE)) {
		session_note(s, -ENOMEM);
		return false;
	}
	if (!let_go(r, run))
		return false;
	if (r->n > 0 && is_foreseen(record))
		session_foresee(s, record);
	return true;
}

static void
leave_out(struct recorder *r, struct session *s)
{
	session_left_out(s, r->left_hits, r->left_samples);
	r->left_hits = r->left_samples = 0;
}

static void
warn_full(struct recorder *r, struct session *s)
{
	if (r->full && r->newest - r->oldest + 1 < r->most)
		session_warn(s, "--last %" PRIu64 ": so many hits did not fit "
		    "into the memory of --buffer, and fewer were kept",
		    r->most);
	r->full = false;
}

bool
recorder_has_hits(const struct recorder *r)
{
	return r->newest >= r->oldest;
}

bool
recorder_is_due(const struct recorder *r)
{
	return !r->released || recorder_has_hits(r);
}

bool
recorder_release(struct recorder *r, struct run *run)
{
	struct session *s = &run->session;
	bool more = true;

	leave_out(r, s);
	warn_full(r, s);
	while (more && r->n > 0)
		more = take_first(r, run);
	leave_out(r, s);
	r->oldest = r->newest + 1;
	r->released = true;
	return more;
}
