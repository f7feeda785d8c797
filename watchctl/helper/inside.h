/*
 * inside: reporting the hits of a program that watches itself, which come by
 * the channel that it shares with this process.
 *
 *	helper.c	`watchctl helper`, which the program's library starts
 *	inside_run.c	`watchctl --inside`, which starts the program
 *	inside.c	what both do: serve the channel until the program ends
 *	cell.c		one hit: from its cell to the report
 *	known.c		the watches that the report knows of
 *	order.c		which hits follow each other
 *	tally.c		how many accesses they are
 *	sideband.c	what else may write
 *	mapped.c	what the program has mapped
 *	copies.c	copies of the program's events
 *	presence.c	how long they were on
 *	vigil.c		waiting for its end
 *	look.c		what is seen of it from outside
 *	resolve.c	what SPECs of its environment mean
 *	room.c		room for reports
 *
 * A thread that made a hit goes on when its report has been written, so
 * whatever fails here, cells are given back.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "handler/channel.h"
#include "watch/copies.h"
#include "watch/known.h"
#include "watch/mapped.h"
#include "watch/order.h"
#include "watch/presence.h"
#include "watch/room.h"
#include "report/session.h"
#include "watch/sideband.h"
#include "helper/tally.h"
#include "helper/tracing.h"
#include "watch/vigil.h"

struct inside {
	const struct options *options;
	struct wp_channel *channel;
	int fd;				/* the channel's */
	pid_t program;
	int pidfd;			/* of it */
	struct session session;
	bool started;			/* the report has begun */
	struct room room;		/* for it */
	uint64_t unreported;		/* hits for which there was none */
	struct ex_formats *formats;	/* of records in cells */
	struct mapped mapped;
	struct known known;
	struct order order;
	struct tally tally;
	struct sideband sideband;
	struct copies copies;
	struct presence presence;
	struct wp_uptime uptime;	/* of a preloaded library's watches, when
					   they are no more ... */
	bool measured;			/* ... which was looked at */
	struct tracing *tracing;	/* when the program wants it */
	uint64_t began;			/* ns */
	uint32_t warned;		/* warnings of the program that have
					   been reported */
	uint32_t gaps;			/* and the channel's gaps */
	bool parted;			/* it has been reported that there is a
					   child */
	char suspicion[200];		/* why it gets no signals, as the last look
					   had it; "": it gets them */
	bool suspected;			/* that has been reported */
	bool ours;			/* --inside: the report can end before the
					   program does */
	bool armed;			/* watches of a preloaded library are open */
	bool refused;			/* or not available: the program ends */
	bool left;			/* it has been reported that another
					   program is executed */
	const char *reason;		/* why the report ended; NULL: it has not */
	struct vigil vigil;
};

/* Set up for a program that lives, with a session that is open and the channel
   behind fd.  0, or -errno after a line on stderr. */
int inside_open(struct inside *, struct wp_channel *, int fd, pid_t program);

/* Serve until the program has ended; not ours, or executed another.  Then all
   that it handed over is reported, and so is what it did not hand over. */
void inside_serve(struct inside *);

/* Begin the report, with the watches that are known. */
void inside_start(struct inside *);

void inside_close(struct inside *);

/* Explain the hit in a cell, report it if wanted, and fill in its reply. */
void cell_report(struct inside *, struct wp_cell *, bool wanted);

/* Answer WP_ASK_RESOLVE: what the SPECs of its text mean in the program.  Result:
   how many regions, or -errno with a cause in the request. */
int inside_resolve(struct inside *, struct wp_request *);

#endif
