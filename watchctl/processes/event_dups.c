/* event_dups: duplicated descriptors of a program's events. */
#include "processes/event_dups.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/perf.h"

enum { FDS = sizeof(((struct event_dup *)0)->fd) / sizeof(int) };

static void
drop(struct event_dup *dup)
{
	for (int i = 0; i < FDS; i++)
		if (dup->fd[i] >= 0)
			(void)close(dup->fd[i]);
	dup->serial = 0;
}

void
event_dups_close(struct event_dups *c)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (c->of[i].serial != 0)
			drop(&c->of[i]);
}

/* Whether the descriptor is a perf event.  The program may have reused the
   number for another file, from which a read would take data. */
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
dup_one(int pidfd, int32_t fd)
{
	int dup = fd < 0 ? -1 : pidfd_getfd(pidfd, fd, 0);

	if (fd >= 0 && dup < 0)
		return -errno;
	if (dup >= 0 && !is_event(dup)) {
		(void)close(dup);
		dup = -EBADF;
	}
	return dup;
}

/* Duplicate all events of a watch, or none.  Returns 0 or -errno. */
static int
take(struct event_dup *dup, const struct wp_channel_watch *watch, int pidfd)
{
	int err = 0;

	dup->serial = atomic_load(&watch->serial);
	dup->nslots = watch->what.nslots;
	for (int i = 0; i < FDS; i++) {
		int32_t fd = watch->fd[i];

		dup->fd[i] = dup_one(pidfd, fd);
		if (err == 0 && fd >= 0 && dup->fd[i] < 0)
			err = dup->fd[i];
	}
	if (err < 0)
		drop(dup);
	return err;
}

bool
event_dups_take(struct event_dups *c, struct wp_channel *channel, int pidfd)
{
	*c = (struct event_dups){.channel = channel};
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		int err = atomic_load(&channel->watch[i].serial) == 0 ? 0 :
		    take(&c->of[i], &channel->watch[i], pidfd);

		if (err < 0)
			c->err = -err;
	}
	return c->err == 0;
}

void
event_dups_disable(struct event_dups *c)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		for (int k = 0; c->of[i].serial != 0 && k < FDS; k++)
			if (c->of[i].fd[k] >= 0)
				(void)wp_perf_disable(c->of[i].fd[k]);
}

/* With many threads, only some of the events are duplicated. */
bool
event_dups_counted(const struct event_dups *c, unsigned i, uint64_t *counted)
{
	const struct event_dup *dup = &c->of[i];
	const struct wp_channel_watch *watch;
	struct wp_perf_count count;

	if (dup->serial == 0)
		return false;
	watch = &c->channel->watch[i];
	if (watch->exact == 0 || dup->fd[FDS - 1] >= 0 ||
	    atomic_load(&watch->serial) != dup->serial)
		return false;
	*counted = atomic_load(&watch->counted) - watch->before;
	for (int k = 0; k < FDS; k++)
		if (dup->fd[k] >= 0 &&
		    wp_perf_read(dup->fd[k], WP_INSIDE_FORMAT, &count) == 0)
			*counted += count.value;
	return true;
}

/* Each thread has one event for each slot, in order.  With many threads not all
   are duplicated, and those of a tracer not at all. */
bool
event_dups_running(const struct event_dups *c, unsigned watch,
    uint64_t on[WP_SLOTS_MAX])
{
	const struct event_dup *dup = &c->of[watch];
	struct wp_perf_count count;

	memset(on, 0, WP_SLOTS_MAX * sizeof(*on));
	if (dup->serial == 0 || c->channel->watch[watch].exact == 0 ||
	    dup->fd[0] < 0 || dup->fd[FDS - 1] >= 0 || dup->nslots == 0 ||
	    dup->nslots > WP_SLOTS_MAX)
		return false;
	for (unsigned k = 0; dup->fd[k] >= 0; k++) {
		if (wp_perf_read(dup->fd[k], WP_INSIDE_FORMAT, &count) < 0)
			return false;
		on[k % dup->nslots] += count.running;
	}
	return true;
}
