/*
 * program: reports the hits of one program, which arrive through the channel
 * that it shares with this process.  A watched child that fork(2) made is a
 * separate program.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "handler/channel.h"
#include "processes/event_dups.h"
#include "watch/hit_order.h"
#include "processes/inside_uptime.h"
#include "helper/access_tally.h"
#include "helper/tracer_process.h"
#include "processes/exec_monitor.h"

struct serve;
struct sideband_mapping;

struct program {
	struct serve *serve;
	struct program *next;
	pid_t pid;
	int pidfd;
	struct wp_channel *channel;
	int fd;				/* of the channel's memory */
	uint64_t gap[WP_WATCHES_MAX];	/* by watch: until this time, ns, there
					   may have been writes that nobody
					   saw */
	bool lent;			/* other processes had its memory before
					   it was served, and write unseen */
	uint64_t mapped;		/* counts the times when it may have
					   mapped something */
	bool code_mapped;		/* explainers have to be told what code
					   it maps ... */
	uint64_t code_time;		/* ... as of this time, ns */
	struct event_dups dups;
	struct inside_uptime presence;	/* for how long duplicated events were
					   on */
	struct access_tally tally;
	struct tracer_process *tracer;	/* NULL: the program has not needed
					   it */
	struct exec_monitor exec_monitor;
	uint32_t warned;		/* warnings of the program that have
					   been reported */
	uint32_t gaps;			/* the same of the channel's gaps */
	char suspicion[200];		/* why it gets no signals, as of the
					   last check; "": it gets them */
	bool suspicion_reported;
	bool armed;			/* a preloaded library's watches are
					   open */
	bool exec_reported;		/* its execve(2) was reported */
	uint64_t ended_at;		/* ns: when it was found to have ended,
					   with a child that has not registered;
					   0: no such end */
	bool forgotten_reported;	/* it was reported that there was no
					   room for all its children */
	bool child_unheard_reported;	/* it was reported that such a child did
					   not register in time */
	bool worker_reported;		/* it was reported that the kernel made
					   threads of it */
	bool measured;			/* its watches' time has been added to
					   the report's */
	bool ended;			/* it has ended, and everything of it is
					   reported */
};

/* Set up for a running program; parent: the program that forked it, NULL:
   unknown.  The caller keeps channel and descriptor.  NULL: a line on stderr
   says why. */
struct program *program_open(struct serve *, struct wp_channel *, int fd,
    pid_t pid, const struct program *parent);
void program_close(struct program *);

/* Begin to monitor the program and notice its end; at_once: also notice when it
   executes another program before it has announced that its watches are
   open. */
void program_begin(struct program *, bool at_once);

/* Process what the program has handed over; idle: number of ticks without
   anything.  When the program has ended or has executed another one that is not
   waited for, all its hits are reported, including the number of those that it
   did not hand over; then `ended' is set. */
void program_step(struct program *, unsigned idle);

/* Add to the report for how long the program's watches have been on, once.
   Nothing of the program is explained afterwards. */
void program_measure(struct program *);

/* Disable its watches: no more hits are wanted. */
void program_disable(struct program *);

/* The watched bytes may have changed unseen since this time, ns. */
void program_forget(struct program *, uint64_t time);

/* The bytes of this mapping may have changed, because it is new. */
void program_mapped(struct program *, const struct sideband_mapping *);

/* The kernel made a thread of the program for its io_uring(7), which gets no
   signal but that of its own access: report that once, if there is a watch that
   needs another one. */
void program_worker(struct program *);

/* The number of watches that are open before the one with this index in the
   channel, and that the report could not tell from it by name and place. */
unsigned program_watch_nth(const struct program *, unsigned index);

/* Tell explainers what code is mapped, before a hit whose thread waits is
   explained: the mappings may change before the explainer gets to it.  False:
   it is not known. */
bool program_learn_code(struct program *);

#endif
