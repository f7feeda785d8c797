/* rotate: slots that move over objects wider than the slots. */
#include "follow/rotate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "util/complain.h"

#define TURN	UINT64_C(10000000)	/* least ns between moves */

enum {
	PARTS_MAX = 1 << 16,
	DWELL = 8,		/* turns for which a slot stays after a hit */
	SHARE = 20,		/* moves take at most 1/SHARE of the time */
};

struct rotated_part {
	uint64_t addr, len;
	uint64_t on;		/* ns that it was watched before */
	uint64_t since;		/* ns, watched since then; 0: not watched */
	uint64_t left, last;	/* ns, when its slot left and when it was
				   last hit; 0: never */
	int place;		/* its watch in the session; -1: none before
				   its first hit */
	bool hit;		/* hit since its slot came */
};

struct moving_slot {
	size_t at;		/* index among the process's watches */
	size_t part;
	unsigned turns;		/* turns for which it has been there */
};

/* An object over which slots rotate. */
struct rotated {
	pid_t pid;
	size_t spec;
	struct rotated_part *part;	/* nparts, by address */
	size_t nparts, cap, next;	/* next: the part to be watched next */
	struct moving_slot slot[WP_SLOTS_MAX];
	unsigned nslots;
	bool unseen;		/* others write to it without hits */
	bool failed;		/* a move failed, so the slots stay */
};

struct rotate {
	struct run *run;
	struct rotated *one;	/* n of them */
	size_t n, cap;
	uint64_t began, ended;	/* ns; 0: not yet */
	uint64_t due;		/* time of the next moves, ns */
};

int
rotate_open(struct rotate **out, struct run *run)
{
	struct rotate *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return complain("out of memory");
	r->run = run;
	*out = r;
	return 0;
}

void
rotate_close(struct rotate *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->n; i++)
		free(r->one[i].part);
	free(r->one);
	free(r);
}

/* --- parts --- */

/* Split a region into the longest pieces that fit a slot. */
static int
add_parts(struct rotated *one, const struct wp_region *chunk,
    const struct wp_slot_caps *caps)
{
	const struct wp_slot_caps any = {WP_SLOTS_MAX, caps->range};
	struct wp_slot slot[WP_SLOTS_MAX];
	const int n = wp_slot_plan(chunk, &any, slot, NULL);

	for (int i = 0; i < n; i++) {
		if (wp_array_room(&one->part, one->nparts, &one->cap,
		    sizeof(*one->part)) < 0)
			return -ENOMEM;
		one->part[one->nparts++] = (struct rotated_part){
			.addr = slot[i].addr, .len = slot[i].len, .place = -1,
		};
	}
	return n < 0 ? n : 0;
}

/* Split a region into parts.  Returns 0 or -errno with a cause. */
static int
cut(struct rotated *one, const struct wp_region *region,
    const struct wp_slot_caps *caps, struct wp_cause *cause)
{
	const uint64_t end = region->addr + region->len;
	struct wp_region chunk = *region;
	int err = 0;

	for (; chunk.addr < end && err == 0; chunk.addr += chunk.len) {
		chunk.len = caps->range - chunk.addr % caps->range;
		if (chunk.len > end - chunk.addr)
			chunk.len = end - chunk.addr;
		err = add_parts(one, &chunk, caps);
	}
	return err < 0 ? wp_cause_set(cause, WP_CAUSE_NO_MEMORY) : 0;
}

/* The least number of parts of a region. */
static uint64_t
parts_of(const struct wp_region *region, const struct wp_slot_caps *caps)
{
	struct wp_slot slot[WP_SLOTS_MAX];
	const struct wp_slot_caps any = {WP_SLOTS_MAX, caps->range};
	const int n = wp_slot_plan(region, &any, slot, NULL);

	return n >= 0 ? (uint64_t)n : region->len / caps->range + 1;
}

/* --- slots --- */

/* Each SPEC gets as many slots as it needs, or an equal share of those that the
   others leave.  Returns false if there are more SPECs than slots. */
static bool
share_slots(const struct wp_region *regions, size_t n,
    const struct wp_slot_caps *caps, unsigned slots[WP_SLOTS_MAX])
{
	unsigned left = caps->slots < WP_SLOTS_MAX ? caps->slots : WP_SLOTS_MAX;
	size_t open = n;
	bool any = true;

	if (n > left)
		return false;
	memset(slots, 0, WP_SLOTS_MAX * sizeof(*slots));
	while (any) {
		any = false;
		for (size_t i = 0; i < n; i++) {
			const uint64_t takes = parts_of(&regions[i], caps);

			if (slots[i] != 0 || open == 0 || takes > left / open)
				continue;
			slots[i] = (unsigned)takes;
			left -= slots[i];
			open--;
			any = open > 0;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (slots[i] == 0 && open > 0) {
			slots[i] = (unsigned)(left / open);
			left -= slots[i];
			open--;
		}
	return true;
}

static size_t
any_part(size_t n)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = wp_clock_ns() / 1000;
	return n == 0 ? 0 : (size_t)(number % n);
}

static int
add_rotated(struct rotate *r, struct process *process, size_t spec,
    unsigned slots, struct wp_region *regions, size_t *n,
    struct wp_cause *cause)
{
	const struct wp_slot_caps *caps = &r->run->features.caps;
	const struct wp_region whole = regions[spec];
	struct rotated *one;
	int err;

	if (whole.len / caps->range >= PARTS_MAX)
		return wp_cause_set(cause, WP_CAUSE_TOO_WIDE,
		    (unsigned long long)whole.len,
		    (unsigned long long)(PARTS_MAX - 1) * caps->range);
	if (WP_ARRAY_ROOM(r, one) < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	one = &r->one[r->n++];
	*one = (struct rotated){
		.pid = process->pid, .spec = spec, .nslots = slots,
	};
	if ((err = cut(one, &whole, caps, cause)) < 0)
		return err;
	one->next = any_part(one->nparts);
	for (unsigned k = 0; k < slots; k++) {
		const struct rotated_part *part = &one->part[one->next];
		struct moving_slot *slot = &one->slot[k];

		slot->at = k == 0 ? spec : (*n)++;
		slot->part = one->next;
		process->spec[slot->at] = spec;
		regions[slot->at] = (struct wp_region){
			part->addr, part->len, whole.access,
		};
		one->next = (one->next + 1) % one->nparts;
	}
	process->place[spec].rotates = true;
	process->rotates = true;
	return 0;
}

int
rotate_plan(struct rotate *r, struct process *process,
    struct wp_region *regions, size_t *n, struct wp_cause *cause)
{
	const size_t nspecs = *n;
	unsigned slots[WP_SLOTS_MAX];
	int err = 0;

	if (r == NULL)
		return 0;
	if (!share_slots(regions, nspecs, &r->run->features.caps, slots))
		return wp_cause_set(cause, WP_CAUSE_TOO_MANY, (unsigned)nspecs,
		    r->run->features.caps.slots);
	for (size_t i = 0; i < nspecs; i++)
		process->spec[i] = i;
	for (size_t i = 0; i < nspecs && err == 0; i++)
		if (parts_of(&regions[i], &r->run->features.caps) > slots[i] &&
		    (err = wp_slot_check(&regions[i], cause)) == 0)
			err = add_rotated(r, process, i, slots[i], regions, n,
			    cause);
	return err;
}

/* --- moves --- */

/* Returns NULL if the process was left out. */
static const struct process *
process_of(const struct rotate *r, const struct rotated *one)
{
	for (size_t i = 0; i < r->run->nprocesses; i++)
		if (r->run->process[i].pid == one->pid &&
		    r->run->process[i].n > 0)
			return &r->run->process[i];
	return NULL;
}

/* Note that a part is no longer watched. */
static void
leave(struct rotated_part *part, uint64_t now)
{
	if (part->since != 0)
		part->on += now - part->since;
	part->since = 0;
}

static void
move(struct rotate *r, struct rotated *one, size_t watch,
    struct moving_slot *slot)
{
	struct run *run = r->run;
	struct rotated_part *from = &one->part[slot->part], *to =
	    &one->part[one->next];
	const struct wp_region region = {
		to->addr, to->len, run->options->spec[one->spec].access,
	};

	leave(from, wp_clock_ns());
	if (run->ops->move(run, one->pid, run->target, watch, &region) < 0) {
		session_warn(&run->session, "the slots of %s could not be "
		    "moved: the kernel refused",
		    run->options->spec[one->spec].text);
		session_doubt(&run->session, "the slots of %s could not be "
		    "moved", run->options->spec[one->spec].text);
		one->failed = true;
		return;
	}
	from->left = to->since = wp_clock_ns();
	slot->part = one->next;
	slot->turns = 0;
}

/* Move the slots that have been at their place long enough. */
static void
turn(struct rotate *r, struct rotated *one, const struct process *process)
{
	for (unsigned k = 0; k < one->nslots && !one->failed; k++) {
		struct moving_slot *slot = &one->slot[k];
		struct rotated_part *part = &one->part[slot->part];

		if (part->hit && ++slot->turns < DWELL)
			continue;
		part->hit = false;
		while (one->part[one->next].since != 0)
			one->next = (one->next + 1) % one->nparts;
		move(r, one, process->first + slot->at, slot);
	}
}

/* Set the time of the next moves, according to how long those took that started
   at `began'. */
static void
set_due(struct rotate *r, uint64_t began)
{
	const uint64_t now = wp_clock_ns(), pause = (now - began) * SHARE;

	r->due = now + (pause > TURN ? pause : TURN);
	r->run->wake = r->due;
}

bool
rotate_is_due(const struct rotate *r)
{
	return r != NULL && r->n > 0 && r->due != 0 &&
	    wp_clock_ns() >= r->due;
}

void
rotate_held(struct rotate *r, pid_t pid)
{
	const uint64_t began = wp_clock_ns();

	for (size_t i = 0; r != NULL && i < r->n; i++) {
		const struct process *process = process_of(r, &r->one[i]);

		if (process != NULL && !process->disarmed &&
		    (pid == 0 || r->one[i].pid == pid))
			turn(r, &r->one[i], process);
	}
	if (r != NULL)
		set_due(r, began);
}

void
rotate_turn(struct rotate *r)
{
	if (rotate_is_due(r))
		rotate_held(r, 0);
}

void
rotate_begin(struct rotate *r)
{
	if (r == NULL)
		return;
	r->began = wp_clock_ns();
	for (size_t i = 0; i < r->n; i++) {
		struct rotated *one = &r->one[i];
		const uint64_t first = one->part[0].addr;
		const struct rotated_part *last = &one->part[one->nparts - 1];

		for (unsigned k = 0; k < one->nslots; k++)
			one->part[one->slot[k].part].since = r->began;
		one->unseen = !initial_writes_hit(r->run, one->pid, first,
		    last->addr + last->len - first);
	}
	set_due(r, r->began);
}

void
rotate_end(struct rotate *r)
{
	if (r == NULL || r->ended != 0)
		return;
	r->ended = wp_clock_ns();
	r->due = r->run->wake = 0;
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < r->one[i].nparts; k++)
			leave(&r->one[i].part[k], r->ended);
}

/* --- hits --- */

/* The object of a session's watch. */
static struct rotated *
rotated_of(const struct rotate *r, const struct ex_watch *watch)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct process *process = process_of(r, &r->one[i]);

		if (process != NULL && run_watch(r->run, process->first +
		    r->one[i].spec) == (watch->whole != NULL ? watch->whole :
		    watch))
			return &r->one[i];
	}
	return NULL;
}

static struct rotated_part *
part_at(const struct rotated *one, uint64_t addr)
{
	size_t from = 0, to = one->nparts;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (one->part[middle].addr <= addr)
			from = middle + 1;
		else
			to = middle;
	}
	return from > 0 && one->part[from - 1].addr == addr ?
	    &one->part[from - 1] : NULL;
}

/* Describe a part when it is hit for the first time. */
static void
describe(struct rotate *r, const struct rotated *one, struct rotated_part *part)
{
	struct run *run = r->run;
	struct session *s = &run->session;
	const struct process *process = process_of(r, one);
	const size_t w = process->first + one->spec;
	const struct ex_watch *whole = run_watch(run, w);
	size_t n;
	struct wp_slot slot = wp_target_watches(run->target, &n)[w].slot[0];
	int err;

	slot.addr = part->addr;
	slot.len = part->len;
	session_of_process(s, ex_watch_number(whole), whole->pid, whole->comm);
	session_pending(s, false);
	session_part(s, whole->id);
	err = session_add_watch(s, whole->spec, whole->symbol, part->addr,
	    part->len, whole->access, 1);
	session_part(s, 0);
	if (err == 0)
		err = run_describe_place(run, (int)s->nwatches - 1, w, &slot);
	if (err < 0) {
		session_note(s, err);
		return;
	}
	part->place = (int)s->nwatches - 1;
	if (one->unseen)
		session_unseen(s, s->watches[part->place]);
}

void
rotate_take(struct rotate *r, const struct ex_record *record)
{
	struct session *s;
	struct rotated *one;
	struct rotated_part *part;

	if (r == NULL || r->n == 0)
		return;
	s = &r->run->session;
	if (!session_is_sample(s, record) || (one = rotated_of(r,
	    s->slots[record->attr].watch)) == NULL ||
	    (part = part_at(one, record->sample.addr)) == NULL)
		return;
	if (part->place < 0)
		describe(r, one, part);
	else if (part->left >= part->last)
		session_missed(s, s->watches[part->place]);
	part->hit = true;
	if (record->time > part->last)
		part->last = record->time;
}

/* --- the account --- */

/* Account for an object that had a slot for each part. */
static void
account_whole(const struct rotate *r, size_t w, uint64_t all,
    struct coverage *c)
{
	const struct ex_watch *watch = run_watch(r->run, w);

	*c = (struct coverage){
		.watch = watch->id - 1, .place = (int)watch->id - 1,
		.addr = watch->addr, .len = watch->len, .on = all, .all = all,
	};
}

static size_t
account_parts(const struct rotate *r, const struct rotated *one, size_t w,
    uint64_t all, struct coverage *c)
{
	for (size_t k = 0; k < one->nparts; k++) {
		const struct rotated_part *part = &one->part[k];

		c[k] = (struct coverage){
			.watch = run_watch(r->run, w)->id - 1,
			.place = part->place, .addr = part->addr,
			.len = part->len, .on = part->on, .all = all,
		};
	}
	return one->nparts;
}

static const struct rotated *
rotated_spec(const struct rotate *r, const struct process *process, size_t spec)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->one[i].pid == process->pid && r->one[i].spec == spec)
			return &r->one[i];
	return NULL;
}

int
rotate_account(struct rotate *r)
{
	struct run *run = r->run;
	const size_t nspecs = run->options->nspecs;
	const uint64_t all = r->ended - r->began;
	size_t n = 0, room = run->nprocesses * nspecs;
	struct coverage *coverage;
	int err;

	for (size_t i = 0; i < r->n; i++)
		room += r->one[i].nparts;
	if ((coverage = calloc(room + 1, sizeof(*coverage))) == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->nprocesses; i++) {
		const struct process *process = &run->process[i];

		for (size_t k = 0; k < nspecs && process->n > 0; k++) {
			const struct rotated *one = rotated_spec(r, process, k);

			if (one == NULL)
				account_whole(r, process->first + k, all,
				    &coverage[n++]);
			else
				n += account_parts(r, one, process->first + k,
				    all, &coverage[n]);
		}
	}
	err = session_coverage(&run->session, coverage, n);
	free(coverage);
	return err;
}
