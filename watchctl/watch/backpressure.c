/* backpressure: whether the reader of a report keeps up. */
#include "watch/backpressure.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { PATIENCE = 3000, NAP = 10 };	/* ms */

void
backpressure_open(struct backpressure *room, int fd)
{
	struct stat st;

	*room = (struct backpressure){.fd = -1};
	if (fstat(fd, &st) == 0 &&
	    (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		room->fd = fd;
}

/* A pipe that is more than half full might not have room for a whole hit. */
static bool
has_room(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int size = fcntl(fd, F_GETPIPE_SZ), used;

	if (size > 0 && ioctl(fd, FIONREAD, &used) == 0 && used > size / 2)
		/* if there is no reader, a write fails at once */
		return poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
	return poll(&p, 1, 0) > 0;
}

bool
backpressure_wait(struct backpressure *room)
{
	bool has = room->fd < 0 || has_room(room->fd);

	for (int ms = 0; !has && !room->full && ms < PATIENCE; ms += NAP) {
		(void)poll(NULL, 0, NAP);
		has = has_room(room->fd);
	}
	room->full = !has;
	return has;
}
