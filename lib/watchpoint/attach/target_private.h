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
#include "bpf/process_filter.h"

struct wp_target {
	struct wp_features features;
	struct wp_options options;	/* fitted to features */
	struct wp_rings *rings;	/* all events are redirected into them */
	struct wp_watched *watch;	/* nwatches of them */
	size_t nwatches, watch_cap;
	struct wp_events events;
	pthread_mutex_t changing;	/* for watches, events and samplers:
					   held while they change, and while
					   marks are made (ticket_marks.h) */
	struct wp_samplers samplers;	/* of the watches that are being
					   attached */
	struct wp_thread_counts thread_counts;
	struct wp_uprobes uprobes;	/* execution watches that take no
					   slot */
	struct wp_counters counters;	/* read at each hit */
	struct wp_process_filter others;  /* with options.processors: separates
					     the process's hits from those of
					     others */
	size_t others_first;		/* the first watch that it is for */
	bool all_sampled;		/* each slot so far had a sampler */
	struct wp_cause no_bpf;		/* why samplers are not possible; code
					   0: they are */
	unsigned threads;		/* number of threads with events of
					   their own */
	double frozen_ms;		/* the longest freeze; < 0: a process
					   could not be held */
	bool inexact;			/* a process could not be held */
	uint64_t armed;			/* see wp_target_armed */
	struct wp_uptime past;		/* of events that are closed */
	bool stopped;			/* events are disabled */
	pid_t command;			/* the process that was launched or
					   adopted, and is still held; 0:
					   none */
	bool adopted;			/* it was adopted */
	size_t command_first;		/* the first of its watches; the others
					   follow */
	struct wp_hold hold;		/* of the command */
};

/* Change events of a watch that has moved to where it is now.  0 or -errno. */
int wp_target_move_events(const struct wp_target *, const struct wp_events *,
    size_t watch);

/* Set the address of an event to a stopped thread's own instance of what is
   watched. */
void wp_target_put_local(const struct wp_watched *, pid_t tid,
    struct perf_event_attr *);

/* The attribute of all events of a slot. */
void wp_target_attr(const struct wp_target *, size_t watch, unsigned slot,
    struct perf_event_attr *);

/* Describe the process for the programs of a slot's events of a ring, if these
   get hits of other processes, too.  False: they do not. */
bool wp_target_own(const struct wp_target *, size_t watch, unsigned slot,
    unsigned ring, struct wp_own *);

/* The number of hits of a watch that other processes made. */
uint64_t wp_target_count_others(const struct wp_target *, size_t watch);

/* Load the programs of these watches, and open those that are uprobes, before
   any thread of the process (< 0: of any process) is held. 0 or -errno with a
   cause. */
int wp_target_load(struct wp_target *, size_t first, size_t n, pid_t,
    struct wp_cause *);

/* Note that these watches are armed; or, with err, that they are not.  Result:
   err. */
int wp_target_loaded(struct wp_target *, size_t first, size_t n, int err);

/* Whether to try again, after err kept these watches from being loaded or
   armed: because slots are taken, more of them are uprobes now, or another one
   is. */
bool wp_target_again(struct wp_target *, size_t first, size_t n, int err);

/* One of these watches cannot be a uprobe: make another one of them a uprobe
   instead.  False: that is not possible. */
bool wp_target_exchange(struct wp_target *, size_t watch, size_t first,
    size_t n);

/* Open the events of watches first to first + n - 1 for a thread, followed by
   its reference. 0; or -errno, and none of them stays open. */
int wp_target_open_thread(const struct wp_target *, struct wp_events *,
    size_t first, size_t n, pid_t tid);

/* Turn the events of a watch off. */
void wp_target_turn_off_events(const struct wp_target *, struct wp_events *,
    size_t watch);

/* Open the events for each thread of a held process, in the target's own table.
   0; or -errno with a cause, and none of them stays open. */
int wp_target_open_events(struct wp_target *, struct wp_hold *, pid_t pid,
    size_t first, size_t n, struct wp_cause *);

/* Read the bytes of these watches, while the threads are stopped. */
void wp_target_read_before(struct wp_target *, const struct wp_hold *,
    size_t first, size_t n);

/* Note that a process has been held since began, ns. */
void wp_target_was_frozen(struct wp_target *, uint64_t began);

bool wp_target_may_be_uprobe(const struct wp_target *,
    const struct wp_watched *);

/* If watches take more than this number of slots, turn as many into uprobes as
   necessary, the last ones first.  Result: the number of slots that they then
   take. */
unsigned wp_target_spare(struct wp_target *, size_t first, size_t n,
    unsigned slots);
unsigned wp_target_count_slots(const struct wp_target *, size_t first,
    size_t n);

/* The attribute of a slot's events that watch nothing any more. */
void wp_target_attr_off(const struct wp_target *, size_t watch, unsigned slot,
    struct perf_event_attr *);

#endif
