/*
 * follow_private: what the parts of follow share.
 *
 *	follow.c	where pointers lead, and the reports of moves
 *	follow_thread.c	of threads that run: moves them as they do
 *	follow_held.c	of threads that are held at each hit (--stop)
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
	uint64_t at[SPEC_MORE_MAX + 1];	/* where the pointers are that are
					   watched, and the object; 0: nowhere;
					   the thread's */
	uint64_t since;		/* not where they led when they were armed;
				   0: they were */
	uint64_t gap_looked;	/* when it was last looked at, for all the
				   gaps so far */
	uint64_t wrote, looked;	/* a write after which nothing was missed, and
				   when it was looked at; 0: none since the last
				   gap */
	uint64_t doubt, until;	/* a gap that may be, and is not reported;
				   0: none */
	unsigned writes;	/* of threads that are held: so many writes
				   since they were looked at, 2: or more, ... */
	uint64_t first, pc;	/* ... when the first was made, and where its
				   thread is behind it; 0: in a system call */
	struct wp_sample write;	/* the last one, ... */
	uint64_t scout_id[WP_SLOTS_MAX];	/* ... and the events that have
						   recorded it */
	unsigned scouts;	/* so many; 0: the next one is another */
	unsigned described;	/* of the session's watches, the place that it
				   has moved to, plus 1; 0: it has not */
};

/* What was done, or is about to be. */
struct move {
	size_t followed;
	uint64_t addr;		/* of the object; 0: nowhere */
	uint64_t time;		/* ns */
	bool done;		/* else it is about to be */
	uint64_t gap;		/* done: as of struct watch_event */
	bool failed;
	bool stayed;		/* it may have been elsewhere meanwhile */
};

struct follow {
	struct run *run;
	struct wp_target *scouts;	/* with the pointers' watches */
	struct followed *one;	/* n of them */
	size_t n, cap;
	pthread_t thread;
	bool running;
	int end, moved;		/* eventfds: it is to end; there are moves */
	pthread_mutex_t lock;	/* of what follows */
	struct move *move;	/* nmoves, that are not reported */
	size_t nmoves, moves_cap;
	atomic_bool any;	/* there are some */
	bool warned;		/* that one could not be made */
};

/* Where its pointers lead now; nowhere from a null pointer on, or from one that
   leads to no memory. */
void follow_look(const struct followed *, uint64_t at[SPEC_MORE_MAX + 1]);

/* Whether nothing can be read any more, which says nothing of what was
   written. */
bool follow_is_gone(const struct followed *);

/* Whether nothing was missed at a move: there is no object now, nor a pointer
   that has just begun to be watched. */
bool follow_misses_nothing(const struct followed *,
    const uint64_t before[SPEC_MORE_MAX + 1]);

/* Whether it is one of its pointers that is there; any: one of any object's of
   the process. */
bool follow_has_pointer(const struct followed *, uint64_t addr);
bool follow_any_has_pointer(const struct follow *, pid_t, uint64_t addr);

/* Whether it is the write that it was called with last.  Several scouts may be
   where a thread writes, one of each SPEC: each has a sample of each write. */
bool follow_is_same_write(struct followed *, const struct wp_sample *);

/* Move what is not where it was looked for.  False: it cannot be. */
bool follow_move(struct follow *, struct followed *,
    const uint64_t at[SPEC_MORE_MAX + 1]);

/* Have reported what is about to be done, or was. */
void follow_say(struct follow *, const struct move *);

/* follow_thread.c */

int follow_thread_begin(struct follow *);

#endif
