/*
 * run: one watch of live processes, as its stages share it.
 *
 *	begin.c		from the command line to armed watches
 *	watch.c		the loop, and the end
 *	stopping.c	the loop of --stop
 *	guarding.c	the same where there are no events to stop by
 *	recording.c	-o perf
 */
#ifndef RUN_H
#define RUN_H

#include "watch/earlier.h"
#include "report/session.h"
#include "attach/target.h"

struct run {
	const struct options *options;
	struct wp_features features;
	struct wp_target *target;
	struct stopping *stopping;	/* --stop; NULL: not that */
	struct guarding *guarding;	/* or by debug registers */
	struct session session;
	struct ex_formats *formats;	/* of the armed events */
	struct earlier earlier;		/* what was there before the watch */
	struct process {
		pid_t pid;
		size_t first;		/* of its watches, one for each SPEC */
		struct spec_place *place;	/* what each SPEC means there */
		long threads;		/* covered, by its records: those
					   there were, and made, and ended */
		bool executed;		/* another program, as reported
					   already */
	} *process;			/* nprocesses of them */
	size_t nprocesses;
	unsigned made;			/* threads under watch, by records
					    */
	int command_status;		/* as of waitpid(2); < 0: it runs */
	struct pollfd *poll;		/* signals, processes, rings; npoll */
	size_t npoll;
	uint64_t began;			/* ns */
	bool uncovered;			/* a processor is not watched, as
					   reported */
	const char *reason;		/* why it ended; NULL: it has not */
};

/* ms until the time of -t is over; without -t longer than any run. */
double run_left_ms(const struct run *);

/* The same for callers that count in int; 0: there is no -t. */
int run_left_for_wait(const struct run *);

/* Whether the loop will end, or look at a signal, as soon as it comes to that:
   then nothing that takes long is to be begun. */
bool run_is_ending(const struct run *);

/* A signal for watchctl: it ends, or passes it on to the command. */
void run_signal(struct run *, int sig);

/* The same for all that the first of the poll set has. */
void run_take_signals(struct run *);

/* A process executed another program: tell it, once. */
void run_executed(struct run *, struct process *);

/* A processor runs that is not watched: tell it, once. */
void run_check_processors(struct run *);

/* Arm everything.  0, or the exit status after a line on stderr. */
int run_begin(struct run *);

/* Make what the loop sleeps on: signals and rings, once these are there; then
   the processes, once their ids are known.  0, or -errno after a line on
   stderr. */
int run_poll_make(struct run *);
int run_poll_processes(struct run *);

/* Leave process i out, as if it had not been given. */
void run_leave_out(struct run *, size_t i);

/* Say that the watch has begun, and what it cannot vouch for. */
void run_announce(struct run *);

/* Begin the file of -o perf with what was there before, and events as armed.
   0 or -errno. */
int recording_begin(struct run *, const struct ex_perf_event *, size_t n);

/* What the modules were, for a reader of the file on another day. */
void recording_build_ids(struct run *);

#endif
