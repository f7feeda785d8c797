/*
 * serve: reports the hits of programs that watch themselves, which arrive
 * through the channels that they share with this process.
 *
 *	helper.c		`watchctl helper`, started by the library
 *	run_inside.c		`watchctl --inside`, which starts the program
 *	serve.c			what both do: serve the program and its watched
 *				children until all have ended
 *	program.c		one of them
 *	access_tally.c			how many accesses its hits are
 *	channel_hit.c		one hit, from its cell to the report
 *	watch_registry.c	the watches known to the report
 *	hit_order.c		which hits follow each other
 *	sideband.c		what else may write
 *	event_dups.c		duplicates of a program's events
 *	inside_uptime.c		for how long the root's events were on
 *	exec_monitor.c		a program's end, and its execve(2)
 *	signal_check.c		what can be seen of it from outside
 *	environment_specs.c	the SPECs of its environment
 *	backpressure.c		whether the report's reader keeps up
 *
 * The first program is the root; the bell in its channel serves all of them.
 * This file holds what they have in common: the session with its policy and
 * account, and the registry of watches.
 *
 * A thread that made a hit continues when the hit is reported.  So cells are
 * returned whatever fails here.
 */
#ifndef SERVE_H
#define SERVE_H

#include "broker/live_broker.h"
#include "watch/watch_registry.h"
#include "helper/program.h"
#include "watch/backpressure.h"
#include "session/session.h"
#include "processes/sideband.h"

struct serve {
	const struct options *options;
	struct live_broker live;		/* the explainers */
	struct session session;
	struct remote_session *remote;	/* the session that they keep */
	struct program *first;		/* of all that are served */
	struct program *root;		/* the first program; kept after its
					   end */
	bool started;			/* the report has begun */
	struct backpressure backpressure;		/* for it */
	uint64_t unreported;		/* hits that came when no report was
					   possible */
	struct ex_formats *formats;	/* the layout of records in cells */
	struct watch_registry registry;
	struct sideband sideband;
	struct wp_uptime uptime;	/* of watches of preloaded libraries
					   that are closed */
	uint64_t began;			/* ns */
	bool child_reported;		/* it was reported that a child is not
					   watched, ... */
	bool children_doubted;		/* ... or may have gone unnoticed;
					   ... */
	bool unmapped_reported;		/* ... or that mappings are not known */
	bool ours;			/* --inside: the report can end before
					   the program does */
	bool refused;			/* the root cannot be watched, and is
					   being ended */
	bool selective;			/* programs set watches where they need
					   them, and unwatched processes are no
					   fault of the run.  Like `ours', but
					   the root has no channel */
	uint64_t until;			/* time at which the report ends, ns,
					   and ... */
	void (*expire)(pid_t root);	/* ... this is called; NULL: nothing
					   is */
	void (*round)(void *);	/* called with round_arg when the hits that
				   existed at its last call are reported; NULL:
				   not called */
	void *round_arg;
	const char *reason;		/* why the report ended; NULL: it has
					   not */
};

/* Set up for a running program with the channel behind fd, and open the session
   of this command line.  0, or -errno after a line on stderr. */
int serve_open(struct serve *, char **argv, struct wp_channel *, int fd,
    pid_t program);

/* The same in two parts: the session, for a sequence of programs; and one
   program, until its end. */
int serve_open_session(struct serve *, char **argv);
int serve_open_program(struct serve *, struct wp_channel *, int fd,
    pid_t program);
void serve_close_program(struct serve *);

/* Serve until the program and its watched children have ended or executed
   another program (except the first execution of a started command).  Then
   everything that they handed over is reported, and so is the number of hits
   that they did not hand over. */
void serve_channel(struct serve *);

/* Learn what the programs have done besides accesses, such as mappings.  False:
   that cannot be known. */
bool serve_read_sideband(struct serve *);

/* If the run has to be vouched for, report once that there may be children of
   which the library knows nothing. */
void serve_doubt_children(struct serve *);

/* Take a hit out of its cell, and report it if the report's reader keeps up. */
void serve_take_hit(struct program *, struct wp_cell *);

/* Begin the report, with the watches that are known. */
void serve_start(struct serve *);

void serve_close(struct serve *);

/* Have the hit in a cell explained, reported if wanted, and its reply filled
   in; a hit whose thread does not wait is explained at the session's next
   flush. */
void channel_hit_report(struct program *, struct wp_cell *, bool wanted);

/* Account for a hit of which it is now known how many accesses it was. */
void channel_hit_account(struct program *, const struct broker_channel_hit *);

/* Tell explainers the program's present mappings.  0 or -errno. */
int serve_learn(struct program *);

/* Answer WP_ASK_RESOLVE: resolve the SPECs in its text in the program.  Result:
   the number of regions, or -errno with a cause in the request. */
int serve_resolve(struct program *, struct wp_request *);

#endif
