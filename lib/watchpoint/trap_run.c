/*
 * trap_run: the watches that a run of the signal handler has in use.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "trap_run.h"

struct wp_watch *
wp_watch_enter(unsigned index, uint32_t serial, uint32_t mask)
{
	struct wp_watch *w;
	uint32_t now;

	if (index >= WP_WATCHES_MAX)
		return NULL;
	w = &wp_inside.watch[index];
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

unsigned
wp_watch_index(const struct wp_watch *w)
{
	return (unsigned)(w - wp_inside.watch);
}

int
wp_watch_slot_of(const struct wp_watch *w, int fd)
{
	size_t n = atomic_load(&w->narmed);

	for (size_t i = 0; i < n; i++)
		if (w->armed[i].fd == fd)
			return w->armed[i].slot;
	return -1;
}

struct wp_region
wp_told_place(const struct wp_told *told)
{
	const struct wp_watch *w = told->watch;

	return told->slot < w->nslots ? (struct wp_region){
		.addr = w->slot[told->slot].addr,
		.len = w->slot[told->slot].len,
	} : w->region;
}

bool
wp_run_tells(const struct wp_run *run, const struct wp_watch *w)
{
	for (unsigned i = 0; i < run->n; i++)
		if (run->told[i].watch == w)
			return true;
	return false;
}

void
wp_run_tell(struct wp_run *run, struct wp_watch *w, unsigned slot)
{
	if (w == NULL)
		return;
	if (run->n == WP_TOLD_MAX || wp_run_tells(run, w)) {
		wp_watch_leave(w);
		return;
	}
	run->told[run->n++] = (struct wp_told){
		.watch = w, .serial = atomic_load(&w->serial),
		.slot = slot < w->nslots ? slot :
		    w->nslots == 1 ? 0 : WP_SIG_MANY,
	};
}

void
wp_run_drop(struct wp_run *run, enum wp_steps steps)
{
	for (; run->n > 0; run->n--) {
		struct wp_watch *w = run->told[run->n - 1].watch;

		wp_account(w, steps);
		wp_account_silent(w);
		wp_watch_leave(w);
	}
}
