/*
 * target: processes under watch, and every event that watches them.
 *
 * Overview: a target is created with its options and watches, which allocates
 * what is slow to allocate; then processes are attached, or a command is
 * launched.  An attached process is stopped while an event is opened for each
 * slot, thread and processor; threads created later inherit them in the kernel.
 * From then on the processes run undisturbed, and continue if this process
 * dies.
 *
 *	wp_target_new -> wp_target_attach, ... or wp_target_launch
 *	    -> wp_rings_next ... -> wp_target_stop -> wp_target_free
 *
 * One thread uses a target.  No function is async-signal-safe.
 */
#ifndef WP_TARGET_H
#define WP_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/attr.h"
#include "os/cause.h"
#include "os/known_stack.h"
#include "os/perf.h"
#include "ring/ring.h"
#include "os/slot.h"

#pragma GCC visibility push(default)

/* One watch: a region, and the slots it was planned into. */
struct wp_watched {
	struct wp_region region;
	struct wp_slot slot[WP_SLOTS_MAX];
	unsigned nslots;
	uint64_t block;		/* it is thread-local: this is the control block
				   of the thread whose instance region is, and
				   other threads have theirs at the same
				   distance from their control blocks; 0: it is
				   not */
	bool each;		/* it, or another watch of its process, is
				   thread-local: each thread has events of its
				   own, which no other thread inherits */
	bool first;		/* of its process: the events of its first slot
				   also report maps, names, forks and exits */
	/* the region's first bytes when the watch began, read while no thread
	   could write them; nbefore 0: that could not be had */
	uint8_t before[WP_SLOTS_MAX * 8];
	unsigned nbefore;
	struct wp_perf_count past;	/* of events that are closed */
	bool off;		/* it was disarmed, by itself */
	bool uprobe;		/* of execution: it takes no slot */
	bool on_processors;	/* options.processors: of each */
};

struct wp_target;
struct wp_command;		/* of ptrace/ptrace.h, which is not installed */
struct wp_hold;
struct wp_patience;

/*
 * A new target.  Rings are allocated (the smallest with options->count).  0 or
 * -errno with a cause.
 */
int wp_target_new(struct wp_target **, const struct wp_features *,
    const struct wp_options *, struct wp_cause *);

/*
 * Declare all watches of one process, before it is armed.  Regions are checked
 * against the address space, split over slots and those counted; a target has
 * at most 65535 in its life.  Result: the index of the first of these n
 * watches; or -errno with a cause.
 */
int wp_target_watch(struct wp_target *, const struct wp_region *, size_t n,
    struct wp_cause *);

/* Put an execution watch that has not been armed on these addresses, too, each
   of which takes a slot. 0, or -errno with a cause. */
int wp_target_places(struct wp_target *, size_t watch, const uint64_t *addr,
    unsigned n, struct wp_cause *);

/* Before a watch is armed: declare that it is on a thread-local variable, of
   which each thread has its instance at the same distance from its control
   block. block is the control block of the thread whose instance the watch's
   region is.  The caller traces the process while it is armed, and adds each
   new thread. */
void wp_target_local(struct wp_target *, size_t watch, uint64_t block);

/* Remove n watches from first on, of a process that has not been attached;
   those after them move up. */
void wp_target_unwatch(struct wp_target *, size_t first, size_t n);

/* Whether a process can be attached at all, as far as is known without
   trying: 0, or -errno with a cause (no such process, a thread, a zombie, a
   kernel thread, this very process). */
int wp_target_check(pid_t pid, struct wp_cause *);

/* Whether the bytes of a region are mapped in a process now: 0, or -EFAULT with
   a cause (unmapped, not canonical, in the kernel). */
int wp_target_mapped(pid_t pid, const struct wp_region *, struct wp_cause *);

/*
 * Watch a running process, by watches first to first + n - 1: all its threads,
 * including future ones.  On failure nothing is armed for it, and it continues.
 * 0, or -errno with a cause.
 */
int wp_target_attach(struct wp_target *, pid_t pid, size_t first, size_t n,
    struct wp_cause *);

/*
 * With options.everywhere: watch whatever runs on any processor, by watches
 * first to first + n - 1, which must be the only ones at that time.  They may
 * lie in the kernel. 0 or -errno: nothing is armed.
 */
int wp_target_attach_everywhere(struct wp_target *, size_t first, size_t n);

/*
 * Start a command, held before its first instruction.  Then either call
 * wp_target_arm, or let it run on to where more of its modules are mapped. 0,
 * or -errno with a cause.
 */
int wp_target_launch(struct wp_target *, char *const argv[], pid_t *pid,
    struct wp_cause *);

/* Why a command could not be started, by the -errno of wp_hold_command or
   wp_command_hold. */
int wp_launch_explain(int err, const char *name, struct wp_cause *);

/*
 * Let a launched command run on until it is about to execute one of n addresses
 * (0: not an address), at most 4.  Result: the index of that one, and the
 * command is held there; -ECHILD: it ended first, its wait status is in
 * *status; or -errno; -ENOSPC: others hold the slots, and there are no uprobes
 * either; -EINTR: the patience is over (NULL: never), and the command is held
 * wherever it was, unless it sleeps where no stop reaches it.
 */
int wp_target_run_to(struct wp_target *, const uint64_t *addrs, size_t n,
    const struct wp_patience *, int *status);

/* Why that failed with -errno: that, and a cause. */
int wp_target_explain_stop(const struct wp_target *, int err,
    struct wp_cause *);

/* Why an event of these watches could not be opened for a thread. */
int wp_target_explain(const struct wp_target *, size_t first, size_t n, int err,
    pid_t tid, struct wp_cause *);

/* Let a launched command, which is held at its first instruction, run on until
   its first thread has its control block, or is known to need none. 0, or as
   wp_target_run_to. */
int wp_target_run_to_storage(struct wp_target *, const struct wp_patience *,
    int *status);

/* Arm a launched command with all watches and release it.  On failure it is
   still held, unless it ended or cannot be held. 0, or -errno with a cause. */
int wp_target_arm(struct wp_target *, struct wp_cause *);

/*
 * A process that this thread traces, and that is stopped at the end of its
 * execve(2), takes the place of a launched command, to be watched by the
 * following calls of wp_target_watch. 0; -EBUSY: there is a command that is
 * held; -ENOMEM.
 */
int wp_target_adopt(struct wp_target *, pid_t pid);

/* Whether a process is held, launched or adopted. */
bool wp_target_holds(const struct wp_target *, pid_t pid);

/* The same as wp_target_launch, in two steps for two threads: the one that
   holds the command must have started no other process in between. */
int wp_target_hold(struct wp_target *, struct wp_command *, const char *name,
    struct wp_cause *);

/* Hand a held process over to the caller. */
void wp_target_give(struct wp_target *, struct wp_hold *);

/* Arm the threads of a process that the caller holds with watches first to
   first + n - 1.  They stay held.  0 or -errno with a cause. */
int wp_target_arm_held(struct wp_target *, struct wp_hold *, pid_t pid,
    size_t first, size_t n, struct wp_cause *);

/* An event of a thread. */
struct wp_target_event {
	size_t watch;
	unsigned slot;
	uint64_t id, addr;
};

/*
 * Arm a stopped thread of a process with such watches, which the caller traces,
 * unless it is armed already; or forget a thread that has ended.  Threads other
 * than the target's may call these.  Result: the number of its events, which
 * are stored in *out (malloc'd, for the caller to free); -ESRCH: it has ended;
 * or -errno.
 */
int wp_target_add_thread(struct wp_target *, size_t first, size_t n, pid_t tid,
    struct wp_target_event **out);
void wp_target_drop_thread(struct wp_target *, size_t first, size_t n,
    pid_t tid);

/*
 * Make a traced thread stop before it executes an address, by an execution
 * breakpoint that sends it a signal which its program ignores.  While the
 * thread blocks the signal, it does not stop.  Result: the descriptor of the
 * breakpoint, or of a uprobe where there are no slots (one instruction later),
 * which the signal carries, for the caller to close; -EBUSY: the program
 * handles all suitable signals; or -errno.
 */
int wp_target_break(const struct wp_target *, pid_t tid, uint64_t addr);

/* Let a launched command that is still held continue unwatched. */
void wp_target_let_go(struct wp_target *);

/* Kill a launched command that is still held, before it has run any of its own
   code; let an adopted process continue. */
void wp_target_abandon(struct wp_target *);

/* The watches, in order of their indexes.  They belong to the target, and live
   as long as it does. */
const struct wp_watched *wp_target_watches(const struct wp_target *, size_t *n);

/* The number of threads that were covered, and the longest time, in ms, for
   which a process was stopped; 0: no process had to be stopped, < 0: one could
   not be held. */
unsigned wp_target_threads(const struct wp_target *);
double wp_target_frozen_ms(const struct wp_target *);

/* Whether a watch is on processors, and not in threads. */
bool wp_target_is_on_processors(const struct wp_target *, size_t watch);

/* Whether the process of such a watch executed another program, as far as that
   is known before the watch ends. */
bool wp_target_executed(const struct wp_target *, size_t watch);

/* Whether a thread may have been missed or covered twice, because another
   process traced the process, so that it was not held. */
bool wp_target_inexact(const struct wp_target *);

/* The options as fitted to what is possible here. */
const struct wp_options *wp_target_options(const struct wp_target *);

/* Whether BPF programs write the samples of all armed watches (except those
   that they leave to the kernel, see sampler.h); and the reason why options.bpf
   is not possible, with code 0 if it is, or was not requested. */
bool wp_target_bpf(const struct wp_target *);
const struct wp_cause *wp_target_no_bpf(const struct wp_target *);

/* Whether execution watches can be uprobes, as far as this is known without
   trying one. */
bool wp_target_uprobes(const struct wp_target *);

/* Try a uprobe, on a child that is created for it. 0, or -errno with a
   cause. */
int wp_target_try_uprobe(const struct wp_features *, struct wp_cause *);

/* The rings of a target, which belong to it; with options.count they get no
   samples. */
struct wp_rings *wp_target_rings(struct wp_target *);

/* Leave out those rings on whose processors what is watched by events of
   processors is not seen (wp_events_check_processors), after opening the events
   of processors that came online (wp_rings_returned). */
void wp_target_check_processors(struct wp_target *);

/* The events of a slot: their attribute, and their ids (malloc'd, for the
   caller to free).  Result: how many; -ENOMEM. */
int wp_target_slot_ids(struct wp_target *, size_t watch, unsigned slot,
    struct perf_event_attr *, uint64_t **ids);

/* The time, ns, at which the process that was attached last was armed, with all
   of its threads held: with options->follow, children that it forks later are
   watched too. */
uint64_t wp_target_armed(const struct wp_target *);

/*
 * Move an armed watch to another address, in all threads, which continue; for a
 * moment it is off.  It may take at most as many slots as it has; address 0
 * turns it off.  Samples of options.bpf still have the old address.  Only one
 * thread at a time may move watches.  0, or -errno: the address is then not
 * known.
 */
int wp_target_move(struct wp_target *, size_t watch, const struct wp_region *);

/* Disarm watches first to first + n - 1, which are all of a process, while
   others continue.  Their counts and uptime remain available. */
void wp_target_disarm(struct wp_target *, size_t first, size_t n);

/* Whether watches first to first + n - 1 still watch any process: false once
   every thread and process that they cover has ended, or executed another
   program.  The call takes a pending POLLIN from the rings, so read those
   too. */
bool wp_target_alive(struct wp_target *, size_t first, size_t n);

/* Disarm one watch, while others of its process stay armed: it has no more
   hits.  It keeps its slots. */
void wp_target_turn_off(struct wp_target *, size_t watch);

/*
 * Report that a thread has ended.  If its process continues, and uprobes there
 * were opened on this thread, they are opened on another one; calls in between
 * are not seen.  Result: the number of these uprobes; or -errno: some of them
 * see nothing any more.
 */
int wp_target_thread_ended(struct wp_target *, pid_t tid);

/* Disarm all watches: nothing is counted any more.  Processes continue. */
void wp_target_stop(struct wp_target *);

/*
 * Hits of one watch so far, over all threads: counted, and of these lost in
 * delivery (0 where the kernel does not say).  -EINVAL: no such watch.
 */
int wp_target_count(const struct wp_target *, size_t watch,
    struct wp_perf_count *);

/* Declare that a short copy of this stack is sufficient for hits with it
   (false: the stack is not valid), and withdraw this for all stacks of a
   process, because it maps other code; 0: of all processes. */
bool wp_target_know(struct wp_target *, const struct wp_known_stack *);
void wp_target_forget(struct wp_target *, pid_t);

/* Hits of one watch, thread and known stack that were only counted. */
struct wp_target_tally {
	uint32_t watch, stack;	/* as of struct wp_known_stack */
	uint32_t source;	/* enum wp_known_source */
	pid_t pid, tid;
	uint64_t count;
	uint64_t first, last;	/* ns: these, and the members below, are of all
				   hits since counting began */
	uint64_t values;	/* the number of hits, of those in count, whose
				   value is known */
	bool has_first, has_last;	/* the value of the first, and of the
					   last hit is known */
	uint64_t first_value, last_value;
	uint64_t least, largest;	/* of the known values, as unsigned
					   numbers, */
	int64_t least_signed, largest_signed;	/* and as signed ones */
};

/* With options.tally: report that a process has mapped something at from up to,
   not including, to, at this time, ns. */
void wp_target_remapped(struct wp_target *, pid_t, uint64_t from, uint64_t to,
    uint64_t time);

/* Read the counts.  The counts of the previous call are certain, if all
   mappings up to that time are known; they are known up to the horizon, ns.
   True: the programs have no room any more, so the counts should be taken. */
bool wp_target_look_at_tallies(struct wp_target *, uint64_t horizon);

/* Call fn with each tally that has hits which were not shown or taken yet, as
   of the last reading. */
void wp_target_show_tallies(struct wp_target *,
    void (*fn)(void *arg, const struct wp_target_tally *), void *arg);

/* The same for everything that was counted until now, and begin to count
   anew. */
void wp_target_take_tallies(struct wp_target *,
    void (*fn)(void *arg, const struct wp_target_tally *), void *arg);

/* The result of comparing tickets with the counts. */
struct wp_ticket_mark {
	uint64_t all;		/* each access without a number up to upto was
				   made after this number was taken; each access
				   before that was seen */
	uint64_t upto;		/* samples of numbers up to this are in their
				   rings by: */
	uint64_t time;		/* ns, CLOCK_MONOTONIC */
	uint64_t missed;	/* hits that took none, newly found */
	uint64_t taken;		/* numbers taken before the counts were read */
	/* the mark as records for the reader of the samples, to be taken at
	   that time; the first one only if there are missed hits */
	_Alignas(8) uint8_t lost[64], record[96];
};

/*
 * Compare the tickets of a watch of one slot with the counts of its events,
 * unless it has taken no more than its last mark had.  Only this function may
 * be called by another thread. 1: there is a mark; 0: there is none, because
 * nothing is new, hits come too often, or some events have no program; -ENOENT:
 * there is no such watch; -EBUSY: not possible now.
 */
int wp_target_mark(struct wp_target *, size_t watch, uint64_t done,
    struct wp_ticket_mark *);

/* The number of hits of a watch by a thread. */
struct wp_thread_count {
	uint64_t watch;		/* its index */
	pid_t pid, tid;
	uint64_t count;
};

/* With options.count and options.bpf, where that is possible: the counts of
   each thread that hit a watch, including those that have ended; by watches,
   the most frequent first.  If they are less than a watch's count, the rest
   belongs to unknown threads.  The array is malloc'd, for the caller to free.
   Result: its length; -ENOMEM. */
ssize_t wp_target_thread_counts(const struct wp_target *,
    struct wp_thread_count **);

struct wp_uptime;

/* For how long the watches were on, after wp_target_stop (uptime.h). */
void wp_target_uptime(const struct wp_target *, struct wp_uptime *);

/* Stop, close all events and free the target. */
void wp_target_free(struct wp_target *);

#pragma GCC visibility pop

/* The identifier that samples of a slot of a watch have with options.stop. */
static inline uint64_t
wp_target_stop_id(size_t watch, unsigned slot)
{
	return (uint64_t)watch * WP_SLOTS_MAX + slot + 1;
}

#endif
