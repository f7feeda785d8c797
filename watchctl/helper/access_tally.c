/* access_tally: counts the accesses of hits. */
#include "helper/access_tally.h"

#include <signal.h>

void
access_tally_add(struct access_tally *t, const struct wp_cell_watch *w,
    unsigned times)
{
	const unsigned i = w->index % WP_WATCHES_MAX;

	if (t->of[i].serial != w->serial) {
		t->of[i].serial = w->serial;
		t->of[i].reached = 0;
	}
	t->of[i].reached += times;
}

/* Accesses that were dropped, or handled without a cell, have not been
   explained.  Of the signals, only SIGTRAP can stand for several accesses. */
bool
access_tally_missed(const struct access_tally *t,
    const struct wp_channel *channel,
    unsigned i, uint64_t counted, uint64_t *missed)
{
	const struct wp_channel_watch *w = &channel->watch[i];
	const uint64_t reached = t->of[i].serial == atomic_load(&w->serial) ?
	    t->of[i].reached : 0;

	if (t->unknown || w->signal != SIGTRAP || w->stray != 0 ||
	    atomic_load(&w->suppressed) != 0 ||
	    atomic_load(&channel->handled) != 0)
		return false;
	*missed = counted > reached ? counted - reached : 0;
	return true;
}
