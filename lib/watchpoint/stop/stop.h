/*
 * stop: processes whose threads stop right after each hit, so that memory can
 * be read as the access left it.
 *
 * Overview.  All threads are traced.  Each one, existing or to come, has events
 * of its own, which are not inherited: they write into the rings as always, and
 * signal the thread, by a signal that programs ignore by default.  It comes
 * before the thread's next instruction, and stops it; it is taken away there.
 * While the thread is stopped, its records are taken from the ring, and the
 * watch's bytes put into them (value_sample.h); then it goes on.
 *
 *	trap: sample into ring, signal -> stop: sample joined by value -> queue
 *
 * A thread that blocks the signal does not stop, but its records are there, and
 * are delivered without a value.  So nothing is lost if a stop does not come.
 * One that comes late, somewhere else in the program, is no stop at a hit.
 *
 * Exactness.  A value is exact if the thread is stopped right behind its
 * access, and no other access to the watch has been counted since the previous
 * value, in any thread.  Counts are read of threads that run: that interrupts
 * the thread's processor, where an access and its trap are done, or have not
 * begun.
 *
 * Scouts.  A process may have more events of the same kind, of another target,
 * that say what may have to move: at a hit of one all its threads are held, and
 * its owner may move watches before any of them goes on.
 *
 * Death.  Stops are looked at and not taken, so if the tracing process is
 * killed, every thread goes on, at most with a signal that it ignores; and all
 * events end.
 *
 * Its user is a process with one thread, with SIGCHLD blocked and not ignored,
 * which waits for SIGCHLD when there is nothing to do.
 */
#ifndef WP_STOP_H
#define WP_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"
#include "os/cause.h"
#include "attach/target.h"

struct wp_stops;
struct wp_thread;

/* A process at a hit of its scouts; its threads are held. */
struct wp_stops_held {
	pid_t pid;
	uint64_t time;		/* since then, ns, none runs; 0: it took too
				   long to hold them, and some may */
	uint64_t pc;		/* where its only thread is; 0: there are
				   more */
	uint64_t since;		/* so long, ns, it has been the only one at
				   least; 0: always */
};

/* What is reported to its owner; all are called by wp_stops_step. */
struct wp_stops_calls {
	/* A thread is stopped at a hit, whose records are there
	   (wp_stops_next); kernel: it is one in a system call.  NULL: it goes
	   on at once.  Result: whether the process is to be left stopped
	   (wp_stops_leave is to be called next). */
	bool (*hit)(void *arg, pid_t pid, pid_t tid, bool kernel);
	/* A process executes another program, before whose first instruction it
	   is stopped: it is watched no more.  Result: whether it is to stay
	   stopped, having been made the target's command (wp_target_adopt);
	   else it is released. */
	bool (*executed)(void *arg, pid_t pid);
	/* A process has ended, with this status as of waitpid(2); for a child
	   of ours this is the only report. */
	void (*ended)(void *arg, pid_t pid, int status);
	/* Something that the user has to know; unwatched: this thread is not
	   watched, 0: all are. */
	void (*warn)(void *arg, pid_t unwatched, const char *text);
	/* A hit of a scout, before its process is held; NULL: some were lost,
	   of any process. */
	void (*scouted)(void *arg, const struct wp_sample *);
	/* Then: until this returns all threads are held, and the owner may call
	   wp_stops_move.  All records up to now can be taken
	   (wp_stops_next). */
	void (*held)(void *arg, const struct wp_stops_held *);
	/* A thread is armed with watches first to first + n - 1, of which some
	   are where it has its own by its control block (wp_target_local); or,
	   !armed, it has ended.  NULL: nothing to do. */
	void (*local)(void *arg, const struct wp_thread *, size_t first,
	    size_t n, uint64_t block, bool armed);
};

/* For a target, with options.stop, that outlives it.  0 or -ENOMEM. */
int wp_stops_new(struct wp_stops **, struct wp_target *,
    const struct wp_stops_calls *, void *arg);

/*
 * Watch a running process, or the target's held command, by watches first to
 * first + n - 1: all its threads, and those to come.  On failure nothing is
 * armed for it, and it runs on (a command is still held): -errno with a cause;
 * but if it cannot be traced, the cause is left to the caller (NONE).
 */
int wp_stops_attach(struct wp_stops *, pid_t pid, size_t first, size_t n,
    struct wp_cause *);

/* Of a running process, when it is attached: whether others have its memory,
   and write unseen (sharers.h); these were looked for before, and again since.
   Until this is said nothing is known of its values. */
void wp_stops_lend(struct wp_stops *, pid_t pid, bool lent);

/* Processes that are attached from now on have watches first to first + n - 1
   of these scouts, too: a target with options.stop and eager, which outlives
   it, and is the same each time. */
void wp_stops_scout(struct wp_stops *, struct wp_target *scouts, size_t first,
    size_t n);

/* From now on calls.held is called: first, and each time that this is, for each
   process, by the next wp_stops_step. */
void wp_stops_begin_moving(struct wp_stops *);

/* From calls.held: as wp_target_move, in this process; of its target or of the
   scouts. */
int wp_stops_move(struct wp_stops *, pid_t pid, struct wp_target *,
    size_t watch, const struct wp_region *);

/* Whether nobody else has mapped what a process has there, as was seen when a
   watch moved; false: that is not known. */
bool wp_stops_owns(const struct wp_stops *, pid_t pid, uint64_t addr,
    uint64_t len);

/* Handle what threads report now.  1: there may be more; 0: nothing for now. */
int wp_stops_step(struct wp_stops *);

/* The next record, as of wp_rings_next.  all: also if others that came before
   have to wait for their values. */
const struct perf_event_header *wp_stops_next(struct wp_stops *,
    uint64_t horizon, bool all);

/* Whether any record waits to be delivered. */
bool wp_stops_pending(const struct wp_stops *);

/* When the hit was made that a thread stopped at last (ns; 0: none), on which
   processor, by which thread. */
uint64_t wp_stops_last(const struct wp_stops *, int *cpu, pid_t *tid);

/* From calls.hit: keep all threads of the process stopped until it returns.  0
   or -errno. */
int wp_stops_hold(struct wp_stops *, pid_t pid);

/* Whether a thread is stopped now, and will be until calls.hit returns. */
bool wp_stops_is_stopped(const struct wp_stops *, pid_t pid, pid_t tid);

/* As wp_target_count, over all threads that there were. */
int wp_stops_count(const struct wp_stops *, size_t watch,
    struct wp_perf_count *);

/* As wp_target_turn_off. */
void wp_stops_turn_off(struct wp_stops *, size_t watch);

struct wp_uptime;

/* For how long they were on, when all are disarmed (uptime.h). */
void wp_stops_uptime(const struct wp_stops *, struct wp_uptime *);

/* Disarm and release all threads.  Threads that cannot be released yet are
   released by the next wp_stops_step, or by the end of this process. */
void wp_stops_end(struct wp_stops *);

/* The same, but first stop a process as SIGSTOP does; it then is stopped. */
void wp_stops_leave(struct wp_stops *, pid_t pid);

/* Whether any thread is traced. */
bool wp_stops_busy(const struct wp_stops *);

void wp_stops_free(struct wp_stops *);

#endif
