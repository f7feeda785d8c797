/*
 * target: processes under watch, and every event that watches them.
 *
 * Overview: a target is made with its watches and options, which allocates what
 * is slow to allocate; then processes are attached, or a command launched.  An
 * attached process is stopped while an event is opened for each slot, thread
 * and processor; threads made later inherit them in the kernel.  From then on
 * the processes run untouched, and go on should this process die.
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
	uint64_t block;		/* it is where the thread with this control
				   block has it, and other threads have it as
				   far from theirs; 0: all have the same */
	bool each;		/* or another one of its process is: each of its
				   threads has events of its own, which no other
				   one inherits */
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
 * Say what to watch in one process: all that it will have, before it is armed.
 * Regions are checked against the address space, split over slots and those
 * counted; a target has at most 65535 in its life.  Result: the index of the
 * first of these n watches; or -errno with a cause.
 */
int wp_target_watch(struct wp_target *, const struct wp_region *, size_t n,
    struct wp_cause *);

/* An execution watch that has not been armed is on these addresses, too, each
   of which takes a slot.  0, or -errno with a cause. */
int wp_target_places(struct wp_target *, size_t watch, const uint64_t *addr,
    unsigned n, struct wp_cause *);

/* Before it is armed: each thread has its own of what a watch is on, as far from
   its control block; this is that of the thread whose it is on.  Its process is
   armed while the caller traces it, who adds each new thread. */
void wp_target_local(struct wp_target *, size_t watch, uint64_t block);

/* Take back n watches from first on, of a process that has not been attached:
   those behind them move up. */
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
 * and those to come.  On failure nothing is armed for it and it runs on.
 */
int wp_target_attach(struct wp_target *, pid_t pid, size_t first, size_t n,
    struct wp_cause *);

/*
 * With options.everywhere: watch whatever runs on any processor, by watches
 * first to first + n - 1, which are of its time the only ones.  They may lie in
 * the kernel.  0 or -errno: nothing is armed.
 */
int wp_target_attach_everywhere(struct wp_target *, size_t first, size_t n);

/*
 * Start a command, held before its first instruction.  Then either
 * wp_target_arm it, or let it run on to where more of its modules are mapped.
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
 * *status; or -errno: -EINTR, there is no more patience (NULL: endless), and it
 * is held wherever it was, unless it sleeps where no stop reaches it.
 */
int wp_target_run_to(struct wp_target *, const uint64_t *addrs, size_t n,
    const struct wp_patience *, int *status);

/* Let a launched command, which is held at its first instruction, run on to
   where its first thread gets its control block, or is known to want none.  0,
   or as wp_target_run_to. */
int wp_target_run_to_storage(struct wp_target *, const struct wp_patience *,
    int *status);

/* Arm a launched command with all watches and let it go.  On failure it is
   still held, unless it ended or cannot be held. */
int wp_target_arm(struct wp_target *, struct wp_cause *);

/*
 * A process that this thread traces, and that is stopped at the end of its
 * execve(2), takes the place of a launched command, to be watched by what
 * wp_target_watch is called with from now on.  0; -EBUSY: there is a command
 * that is held; -ENOMEM.
 */
int wp_target_adopt(struct wp_target *, pid_t pid);

/* Whether a process is held, launched or adopted. */
bool wp_target_holds(const struct wp_target *, pid_t pid);

/* The same as wp_target_launch, in two steps for two threads: the one that
   holds the command must have started no other process in between. */
int wp_target_hold(struct wp_target *, struct wp_command *, const char *name,
    struct wp_cause *);

/* Hand a process that is held over to its caller. */
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
 * A thread of a process with watches of that kind, which the caller traces, is
 * stopped: arm it, unless it is; or it has ended.  Another thread than the
 * target's may call these.  How many events it has, which are written to *out
 * (malloc'd, for the caller to free); -ESRCH: it has ended; or -errno.
 */
int wp_target_add_thread(struct wp_target *, size_t first, size_t n, pid_t tid,
    struct wp_target_event **out);
void wp_target_drop_thread(struct wp_target *, size_t first, size_t n,
    pid_t tid);

/*
 * Have a thread that is traced stop in front of an address: an execution
 * breakpoint that sends it a signal which its program ignores.  While it blocks
 * that, it does not stop.  Result: its descriptor, which the signal names;
 * -EBUSY: the program handles all of these; or -errno.
 */
int wp_target_break(pid_t tid, uint64_t addr);

/* Let a launched command that is still held go on unwatched. */
void wp_target_let_go(struct wp_target *);

/* End a launched command that is still held, having run nothing of its own; let
   an adopted one go on. */
void wp_target_abandon(struct wp_target *);

/* What is armed.  Lives as long as the target. */
const struct wp_watched *wp_target_watches(const struct wp_target *, size_t *n);

/* How many threads were covered, and the longest time, in ms, for which a
   process was stopped; 0: they need not be, < 0: they could not be held. */
unsigned wp_target_threads(const struct wp_target *);
double wp_target_frozen_ms(const struct wp_target *);

/* Whether a watch is on processors, and not in threads. */
bool wp_target_is_on_processors(const struct wp_target *, size_t watch);

/* Whether what such a watch is of executed another program, as far as that is
   known before the watch ends. */
bool wp_target_executed(const struct wp_target *, size_t watch);

/* Threads that could not be vouched for: the process was traced by another, so
   it was not held, and a thread may have been missed or covered twice. */
bool wp_target_inexact(const struct wp_target *);

/* The options as fitted to what is possible here. */
const struct wp_options *wp_target_options(const struct wp_target *);

/* Whether BPF programs write the samples of all that is armed (but of what they
   leave to the kernel, sampler.h); and why options.bpf could not be had, with
   code 0 if it could or was not asked for. */
bool wp_target_bpf(const struct wp_target *);
const struct wp_cause *wp_target_no_bpf(const struct wp_target *);

/* Whether execution watches can be uprobes, as far as it is known without
   one. */
bool wp_target_uprobes(const struct wp_target *);

/* Try one, on a child that is made for it.  0, or -errno with a cause. */
int wp_target_try_uprobe(const struct wp_features *, struct wp_cause *);

/* Its rings; nothing comes with options.count. */
struct wp_rings *wp_target_rings(struct wp_target *);

/* The events of a slot: their attribute, and their ids (malloc'd, for the
   caller to free).  Result: how many; -ENOMEM. */
int wp_target_slot_ids(struct wp_target *, size_t watch, unsigned slot,
    struct perf_event_attr *, uint64_t **ids);

/* When, ns, the process that was attached last was, all of its threads being
   held: what it forks later is watched too, if options->follow. */
uint64_t wp_target_armed(const struct wp_target *);

/*
 * Have a watch that is armed lie elsewhere, in all threads, which go on: for a
 * moment it is on nowhere.  It takes at most as many slots as it has; address 0
 * is nowhere.  Events of options.bpf go on to say where they were.  One thread
 * at a time moves watches.  0, or -errno with a cause: where it is then is not
 * known.
 */
int wp_target_move(struct wp_target *, size_t watch, const struct wp_region *,
    struct wp_cause *);

/* Disarm watches first to first + n - 1, all of a process's, while others go
   on.  What they have counted, and for how long they were on, stays known. */
void wp_target_disarm(struct wp_target *, size_t first, size_t n);

/* Whether watches first to first + n - 1 still watch any process: false once
   every thread and process that they cover has ended, or executed another
   program.  Asking takes a pending POLLIN from the rings, so look at those
   too. */
bool wp_target_alive(struct wp_target *, size_t first, size_t n);

/* Disarm one watch, while others of its process stay armed: from now on it hits
   no more.  It keeps its slots. */
void wp_target_turn_off(struct wp_target *, size_t watch);

/*
 * A thread has ended.  If its process goes on, and uprobes there were opened on
 * it, they are opened on another one: between the two nothing is seen.  How
 * many; or -errno: there are some that see nothing any more.
 */
int wp_target_thread_ended(struct wp_target *, pid_t tid);

/* Disarm: nothing is counted any more.  Processes run on. */
void wp_target_stop(struct wp_target *);

/*
 * Hits of one watch so far, over all threads: counted, and of these lost in
 * delivery (0 where the kernel does not say).  -EINVAL: no such watch.
 */
int wp_target_count(const struct wp_target *, size_t watch,
    struct wp_perf_count *);

/* Of hits with this stack a short copy of it is enough; and that is not known
   any more of those of a process, since it maps other code; 0: of all.  False:
   it makes no sense. */
bool wp_target_know(struct wp_target *, const struct wp_known_stack *);
void wp_target_forget(struct wp_target *, pid_t);

/* Hits of one watch, thread and known stack that were only counted. */
struct wp_target_tally {
	uint32_t watch, stack;	/* as of struct wp_known_stack */
	uint32_t source;	/* enum wp_known_source */
	pid_t pid, tid;
	uint64_t count;
	uint64_t first, last;	/* ns: these, and what is below, are of all
				   since counting began */
	uint64_t values;	/* of so many hits the value is known: of those
				   that count has; */
	bool has_first, has_last;	/* of the first, and the last */
	uint64_t first_value, last_value;
	uint64_t least, largest;	/* of those, as numbers without a
					   sign, */
	int64_t least_signed, largest_signed;	/* and with one */
};

/* With options.tally: a process has mapped something there (from its first byte
   to the one behind its last) at this time, ns. */
void wp_target_remapped(struct wp_target *, pid_t, uint64_t from, uint64_t to,
    uint64_t time);

/* Look at what was counted: what was there at the last look is certain, once
   mappings are known up to then; they are up to the horizon, ns.  True:
   programs have no room any more, so it should be taken. */
bool wp_target_look_at_tallies(struct wp_target *, uint64_t horizon);

/* fn is called with each that has hits which were not shown or taken: as they
   were when they were last looked at. */
void wp_target_show_tallies(struct wp_target *,
    void (*fn)(void *arg, const struct wp_target_tally *), void *arg);

/* The same of all that was counted by now, and counting begins anew. */
void wp_target_take_tallies(struct wp_target *,
    void (*fn)(void *arg, const struct wp_target_tally *), void *arg);

/* What is found by comparing tickets with the counts. */
struct wp_ticket_mark {
	uint64_t all;		/* each access that takes no number up to upto
				   was made after this one was taken, and was
				   seen if before */
	uint64_t upto;		/* samples of numbers up to this are in their
				   rings by: */
	uint64_t time;		/* ns, CLOCK_MONOTONIC */
	uint64_t missed;	/* hits that took none, newly found */
	uint64_t taken;		/* numbers, before the counts were looked at */
	/* as records, for who reads the samples, to be taken at that time: the
	   first one if there are such hits */
	_Alignas(8) uint8_t lost[64], record[96];
};

/*
 * Compare those of a watch of one slot with what its events have counted,
 * unless it has taken no more than its last mark says.  This alone may be
 * called by another thread.  1; 0: there is nothing to say, or they are hit too
 * often for that, or events count that have no program; -ENOENT: there is no
 * such watch; -EBUSY: not now.
 */
int wp_target_mark(struct wp_target *, size_t watch, uint64_t done,
    struct wp_ticket_mark *);

/* How often a thread hit a watch. */
struct wp_thread_count {
	uint64_t watch;		/* its index */
	pid_t pid, tid;
	uint64_t count;
};

/* With options.count and options.bpf, where that can be had: of each thread
   that hit a watch, also of those that have ended; by watches, the most
   frequent first.  What is missing to a watch's count is of threads that are
   not known.  The array is malloc'd, for the caller to free.  How many;
   -ENOMEM. */
ssize_t wp_target_thread_counts(const struct wp_target *,
    struct wp_thread_count **);

struct wp_uptime;

/* For how long they were on, once they are stopped (uptime.h). */
void wp_target_uptime(const struct wp_target *, struct wp_uptime *);

/* Stop, close, free. */
void wp_target_free(struct wp_target *);

#pragma GCC visibility pop

/* The identifier that samples of a slot of a watch have with options.stop. */
static inline uint64_t
wp_target_stop_id(size_t watch, unsigned slot)
{
	return (uint64_t)watch * WP_SLOTS_MAX + slot + 1;
}

#endif
