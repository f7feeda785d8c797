/*
 * trap_run: the watches that a run of the signal handler has in use.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "handler/trap_run.h"
#include "os/libc.h"

struct wp_state wp_state = {.output = 2};

struct wp_watch *
wp_watch_enter(unsigned index, uint32_t serial, uint32_t mask)
{
	struct wp_watch *w;
	uint32_t now;

	if (index >= WP_WATCHES_MAX)
		return NULL;
	w = &wp_state.watch[index];
	(void)atomic_fetch_add(&w->users, 1);
	now = atomic_load(&w->serial);
	if (now != 0 && ((now ^ serial) & mask) == 0)
		return w;
	(void)atomic_fetch_sub(&w->users, 1);
	return NULL;
}

void
wp_watch_leave(struct wp_watch *w)
{
	(void)atomic_fetch_sub(&w->users, 1);
}

struct wp_watch *
wp_watch_next(struct wp_watch_walk *walk)
{
	struct wp_watch *w = NULL;

	while (w == NULL && walk->left > 0 && walk->at < WP_WATCHES_MAX) {
		const unsigned i = walk->at++;

		if (atomic_load(&wp_state.watch[i].serial) == 0)
			continue;
		walk->left--;
		w = wp_watch_enter(i, 0, 0);
	}
	return w;
}

bool
wp_watch_has(const struct wp_watch *w, int fd)
{
	size_t n = atomic_load(&w->narmed);

	for (size_t i = 0; i < n; i++)
		if (w->armed[i].fd == fd)
			return true;
	return false;
}

struct wp_region
wp_match_fired(const struct wp_match *match)
{
	const struct wp_watch *w = match->watch;

	return match->fired < w->nslots ? (struct wp_region){
		.addr = w->slot[match->fired].addr,
		.len = w->slot[match->fired].len,
	} : w->region;
}

struct wp_region
wp_match_place(const struct wp_match *match)
{
	const struct wp_watch *w = match->watch;
	const struct wp_slot *first, *last;

	if (match->slots == 0)
		return wp_match_fired(match);
	first = &w->slot[__builtin_ctz(match->slots)];
	last = &w->slot[31 - __builtin_clz(match->slots)];
	return (struct wp_region){
		.addr = first->addr,
		.len = last->addr + last->len - first->addr,
	};
}

static struct wp_match *
find(struct wp_run *run, const struct wp_watch *w)
{
	for (unsigned i = 0; i < run->n; i++)
		if (run->match[i].watch == w)
			return &run->match[i];
	return NULL;
}

bool
wp_run_has(struct wp_run *run, const struct wp_watch *w)
{
	return find(run, w) != NULL;
}

/* A slot that the watch does not have belongs to an earlier watch with the same
   index. */
void
wp_run_add(struct wp_run *run, struct wp_watch *w, uint32_t slots,
    uint64_t times)
{
	struct wp_match *match;

	if (w == NULL)
		return;
	slots = w->nslots == 1 ? 1 : slots >> w->nslots != 0 ? 0 : slots;
	if ((match = find(run, w)) != NULL && match->slots != 0)
		match->slots = slots == 0 ? 0 : match->slots | slots;
	if (match != NULL || run->n == WP_MATCH_MAX) {
		wp_watch_leave(w);
		return;
	}
	run->match[run->n++] = (struct wp_match){
		.watch = w, .serial = atomic_load(&w->serial), .slots = slots,
		.fired = slots == 0 ? WP_SIG_MANY :
		    (unsigned)__builtin_ctz(slots),
		.times = times,
	};
}

/* With other threads, some of what is accounted for may be theirs, so `times'
   remains unknown. */
uint32_t
wp_match_account(struct wp_match *match, enum wp_steps steps)
{
	const uint64_t before = wp_accounted(match->watch);
	uint32_t slots;

	if (match->times != 0) {
		wp_account_times(match->watch, match->times);
		return match->slots;
	}
	slots = wp_account(match->watch, steps);
	if (wp_libc_alone())
		match->times = wp_accounted(match->watch) - before;
	return slots;
}

void
wp_run_drop(struct wp_run *run, enum wp_steps steps)
{
	for (; run->n > 0; run->n--) {
		struct wp_match *match = &run->match[run->n - 1];

		(void)wp_match_account(match, steps);
		wp_account_suppressed(match->watch);
		wp_watch_leave(match->watch);
	}
}
