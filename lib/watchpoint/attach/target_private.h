/* target_private: what target.c and launch.c share. */
#ifndef WP_TARGET_PRIVATE_H
#define WP_TARGET_PRIVATE_H

#include <pthread.h>

#include "ring/event_table.h"
#include "attach/samplers.h"
#include "ptrace/ptrace.h"
#include "attach/target.h"
#include "attach/thread_counts.h"
#include "attach/uprobes.h"
#include "ring/uptime.h"
#include "bpf/others.h"

struct wp_target {
	struct wp_features features;
	struct wp_options options;	/* fitted to features */
	struct wp_rings *rings;	/* all events are redirected into them */
	struct wp_watched *watch;	/* nwatches of them */
	size_t nwatches, watch_cap;
	struct wp_events events;
	pthread_mutex_t changing;	/* of watches, events and samplers: held
					   while they change, and while marks
					   are made (marks.h) */
	struct wp_samplers samplers;	/* of what is being attached */
	struct wp_thread_counts thread_counts;
	struct wp_uprobes uprobes;	/* execution watches that are no
					   slots */
	struct wp_counters counters;	/* that are read at each hit */
	struct wp_others others;	/* of options.processors: who hits the
					   watches of the process besides it */
	size_t others_first;		/* and which is the first of these */
	bool all_sampled;		/* each slot so far has had one */
	struct wp_cause no_bpf;		/* why none can; code 0: they can */
	unsigned threads;		/* covered by events of their own */
	double frozen_ms;		/* longest; < 0: none was held */
	bool inexact;			/* one of them could not be held */
	uint64_t armed;			/* as of wp_target_armed */
	struct wp_uptime past;		/* of events that are closed */
	bool stopped;			/* events are disabled */
	pid_t command;			/* launched or adopted, and not yet
					   released; 0: none */
	bool adopted;			/* that one was */
	size_t command_first;		/* its watches: from here on */
	struct wp_hold hold;		/* of the command */
};

/* Change events of a watch that has moved to where it is now.  0 or -errno. */
int wp_target_move_events(const struct wp_target *, const struct wp_events *,
    size_t watch);

/* Put an event where a thread that is stopped has its own of what is watched. */
void wp_target_put_local(const struct wp_watched *, pid_t tid,
    struct perf_event_attr *);

/* The attribute of all events of a slot. */
void wp_target_attr(const struct wp_target *, size_t watch, unsigned slot,
    struct perf_event_attr *);

/* For the programs of a slot's events of a ring, if hits of others come to
   them, too.  False: they do not. */
bool wp_target_own(const struct wp_target *, size_t watch, unsigned slot,
    unsigned ring, struct wp_own *);

/* How many hits of a watch were other processes'. */
uint64_t wp_target_count_others(const struct wp_target *, size_t watch);

/* Load the programs of these watches, and open what are uprobes, before any
   thread of the process (< 0: all that runs) is held.  0 or -errno with a
   cause. */
int wp_target_load(struct wp_target *, size_t first, size_t n, pid_t,
    struct wp_cause *);

/* They are armed; or, err, they are not, which is the result. */
int wp_target_loaded(struct wp_target *, size_t first, size_t n, int err);

/* Whether to begin anew, err being why these watches were not loaded or armed:
   since slots are taken, more of them are uprobes now, or another one is. */
bool wp_target_again(struct wp_target *, size_t first, size_t n, int err);

/* No uprobe can be where a watch is, which is one of these: have another one of
   them be one, if that can be. */
bool wp_target_exchange(struct wp_target *, size_t watch, size_t first,
    size_t n);

/* Open the events of watches first to first + n - 1 for a thread, behind them
   its reference.  0 or -errno: none of them is left. */
int wp_target_open_thread(const struct wp_target *, struct wp_events *,
    size_t first, size_t n, pid_t tid);

/* Have those of a watch hit no more. */
void wp_target_turn_off_events(const struct wp_target *, struct wp_events *,
    size_t watch);

/* The same for each thread of a process that is held, into the target's own.
   0 or -errno with a cause; then none of them is left. */
int wp_target_open_events(struct wp_target *, struct wp_hold *, pid_t pid,
    size_t first, size_t n, struct wp_cause *);

/* Take down what these watches' bytes are, while the threads are stopped. */
void wp_target_read_before(struct wp_target *, const struct wp_hold *,
    size_t first, size_t n);

/* A process has been held since then, in ns. */
void wp_target_was_frozen(struct wp_target *, uint64_t began);

/* Why an event of these watches could not be opened for a thread. */
int wp_target_explain(const struct wp_target *, size_t first, size_t n, int err,
    pid_t tid, struct wp_cause *);

bool wp_target_may_be_uprobe(const struct wp_target *,
    const struct wp_watched *);

/* Where watches take so many slots, have as many be uprobes as there are too
   many, the last ones first.  How many slots they take then. */
unsigned wp_target_spare(struct wp_target *, size_t first, size_t n,
    unsigned slots);
unsigned wp_target_count_slots(const struct wp_target *, size_t first,
    size_t n);

/* The same of one that watches nothing any more. */
void wp_target_attr_off(const struct wp_target *, size_t watch, unsigned slot,
    struct perf_event_attr *);

#endif
