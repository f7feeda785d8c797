/*
 * serve: reports the hits of a program that watches itself, which come through
 * the channel that it shares with this process.
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
 * What all have in common is here: the session with its policy and account,
 * and the registry of watches.
 *
 * A thread that made a hit continues when its report has been written.  So,
 * whatever fails here, cells are returned.
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
	struct remote_session *remote;	/* it, by them */
	struct program *first;		/* of all that are served */
	struct program *root;		/* that came first; it stays when it has
					   ended */
	bool started;			/* the report has begun */
	struct backpressure backpressure;		/* for it */
	uint64_t unreported;		/* hits for which there was none */
	struct ex_formats *formats;	/* of records in cells */
	struct watch_registry registry;
	struct sideband sideband;
	struct wp_uptime uptime;	/* of the watches of preloaded
					   libraries, as far as they are no
					   more */
	uint64_t began;			/* ns */
	bool child_reported;		/* it has been reported that a child is
					   not watched, ... */
	bool children_doubted;		/* ... or may not have been noticed;
					   ... */
	bool unmapped_reported;		/* ... or that mappings are not known */
	bool ours;			/* --inside: the report can end before
					   the program does */
	bool refused;			/* the root cannot be watched, and
					   ends */
	bool selective;			/* programs have watches where they need
					   them, and nobody vouches for what is
					   not watched; ours, but the root has
					   no channel of its own */
	uint64_t until;			/* ns: then the report ends, and ... */
	void (*expire)(pid_t root);	/* ... this is called; NULL: nothing */
	void (*round)(void *);	/* called when hits that were there before it
				   was called last are reported, with round_arg;
				   NULL: nothing */
	void *round_arg;
	const char *reason;		/* why the report ended; NULL: it has
					   not */
};

/* Set up for a program that lives, with a session that is open, as of this
   command line, and the channel behind fd.  0, or -errno after a line on
   stderr. */
int serve_open(struct serve *, char **argv, struct wp_channel *, int fd,
    pid_t program);

/* The same in two parts: what is there for one program after the other; and one
   of them, until its end. */
int serve_open_session(struct serve *, char **argv);
int serve_open_program(struct serve *, struct wp_channel *, int fd,
    pid_t program);
void serve_close_program(struct serve *);

/* Serve until the program and its children that are watched have ended; or
   executed another, but for the first of a command's.  Then all that they
   handed over is reported, and so is what they did not hand over. */
void serve_channel(struct serve *);

/* Hear what the programs have done since that is no access.  False: that cannot
   be known. */
bool serve_read_sideband(struct serve *);

/* Report, once, that children may not have been noticed, if a run has to be
   vouched for: for those that a library knows nothing of. */
void serve_doubt_children(struct serve *);

/* Take a hit out of its cell, and report it if there is room. */
void serve_take_hit(struct program *, struct wp_cell *);

/* Begin the report, with the watches that are known. */
void serve_start(struct serve *);

void serve_close(struct serve *);

/* Have the hit in a cell explained, reported if wanted, and fill in its reply;
   one for which no thread waits, with the session's next flush. */
void channel_hit_report(struct program *, struct wp_cell *, bool wanted);

/* It is known how many accesses a hit was. */
void channel_hit_account(struct program *, const struct broker_channel_hit *);

/* Have explainers know what a program maps now.  0 or -errno. */
int serve_learn(struct program *);

/* Answer WP_ASK_RESOLVE: what the SPECs of its text mean in the program.
   Result: how many regions, or -errno with a cause in the request. */
int serve_resolve(struct program *, struct wp_request *);

#endif
