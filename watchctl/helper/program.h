/*
 * program: one program whose hits are reported, through the channel that it
 * shares with this process.  A watched child that fork(2) made is a program of
 * its own.
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
	int fd;				/* behind which that is */
	uint64_t gap[WP_WATCHES_MAX];	/* by index: until then, ns, there may
					   have been writes that nobody saw */
	bool lent;			/* others had its memory before it was
					   served: they write unseen */
	uint64_t mapped;		/* how often it may have mapped
					   something */
	bool code_mapped;		/* explainers do not know yet what code
					   it maps, ... */
	uint64_t code_time;		/* ... which it has mapped then, ns */
	struct event_dups dups;
	struct inside_uptime presence;	/* of watches that have copies */
	struct access_tally tally;
	struct tracer_process *tracer;	/* when the program wants it */
	struct exec_monitor exec_monitor;
	uint32_t warned;		/* warnings of the program that have
					   been reported */
	uint32_t gaps;			/* and the channel's gaps */
	char suspicion[200];		/* why it gets no signals, by the last
					   look; "": it gets them */
	bool suspicion_reported;
	bool armed;			/* a preloaded library's watches are
					   open */
	bool exec_reported;		/* that it executes another program */
	uint64_t ended_at;		/* ns: when it was found to have ended,
					   with a child that was not heard of;
					   0: it was not */
	bool forgotten_reported;	/* that there was no room for all of
					   its children */
	bool child_unheard_reported;	/* that such a child was not heard of
					   in time */
	bool measured;			/* its watches' time has been added to
					   the report's */
	bool ended;			/* and all of it is reported */
};

/* Set up for a program that lives; parent: the one that made it, NULL: none
   that is known.  Channel and descriptor stay the caller's.  NULL: a line on
   stderr says why. */
struct program *program_open(struct serve *, struct wp_channel *, int fd,
    pid_t pid, const struct program *parent);
void program_close(struct program *);

/* From now on it is looked at, and its end is noticed; at_once: so is that it
   executes another program, even before its watches are said to be open. */
void program_begin(struct program *, bool at_once);

/* Do what is to be done for it; idle: how many ticks there was nothing.  When
   it has ended, or is another program that is not waited for, all that it
   handed over is reported, and so is what it did not hand over: it is ended
   then. */
void program_step(struct program *, unsigned idle);

/* Add for how long its watches have been on, once.  Nothing of it is explained
   any more. */
void program_measure(struct program *);

/* No more of its hits are wanted. */
void program_disable(struct program *);

/* Its bytes may be others than was known, since then, ns. */
void program_forget(struct program *, uint64_t time);

/* So may these, because they are mapped again. */
void program_mapped(struct program *, const struct sideband_mapping *);

/* Before a hit of a thread that waits is explained: have explainers know what
   code is mapped, because something else may be there when they come to it.
   False: it is not known. */
bool program_learn_code(struct program *);

#endif
