/*
 * trap_run: the watches that a run of the signal handler has in use.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "handler/trap_run.h"

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
wp_match_fired(const struct wp_match *told)
{
	const struct wp_watch *w = told->watch;

	return told->fired < w->nslots ? (struct wp_region){
		.addr = w->slot[told->fired].addr,
		.len = w->slot[told->fired].len,
	} : w->region;
}

struct wp_region
wp_match_place(const struct wp_match *told)
{
	const struct wp_watch *w = told->watch;
	const struct wp_slot *first, *last;

	if (told->slots == 0)
		return wp_match_fired(told);
	first = &w->slot[__builtin_ctz(told->slots)];
	last = &w->slot[31 - __builtin_clz(told->slots)];
	return (struct wp_region){
		.addr = first->addr,
		.len = last->addr + last->len - first->addr,
	};
}

static struct wp_match *
find(struct wp_run *run, const struct wp_watch *w)
{
	for (unsigned i = 0; i < run->n; i++)
		if (run->told[i].watch == w)
			return &run->told[i];
	return NULL;
}

bool
wp_run_tells(struct wp_run *run, const struct wp_watch *w)
{
	return find(run, w) != NULL;
}

/* Slots that a watch does not have are of one that was there before. */
void
wp_run_tell(struct wp_run *run, struct wp_watch *w, uint32_t slots,
    uint64_t times)
{
	struct wp_match *told;

	if (w == NULL)
		return;
	slots = w->nslots == 1 ? 1 : slots >> w->nslots != 0 ? 0 : slots;
	if ((told = find(run, w)) != NULL && told->slots != 0)
		told->slots = slots == 0 ? 0 : told->slots | slots;
	if (told != NULL || run->n == WP_MATCH_MAX) {
		wp_watch_leave(w);
		return;
	}
	run->told[run->n++] = (struct wp_match){
		.watch = w, .serial = atomic_load(&w->serial), .slots = slots,
		.fired = slots == 0 ? WP_SIG_MANY :
		    (unsigned)__builtin_ctz(slots),
		.times = times,
	};
}

uint32_t
wp_match_account(const struct wp_match *told, enum wp_steps steps)
{
	if (told->times == 0)
		return wp_account(told->watch, steps);
	wp_account_times(told->watch, told->times);
	return told->slots;
}

void
wp_run_drop(struct wp_run *run, enum wp_steps steps)
{
	for (; run->n > 0; run->n--) {
		const struct wp_match *told = &run->told[run->n - 1];

		(void)wp_match_account(told, steps);
		wp_account_silent(told->watch);
		wp_watch_leave(told->watch);
	}
}
