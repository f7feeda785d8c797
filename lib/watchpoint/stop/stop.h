/*
 * stop: stops each thread of a process right after each of its hits, so that
 * memory can be read as the access left it.
 *
 * Overview.  All threads are traced.  Each thread, present or future, has
 * events of its own, which are not inherited.  They write into the rings as
 * always, and also send the thread a signal, one that programs ignore by
 * default.  The signal arrives before the thread's next instruction and stops
 * the thread, where the tracer takes the signal away.  While the thread is
 * stopped, its records are taken from the ring, and the watch's bytes are put
 * into them (value_sample.h); then the thread continues.
 *
 *	trap: sample into ring, signal -> stop: sample joined by value -> queue
 *
 * A thread that blocks the signal does not stop.  Its records are delivered
 * without a value, so nothing is lost if a stop does not come.  A stop that
 * comes late, somewhere else in the program, does not count as a stop at a hit.
 *
 * Exactness.  A value is exact if the thread is stopped right behind its
 * access, and since the previous value no other access to the watch was counted
 * in any thread.  Counts of running threads can be read for this: reading
 * interrupts the thread's processor, where an access and its trap are either
 * done or have not begun.
 *
 * Scouts.  A process may have more events of the same kind, of another target,
 * which show when watches may have to move: at a hit of one, all threads of the
 * process are held, and the owner may move watches before any thread continues.
 *
 * Death.  Stops are peeked at and not consumed, so if the tracing process is
 * killed, every thread continues, at most with a signal that it ignores; and
 * all events end.
 *
 * Its user is a process with one thread, which blocks SIGCHLD, does not ignore
 * it, and waits for it when there is nothing to do.
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

/* A process at a hit of its scouts.  Its threads are held. */
struct wp_stops_held {
	pid_t pid;
	uint64_t time;		/* since this time, ns, no thread runs; 0:
				   holding them took too long, and some may
				   still run */
	uint64_t pc;		/* the program counter of its only thread; 0: it
				   has more threads */
	uint64_t since;		/* for at least this long, ns, it has been the
				   only thread; 0: always */
};

/* The callbacks of the owner; all are called by wp_stops_step. */
struct wp_stops_calls {
	/* A thread is stopped at a hit, whose records are available
	   (wp_stops_next); kernel: a hit in a system call.  NULL: the thread
	   continues at once.  Result: whether the process is to be left stopped
	   (wp_stops_leave is to be called next). */
	bool (*hit)(void *arg, pid_t pid, pid_t tid, bool kernel);
	/* A process is stopped before the first instruction of another program
	   that it executes: it is not watched any more.  Result: whether it is
	   to stay stopped, having been made the target's command
	   (wp_target_adopt); otherwise it is released. */
	bool (*executed)(void *arg, pid_t pid);
	/* A process has ended, with this status as of waitpid(2); for a child
	   of ours this is the only report. */
	void (*ended)(void *arg, pid_t pid, int status);
	/* A warning for the user; unwatched: this thread is not watched, 0: all
	   are. */
	void (*warn)(void *arg, pid_t unwatched, const char *text);
	/* A hit of a scout, before its process is held; NULL: some were lost,
	   of any process. */
	void (*scouted)(void *arg, const struct wp_sample *);
	/* After that: until this returns all threads are held, and the owner
	   may call wp_stops_move.  All records up to now can be taken
	   (wp_stops_next). */
	void (*held)(void *arg, const struct wp_stops_held *);
	/* A thread is armed with watches first to first + n - 1, some of which
	   are at its own instance, found by its control block
	   (wp_target_local); or, !armed, it has ended.  NULL: nothing to do. */
	void (*local)(void *arg, const struct wp_thread *, size_t first,
	    size_t n, uint64_t block, bool armed);
};

/* Prepare for a target with options.stop, which must outlive this.  0 or
   -ENOMEM. */
int wp_stops_new(struct wp_stops **, struct wp_target *,
    const struct wp_stops_calls *, void *arg);

/*
 * Watch a running process, or the target's held command, by watches first to
 * first + n - 1: all its threads, present and future.  On failure nothing is
 * armed for it, and it continues (a command is still held): -errno with a
 * cause; but if it cannot be traced, the cause is left to the caller (NONE).
 */
int wp_stops_attach(struct wp_stops *, pid_t pid, size_t first, size_t n,
    struct wp_cause *);

/* Report, when a running process is attached, whether other processes share its
   memory and may write it unseen (sharers.h); the caller looked for them before
   attaching, and again since.  Until this report no values are known for the
   process. */
void wp_stops_lend(struct wp_stops *, pid_t pid, bool lent);

/* Give processes that are attached from now on watches first to first + n - 1
   of these scouts, too.  The scouts are a target with options.stop and eager,
   which must outlive this, and be the same in each call. */
void wp_stops_scout(struct wp_stops *, struct wp_target *scouts, size_t first,
    size_t n);

/* From now on, have calls.held called at hits of scouts; and after each call of
   this function by the next wp_stops_step, for each process. */
void wp_stops_begin_moving(struct wp_stops *);

/* As wp_target_move, in this process; only within calls.held.  The watch is one
   of its target or of the scouts. */
int wp_stops_move(struct wp_stops *, pid_t pid, struct wp_target *,
    size_t watch, const struct wp_region *);

/* Whether no other process maps what a process has at these addresses, as was
   seen when a watch moved.  False: that is not known. */
bool wp_stops_owns(const struct wp_stops *, pid_t pid, uint64_t addr,
    uint64_t len);

/* Handle what threads report now.  1: there may be more; 0: nothing for now. */
int wp_stops_step(struct wp_stops *);

/* The next record, as of wp_rings_next; all: even if earlier records still wait
   for their values. */
const struct perf_event_header *wp_stops_next(struct wp_stops *,
    uint64_t horizon, bool all);

/* Whether any record waits to be delivered. */
bool wp_stops_pending(const struct wp_stops *);

/* The time of the hit at which a thread stopped last (ns; 0: none), its
   processor, and its thread. */
uint64_t wp_stops_last(const struct wp_stops *, int *cpu, pid_t *tid);

/* Within calls.hit: keep all threads of the process stopped until it returns.
   0 or -errno. */
int wp_stops_hold(struct wp_stops *, pid_t pid);

/* Whether a thread is stopped now, and will be until calls.hit returns. */
bool wp_stops_is_stopped(const struct wp_stops *, pid_t pid, pid_t tid);

/* As wp_target_count, over all threads, including those that have ended. */
int wp_stops_count(const struct wp_stops *, size_t watch,
    struct wp_perf_count *);

/* As wp_target_turn_off. */
void wp_stops_turn_off(struct wp_stops *, size_t watch);

struct wp_uptime;

/* For how long the watches were on, when all are disarmed (uptime.h). */
void wp_stops_uptime(const struct wp_stops *, struct wp_uptime *);

/* Disarm and release all threads.  Threads that cannot be released yet are
   released by the next wp_stops_step, or by the end of this process. */
void wp_stops_end(struct wp_stops *);

/* The same, but first stop a process as SIGSTOP does; it stays stopped. */
void wp_stops_leave(struct wp_stops *, pid_t pid);

/* Whether any thread is traced. */
bool wp_stops_busy(const struct wp_stops *);

void wp_stops_free(struct wp_stops *);

#endif
