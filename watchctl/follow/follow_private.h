/*
 * follow_private: what the parts of follow share.
 *
 *	follow.c	resolves pointers, reports moves
 *	follow_thread.c	moves the watches of running threads
 *	follow_held.c	moves watches while threads are held (--stop)
 */
#ifndef FOLLOW_PRIVATE_H
#define FOLLOW_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "follow/follow.h"
#include "run/run.h"

/* An object that is followed. */
struct followed {
	pid_t pid;
	size_t watch;		/* of the target */
	size_t spec, scout;	/* its SPEC; the first pointer among the
				   scouts */
	enum wp_access access;
	struct spec_place place;
	uint64_t at[SPEC_MORE_MAX + 1];	/* addresses of the watched pointers and
					   of the object; 0: nowhere.  Only the
					   thread uses it */
	uint64_t since;		/* ns since when the pointers differ from what
				   was armed; 0: they do not */
	uint64_t gap_looked;	/* time of the last check, which all gaps so far
				   precede */
	uint64_t wrote, looked;	/* time of a write after which nothing was
				   missed, and of the check that followed it; 0:
				   none since the last gap */
	uint64_t doubt, until;	/* a possible gap that is not reported yet; 0:
				   none */
	unsigned writes;	/* --stop: number of writes since the last
				   check, 2: or more, ... */
	uint64_t first, pc;	/* ... time of the first, and its thread's pc
				   after it; 0: in a system call */
	struct wp_sample write;	/* the last write, ... */
	uint64_t scout_id[WP_SLOTS_MAX];	/* ... and the events that have
						   sampled it */
	unsigned scouts;	/* number of these; 0: the next sample is
				   another write */
	unsigned described;	/* the session's watch of the place that it has
				   moved to, plus 1; 0: it has not moved */
};

/* A move that was made, or is about to be. */
struct move {
	size_t followed;
	uint64_t addr;		/* of the object; 0: nowhere */
	uint64_t time;		/* ns */
	bool done;		/* else it is about to be */
	uint64_t gap;		/* if done: as of struct watch_event */
	bool failed;
	bool stayed;		/* the object may have been elsewhere in
				   between */
};

struct follow {
	struct run *run;
	struct wp_target *scouts;	/* the watches of the pointers */
	struct followed *one;	/* n of them */
	size_t n, cap;
	pthread_t thread;
	bool running;
	int end, moved;		/* eventfds: the thread shall end; there are
				   moves to report */
	pthread_mutex_t lock;	/* of what follows */
	struct move *move;	/* nmoves that are to be reported */
	size_t nmoves, moves_cap;
	atomic_bool any;	/* nmoves is not 0 */
	bool warned;		/* a warning that a move failed was given */
};

/* Determine where the object's pointers lead now: nowhere after a null pointer,
   or after one that leads to no memory. */
void follow_look(const struct followed *, uint64_t at[SPEC_MORE_MAX + 1]);

/* Whether the process's memory is gone, so that reading it does not show what
   was written. */
bool follow_is_gone(const struct followed *);

/* Whether a move missed nothing, because there is no object now, and no pointer
   that has just begun to be watched. */
bool follow_misses_nothing(const struct followed *,
    const uint64_t before[SPEC_MORE_MAX + 1]);

/* Whether a watched pointer of the object is at this address; and of any object
   of the process. */
bool follow_has_pointer(const struct followed *, uint64_t addr);
bool follow_any_has_pointer(const struct follow *, pid_t, uint64_t addr);

/* Whether this sample is of the same write as that of the last call.  Several
   scouts, one for each SPEC, may be at the address of a write, and each records
   a sample of it. */
bool follow_is_same_write(struct followed *, const struct wp_sample *);

/* Move the watches whose addresses have changed.  False: it cannot be done. */
bool follow_move(struct follow *, struct followed *,
    const uint64_t at[SPEC_MORE_MAX + 1]);

/* Queue a move, about to be made or made, for the report. */
void follow_say(struct follow *, const struct move *);

/* follow_thread.c */

int follow_thread_begin(struct follow *);

#endif
