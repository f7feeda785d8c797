/*
 * run: the state of one watch of live processes, which its stages share.  In
 * order, they are:
 *
 *	watchctl/watch.c	begins and ends it
 *	setup			from the command line to armed watches
 *	deliver			how hits are delivered: by rings, by a stop at
 *				each, or by debug registers
 *	pending, follow		what comes or moves meanwhile
 *
 * This room has what all of them use:
 *
 *	run.c			when it sleeps, goes on and ends
 *	process.c		its processes and their watches
 *	run_children.c		what becomes of these
 *	initial_values.c	what was in memory before
 *	hit_action.c		what is done at a hit (--on-hit)
 *	perf_output.c		-o perf
 */
#ifndef RUN_H
#define RUN_H

#include <pthread.h>
#include <stdatomic.h>

#include "os/cause.h"
#include "os/filter.h"
#include "action/on_hit.h"
#include "broker/live_broker.h"
#include "processes/search_misses.h"
#include "processes/synthetic_records.h"
#include "session/session.h"
#include "remote/remote_session.h"
#include "attach/target.h"
#include "processes/selected.h"
#include "processes/descendants.h"
#include "processes/children.h"

struct arrivals;
struct exec_tracer;
struct follow;
struct held_modules;
struct mappers;
struct objects;
struct process;
struct rotate;
struct run;

/* The pid of the single process that stands for all in a run that watches
   everything. */
#define EVERYWHERE (-1)

/* ms between checks, where nothing wakes the loop. */
enum { RUN_LOOK_MS = 20 };

/* A way of delivering hits. */
struct run_ops {
	const char *mode;	/* its name in the report */
	bool registers;		/* it sets debug registers instead of opening
				   events */
	/* No event can be opened, for this cause: if another way can do what is
	   asked for, choose it, and set run->features accordingly.  0; -errno
	   with this or another cause.  NULL: there is no other way. */
	int (*without_events)(struct run *, struct wp_cause *);
	/* Prepare, once there is a target; may be NULL.  0, or -errno after a
	   line on stderr. */
	int (*open)(struct run *);
	/* Start the command, held; without a command, start what is needed
	   before watches are resolved.  0 or -errno with a cause. */
	int (*launch)(struct run *, struct wp_cause *);
	/* Watch one process, or the held command.  0 or -errno with a cause. */
	int (*attach)(struct run *, const struct process *, struct wp_cause *);
	/* The number of threads that were covered at the beginning. */
	unsigned (*threads)(const struct run *);
	/* Take all records that exist, because a process executes another
	   program now; if it has been watched, also report what --last
	   keeps. */
	void (*settle)(struct run *, bool watched);
	/* Let a held process continue, armed with its watches if it has any; be
	   notified when it executes another program or calls its loader's
	   hook.  0 or -errno with a cause. */
	int (*pass)(struct run *, const struct process *, struct wp_cause *);
	/* What only the tracer of this thread can do; false: it is not stopped
	   at a hit.  NULL: no thread ever is. */
	bool (*tracer)(struct run *, pid_t pid, pid_t tid,
	    struct on_hit_tracer *);
	/* Disarm one watch, by its index in the target.  NULL: it stays armed,
	   and its hits are not reported. */
	void (*turn_off)(struct run *, size_t watch);
	/* A process that had been running is armed, and it is known whether
	   others have its memory (lent).  NULL: not needed. */
	void (*lend)(struct run *, const struct process *);
	/* Watch pointers, by watches of a separate target, in a process that is
	   about to be attached.  0 or -errno with a cause. */
	int (*scout)(struct run *, struct wp_target *, pid_t, size_t first,
	    size_t n, struct wp_cause *);
	/* Move a watch of either target.  0 or -errno. */
	int (*move)(struct run *, pid_t, struct wp_target *, size_t watch,
	    const struct wp_region *);
	/* Whether it is certain that since the call of lend no other process
	   maps these bytes.  NULL: never. */
	bool (*owns)(const struct run *, pid_t, uint64_t addr, uint64_t len);
	/* Print what this way does not watch. */
	void (*announce)(struct run *);
	/* Report hits until there is a reason to end; then disarm. */
	void (*loop)(struct run *);
	/* Add as lost what was counted and not delivered.  NULL: everything
	   counted is delivered.  0 or -ENOMEM. */
	int (*account)(struct run *);
	/* Afterwards: for how long watches were on.  NULL: unknown. */
	void (*uptime)(const struct run *, struct wp_uptime *);
	/* Free what open and launch created; a command that was not watched yet
	   ends.  May be NULL. */
	void (*close)(struct run *);
};

struct run {
	const struct options *options;
	const struct run_ops *ops;
	void *own;			/* the state of ops; NULL: none */
	struct wp_features features;
	struct wp_cause no_breakpoints;	/* why uprobes watch all there is to
					   watch; code 0: they need not */
	struct wp_filter filter;	/* the part of --if that the kernel
					   evaluates */
	struct wp_target *target;
	struct live_broker live;	/* explainers that resolve SPECs */
	struct session session;
	struct remote_session *remote;	/* NULL: a recording is made */
	struct ex_formats *formats;	/* of the armed events */
	struct synthetic_records synthetic;	/* the state before the watch */
	struct process {
		pid_t pid;
		char comm[64];		/* its name when it was last learned */
		size_t first, n;	/* its watches: one for each SPEC,
					   and */
		bool rotates;		/* more for SPECs that rotate; or */
		bool some;		/* those for the SPECs found there;
					   or */
		bool program;		/* those of a program executed during
					   the watch, */
		uint64_t since;		/* since this time, ns, */
		bool alone;		/* which is no longer traced: */
		size_t spec[WP_SLOTS_MAX];	/* the SPECs, if any of these is
						   set; */
		uint64_t hook;		/* its loader's hook, called when a
					   module was mapped; 0: no SPEC waits
					   for one */
		bool *waits;		/* by SPEC: it waits; NULL: none */
		bool module;		/* a waiting SPEC was found in a
					   module */
		bool each;		/* its threads are traced, and armed one
					   by one */
		struct spec_place *place;	/* by SPEC: its place in the
						   process */
		long threads;		/* covered threads, by records of their
					   creation and end */
		uint64_t seen;		/* ns: it was last known to be armed */
		bool executed;		/* it has executed another program,
					   which was reported, or is
					   expected to have the SPECs */
		bool replaced;		/* it has ended, and another watched
					   process has its number */
		bool disarmed;		/* it has ended, and others continue */
		bool lent;		/* other processes have had its memory
					   since before it was watched: */
		pid_t sharer;		/* one of these that is not watched; 0:
					   none */
	} *process;			/* nprocesses of them */
	size_t nprocesses;
	struct selected chosen;		/* the processes of -p */
	struct follow *follow;		/* --follow; NULL: not given */
	struct instances {		/* instances of thread-local
					   variables */
		struct instance {
			unsigned whole;	/* the id of the variable's watch */
			uint64_t addr;
		} *at;
		size_t n, cap;
		pthread_mutex_t lock;	/* of what follows: */
		struct instances_said {	/* news of a thread (instances.h) that
					   were not processed yet */
			struct wp_target_event event;
			uint64_t time;	/* ns */
			pid_t pid, tid;
			bool left;
		} *said;
		size_t nsaid, said_cap;
		bool starved;		/* news were lost for want of memory */
		atomic_bool any;	/* there are news */
	} instances;
	struct held_modules *held_modules;	/* modules mapped while threads
						   stop at hits; NULL: not
						   awaited */
	struct rotate *rotate;		/* --slots rotate; NULL: not given */
	struct objects *objects;	/* alloc:; NULL: not given */
	uint64_t wake;			/* the loop must wake up by then, ns; 0:
					   no limit */
	struct arrivals *arrivals;	/* new processes; NULL: not watched */
	struct executions {		/* programs in which the SPECs were not
					   found yet */
		struct executed {
			pid_t pid;
			uint64_t time;	/* ns: it was noticed, and */
			uint64_t after;	/* executed after this time */
		} *executed;
		size_t n, cap;
		bool children;		/* what children execute is watched */
	} executions;
	struct wp_cause skipped;	/* why a new process could not be
					   watched at the beginning, and */
	pid_t skipped_pid;		/* which; 0: none */
	struct mappers *mappers;	/* shm: and file:, processes that map
					   them; NULL: no such SPEC */
	unsigned threads_made;		/* new threads under watch, by
					   records */
	struct children children;	/* children that are not watched */
	struct descendants descendants;	/* children that are watched, with -f */
	bool child_reported;		/* it was reported that an unwatched
					   child runs on */
	bool each;			/* each thread has its own instance of
					   the variable */
	bool waits;			/* nothing is armed until a program with
					   the SPECs is executed */
	size_t npending;		/* the session's first watches, which
					   stand for pending SPECs */
	size_t *described;		/* by watch of the target: the session's
					   watch, */
	size_t ndescribed, described_cap;	/* for this many */
	bool found;			/* a program with the SPECs was
					   executed */
	bool refused;			/* the command was ended because it
					   lacks a required SPEC */
	struct search_misses absent;		/* sets of files without any
						   SPEC */
	bool missed_module;		/* a module may have been mapped
					   unseen; */
	pid_t missed_child;		/* this process mapped one unwatched; 0:
					   none */
	struct exec_tracer *tracer;	/* traces processes without watches; may
					   be NULL */
	bool unprivileged_reported;	/* it was reported that a process runs
					   without privileges that its file
					   gives */
	struct on_hit on_hit;		/* --on-hit's state while its action is
					   enabled */
	bool missed;			/* it was reported that a hit had no
					   action */
	struct {			/* the thread stopped at its hit, until
					   run_act_pass */
		pid_t pid, tid;		/* tid 0: none */
	} stopped;
	pid_t command;			/* the launched command; 0: none */
	int command_status;		/* as of waitpid(2); < 0: it still
					   runs */
	struct pollfd *poll;		/* descriptors of signals, processes,
					   rings and the tracer; npoll */
	size_t npoll;
	uint64_t began;			/* ns */
	uint64_t also;			/* hits known from samples of another
					   watch (before.h) */
	bool uncovered_reported;	/* it was reported that a processor is
					   not watched */
	uint64_t processors_looked;	/* ns: when processors were checked
					   last */
	long counted_hits_due;		/* ms: when the counts are checked
					   next */
	unsigned counted_hits_looks;
	bool crashed;			/* a process was killed by a signal,
					   which is not reported yet */
	uint64_t release;		/* --last: hits from before this time,
					   ns, are to be reported, for this
					   reason; */
	const char *release_reason;	/* NULL: none are */
	const char *reason;		/* why the run ended; NULL: it has
					   not */
	bool failed;			/* it ended early because the process
					   that delivers hits was killed */
	uint64_t *counts;		/* --count: the hits of each watch, at
					   the end */
};

/* ms until the time of -t is over; without -t a time longer than any run. */
double run_left_ms(const struct run *);

/* The same for callers that count in int; 0: there is no -t. */
int run_left_for_wait(const struct run *);

/* Whether the loop will end or handle a signal as soon as it is reached: then
   start nothing that takes long. */
bool run_is_ending(const struct run *);

/* For slow operations in the loop's thread: take signals, and check the time.
   Result: whether the run continues. */
bool run_goes_on(struct run *);

/* Handle the signals that have arrived. */
void run_take_signals(struct run *);

/* Handle a signal for watchctl: end, or pass it to the command. */
void run_signal(struct run *, int sig);

/* For how many ms the loop may sleep, at most ms. */
int run_sleep_ms(const struct run *, int ms);

/* Sleep for a limited time until an event on a poll set.  Its first descriptor
   is that of the signals, which are handled. */
void run_poll(struct run *, struct pollfd *, size_t n);

/* Begin a round in which waiting threads are released
   (remote/remote_session.h), if there are any. */
void run_round(struct run *);

/* Decode a record.  False: ignore it; records of unknown events are counted. */
bool run_decode(struct run *, const struct perf_event_header *,
    struct ex_record *);

/* Set the reason to end when the time of -t is over. */
void run_check_time(struct run *);

/* Have the kept hits (--last) reported when everything from before now has
   arrived. */
void run_release(struct run *, const char *reason);

/* Report, once, that a process which executed a program while traced runs
   without privileges that the file gives. */
void run_check_privileges(struct run *, pid_t);

/* Report, once, that a process executed another program; the last one with this
   id. */
void run_executed(struct run *, struct process *);
void run_pid_executed(struct run *, pid_t);

/* Children that are not watched: track those of a process, as far as needed;
   process a record of a creation; check what has become of them. */
void run_track_children(struct run *, const struct process *);
void run_take_child(struct run *, const struct ex_record *);
void run_check_children(struct run *);

/* Decide about them finally, when the watch has ended. */
void run_settle_children(struct run *);

/* Process the end of a thread, and with it of its instance of a thread-local
   variable. */
void run_take_thread_end(struct run *, const struct ex_record *);

/* A child that was watched executes another program, which is not; the first
   one is reported. */
void run_child_executed(struct run *, const struct child *);

/* Children that are watched, in a run whose status has to vouch for them:
   process a record; note that the watch is about to end, when all records from
   before this time, ns, have been processed; and, when all have been, report
   one that executed another program. */
void run_take_descendant(struct run *, const struct ex_record *);
void run_leave_descendants(struct run *, uint64_t since);
void run_settle_descendants(struct run *);

/* The region of a SPEC, by its index, in a process where it was found. */
struct wp_region run_region(const struct run *, const struct process *,
    size_t i);

/* Add records of a process's present mappings, and learn them; executed:
   earlier ones no longer hold.  Even of a process that may not be inspected the
   name is learned.  0 or -errno, in that case -EACCES or -EPERM. */
int run_learn_records(struct run *, pid_t, bool executed);

/* The same, and the name, for a process that shall be watched.  0 or -errno
   with a cause. */
int run_learn(struct run *, struct process *, bool executed,
    struct wp_cause *);

/* Pass an armed watch of a process to the session.  Result: the number of its
   events, which a recording needs, with ids to be freed; or -errno. */
int run_describe_watch(struct run *, const struct process *, size_t w,
    struct ex_perf_event *events);

/* Describe an armed watch of a process to a session that has begun.  0 or
   -errno. */
int run_describe_armed(struct run *, const struct process *, size_t w);

/* Add a process.  NULL: out of memory. */
struct process *run_new_process(struct run *, pid_t);

/* The process that has a watch of the target; and a session's watch of a SPEC,
   by its index; NULL: none. */
const struct process *run_process_of(const struct run *, size_t w);
const struct ex_watch *run_spec_watch(const struct run *, size_t i);

/* Whether the process was watched as another program before. */
bool run_has_executed(const struct run *, pid_t);

/* The SPEC of a watch of a process, by its index in the target. */
size_t run_spec_of(const struct process *, size_t w);

/* The session's watch for a watch of the target; its index; and the reverse, -1
   if that one is not armed. */
const struct ex_watch *run_watch(const struct run *, size_t w);
size_t run_session_index(const struct run *, size_t w);
ssize_t run_target_index(const struct run *, size_t watch);

/* Shared by several ways of delivery. */
int run_launch(struct run *, struct wp_cause *);
unsigned run_threads(const struct run *);
void run_announce_kernel(struct run *);

/* Enable the action of --on-hit; and disable it. */
void run_act_begin(struct run *);
void run_act_end(struct run *);

/* Act at the hit of the stopped thread (run->stopped), which is about to
   continue, if the hit was explained in time.  False: its process is to be left
   stopped. */
bool run_act_pass(struct run *);

/* Describe a slot of the place (a watch of the session) to which a watch of the
   target moves.  0 or -errno. */
int run_describe_place(struct run *, int watch, size_t w,
    const struct wp_slot *);

/* Include the last added process in the poll set.  0 or -ENOMEM. */
int run_poll_add(struct run *, pid_t);

/* Whether a process has events of its own, which it loses when it ends or
   executes another program. */
bool run_is_armed(const struct run *, const struct process *);

/* Disarm the watches of a process that has ended. */
void run_disarm(struct run *, struct process *);

/* Disarm watches that have had all hits of --each. */
void run_turn_off(struct run *);

/* Report that a watch of the target is disarmed because the program uses its
   word with pairs of instructions that never succeed while it is watched. */
void run_report_exclusive(struct run *, size_t watch);

/* Leave process i out, as if it had not been given. */
void run_leave_out(struct run *, size_t i);

/* Begin the file of -o perf with the state before the watch, and the armed
   events.  0 or -errno. */
int perf_output_begin(struct run *, const struct ex_perf_event *, size_t n);

/* Process a record, which may be of a new mapping. */
void perf_output_learn(struct run *, const struct ex_record *);

/* Add the modules' build ids, for a reader of the file on another day. */
void perf_output_build_ids(struct run *);

#endif
