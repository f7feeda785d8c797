/*
 * perf_watches: perf events of the program's own, as the signal handler
 * disables and counts them.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <errno.h>
#include <string.h>

#include "os/attr.h"
#include "os/perf.h"
#include "handler/watches.h"

bool
wp_armed_is(const struct wp_armed *armed)
{
	uint64_t id;

	return armed->id == 0 || (wp_perf_id(armed->fd, &id) == 0 &&
	    id == armed->id);
}

int
wp_armed_check(const struct wp_armed *armed)
{
	return wp_armed_is(armed) ? 0 : -EBADF;
}

int
wp_watch_off(struct wp_watch *w)
{
	int err, first = 0;

	for (size_t i = 0; i < w->narmed; i++) {
		if ((err = wp_armed_check(&w->armed[i])) == 0)
			err = wp_perf_disable(w->armed[i].fd);
		if (err < 0 && first == 0)
			first = err;
	}
	return first;
}

int
wp_watch_disable(struct wp_watch *w)
{
	atomic_store(&w->on, false);
	return wp_watch_off(w);
}

int
wp_watch_count_slots(const struct wp_watch *w, uint64_t count[WP_SLOTS_MAX])
{
	struct wp_perf_count one;
	int err = 0;

	memset(count, 0, WP_SLOTS_MAX * sizeof(*count));
	for (size_t i = 0; i < w->narmed && err == 0; i++) {
		if ((err = wp_armed_check(&w->armed[i])) == 0)
			err = wp_perf_read(w->armed[i].fd,
			    WP_INSIDE_FORMAT, &one);
		count[w->armed[i].slot] += err == 0 ?
		    one.value - w->armed[i].before : 0;
	}
	return err;
}

int
wp_watch_count(const struct wp_watch *w, uint64_t *count)
{
	uint64_t each[WP_SLOTS_MAX];
	int err = wp_watch_count_slots(w, each);

	*count = 0;
	for (unsigned i = 0; i < w->nslots; i++)
		*count += each[i];
	return err;
}
