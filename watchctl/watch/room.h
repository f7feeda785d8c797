/*
 * room: whether what a report is written to accepts more of it, so that no
 * thread waits without end for a reader that does not read.
 */
#ifndef ROOM_H
#define ROOM_H

#include <stdbool.h>

struct room {
	int fd;			/* a pipe or socket; others always have room */
	bool full;		/* nothing has been read for a while: it is not
				   waited for any more */
};

void room_open(struct room *, int fd);

/* Whether there is room for a report of a hit.  Waits some seconds when there is
   none, once, and then only looks until there is. */
bool room_wait(struct room *);

#endif
