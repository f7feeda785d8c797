/* event_dups: descriptors of a program's events. */
#include "watch/event_dups.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/perf.h"

enum { FDS = sizeof(((struct copy *)0)->fd) / sizeof(int) };

static void
drop(struct copy *copy)
{
	for (int i = 0; i < FDS; i++)
		if (copy->fd[i] >= 0)
			(void)close(copy->fd[i]);
	copy->serial = 0;
}

void
event_dups_close(struct event_dups *c)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (c->of[i].serial != 0)
			drop(&c->of[i]);
}

/* Whether it is an event: by then the program may have another descriptor by
   that number, from which reading would take something. */
static bool
is_event(int fd)
{
	static const char event[] = "anon_inode:[perf_event]";
	char path[64], target[sizeof(event)];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target)) ==
	    (ssize_t)sizeof(event) - 1 &&
	    memcmp(target, event, sizeof(event) - 1) == 0;
}

static int
copy_one(int pidfd, int32_t fd)
{
	int copy = fd < 0 ? -1 : pidfd_getfd(pidfd, fd, 0);

	if (copy >= 0 && !is_event(copy)) {
		(void)close(copy);
		copy = -1;
	}
	return copy;
}

/* Copies of a watch are complete, or there are none.  Whether they are. */
static bool
take(struct copy *copy, const struct wp_channel_watch *watch, int pidfd)
{
	bool complete = true;

	copy->serial = atomic_load(&watch->serial);
	copy->nslots = watch->what.nslots;
	for (int i = 0; i < FDS; i++) {
		int32_t fd = watch->fd[i];

		copy->fd[i] = copy_one(pidfd, fd);
		complete = complete && (fd < 0 || copy->fd[i] >= 0);
	}
	if (!complete)
		drop(copy);
	return complete;
}

bool
event_dups_take(struct event_dups *c, struct wp_channel *channel, int pidfd)
{
	bool all = true;

	*c = (struct event_dups){.channel = channel};
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (atomic_load(&channel->watch[i].serial) != 0)
			all = take(&c->of[i], &channel->watch[i], pidfd) && all;
	return all;
}

void
event_dups_disable(struct event_dups *c)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		for (int k = 0; c->of[i].serial != 0 && k < FDS; k++)
			if (c->of[i].fd[k] >= 0)
				(void)wp_perf_disable(c->of[i].fd[k]);
}

/* Of many threads not all events are here. */
bool
copies_counted(const struct event_dups *c, unsigned i, uint64_t *counted)
{
	const struct copy *copy = &c->of[i];
	const struct wp_channel_watch *watch;
	struct wp_perf_count count;

	if (copy->serial == 0)
		return false;
	watch = &c->channel->watch[i];
	if (watch->exact == 0 || copy->fd[FDS - 1] >= 0 ||
	    atomic_load(&watch->serial) != copy->serial)
		return false;
	*counted = atomic_load(&watch->counted) - watch->before;
	for (int k = 0; k < FDS; k++)
		if (copy->fd[k] >= 0 &&
		    wp_perf_read(copy->fd[k], WP_INSIDE_FORMAT, &count) == 0)
			*counted += count.value;
	return true;
}

/* Each thread has an event for each slot, one after the other; of many threads not
   all are here, and those of a tracer not at all. */
bool
copies_running(const struct event_dups *c, unsigned watch,
    uint64_t on[WP_SLOTS_MAX])
{
	const struct copy *copy = &c->of[watch];
	struct wp_perf_count count;

	memset(on, 0, WP_SLOTS_MAX * sizeof(*on));
	if (copy->serial == 0 || c->channel->watch[watch].exact == 0 ||
	    copy->fd[0] < 0 || copy->fd[FDS - 1] >= 0 || copy->nslots == 0 ||
	    copy->nslots > WP_SLOTS_MAX)
		return false;
	for (unsigned k = 0; copy->fd[k] >= 0; k++) {
		if (wp_perf_read(copy->fd[k], WP_INSIDE_FORMAT, &count) < 0)
			return false;
		on[k % copy->nslots] += count.running;
	}
	return true;
}
