/*
 * backpressure: checks whether the reader of a report keeps up, so that no
 * thread waits forever for a reader that does not read.
 */
#ifndef BACKPRESSURE_H
#define BACKPRESSURE_H

#include <stdbool.h>

struct backpressure {
	int fd;			/* a pipe or socket; others always have room */
	bool full;		/* nothing has been read for a while: waiting
				   has been given up */
};

void backpressure_open(struct backpressure *, int fd);

/* Whether there is room for a report of a hit.  Waits some seconds once when
   there is none, and afterwards only checks until there is. */
bool backpressure_wait(struct backpressure *);

#endif
