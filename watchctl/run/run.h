/*
 * run: one watch of live processes, as its stages share it.  They are, in
 * order:
 *
 *	watchctl/watch.c	begins and ends it
 *	setup			from the command line to armed watches
 *	deliver			how hits are delivered: by rings, by a stop at
 *				each, or by debug registers
 *	pending, follow		what comes or moves meanwhile
 *
 * Here is what all of them use:
 *
 *	run.c			when it sleeps, goes on and ends
 *	process.c		its processes and their watches
 *	run_children.c		what becomes of these
 *	initial_values.c	what was in memory before
 *	act.c			what is done at a hit (--on-hit)
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

/* The pid of the one process of a run that watches all, for which it stands. */
#define EVERYWHERE (-1)

/* ms between looks, where nothing wakes the loop. */
enum { RUN_LOOK_MS = 20 };

/* One way for hits to be delivered. */
struct run_ops {
	const char *mode;	/* as the report names it */
	bool registers;		/* no events: debug registers are set */
	/* no event can be opened, for this cause: if another way does what is
	   asked for, choose that, and set run->features to what it allows.  0;
	   -errno with the cause, or another.  NULL: there is none */
	int (*without_events)(struct run *, struct wp_cause *);
	/* be ready, once there is a target; NULL: nothing is needed.  0, or
	   -errno after a line on stderr */
	int (*open)(struct run *);
	/* start the command, held; without one, whatever has to be there before
	   the watches are looked for.  0 or -errno with a cause */
	int (*launch)(struct run *, struct wp_cause *);
	/* watch one process, or the held command.  0 or -errno with a cause */
	int (*attach)(struct run *, const struct process *, struct wp_cause *);
	/* how many threads were covered when it began */
	unsigned (*threads)(const struct run *);
	/* take all records there are: a process is another program from here
	   on */
	void (*settle)(struct run *);
	/* let a held process go on, armed with its watches if it has any, and
	   be notified when it executes another program and when it calls its
	   hook.  0 or -errno with a cause */
	int (*pass)(struct run *, const struct process *, struct wp_cause *);
	/* what only the tracer of this thread can do; false: it is not stopped
	   at a hit.  NULL: none ever is */
	bool (*tracer)(struct run *, pid_t pid, pid_t tid,
	    struct on_hit_tracer *);
	/* disarm one watch, by its index in the target; NULL: it stays armed,
	   and its hits are not reported */
	void (*turn_off)(struct run *, size_t watch);
	/* a process that was running is armed, and it is known whether others
	   have its memory (lent).  NULL: that is not asked */
	void (*lend)(struct run *, const struct process *);
	/* have pointers watched, by watches of their own target: those of a
	   process that is to be attached.  0 or -errno with a cause */
	int (*scout)(struct run *, struct wp_target *, pid_t, size_t first,
	    size_t n, struct wp_cause *);
	/* move a watch of one of the two.  0 or -errno */
	int (*move)(struct run *, pid_t, struct wp_target *, size_t watch,
	    const struct wp_region *);
	/* whether it is known since then that nobody else has mapped what is
	   there.  NULL: it is not */
	bool (*owns)(const struct run *, pid_t, uint64_t addr, uint64_t len);
	/* say what is not watched this way */
	void (*announce)(struct run *);
	/* report hits until there is a reason to end; then disarm */
	void (*loop)(struct run *);
	/* what was counted and not delivered is lost; NULL: all that is
	   counted is delivered.  0 or -ENOMEM */
	int (*account)(struct run *);
	/* then: for how long watches were on.  NULL: nothing is known */
	void (*uptime)(const struct run *, struct wp_uptime *);
	/* free what open and launch made; a command that was not watched yet
	   ends.  NULL: there is nothing */
	void (*close)(struct run *);
};

struct run {
	const struct options *options;
	const struct run_ops *ops;
	void *own;			/* of these; NULL: nothing */
	struct wp_features features;
	struct wp_filter filter;	/* what --if leaves to the kernel */
	struct wp_target *target;
	struct live_broker live;	/* finds out what the SPECs mean */
	struct session session;
	struct remote_session *remote;	/* NULL: a recording is made */
	struct ex_formats *formats;	/* of the armed events */
	struct synthetic_records synthetic;	/* what was there before the
						   watch */
	struct process {
		pid_t pid;
		char comm[64];		/* its name, when it was learnt */
		size_t first, n;	/* its watches; one for each SPEC,
					   and */
		bool rotates;		/* more for those that rotate; or */
		bool some;		/* those that are found there; or */
		bool program;		/* those of one that was executed while
					   the watch was on, */
		uint64_t since;		/* as of this time, ns, */
		bool alone;		/* and that is traced no more: */
		size_t spec[WP_SLOTS_MAX];	/* of these SPECs, if either
						   is so; */
		uint64_t hook;		/* what its loader calls when it has
					   mapped a module, 0: nothing waits for
					   that; */
		bool *waits;		/* which SPECs do, NULL: none; */
		bool module;		/* they are in one that came so */
		bool each;		/* its threads, which are traced, are
					   armed one by one */
		struct spec_place *place;	/* what each SPEC means there */
		long threads;		/* covered, by its records: those
					   there were, and made, and ended */
		bool executed;		/* another program, as reported
					   already */
		bool replaced;		/* it has ended, and another one that
					   is watched has its number */
		bool disarmed;		/* it has ended, and others go on */
		bool lent;		/* others have had its memory since
					   before it was watched: */
		pid_t sharer;		/* one that is not watched, 0: none */
	} *process;			/* nprocesses of them */
	size_t nprocesses;
	struct selected chosen;		/* what -p meant */
	struct follow *follow;		/* --follow; NULL: it was not given */
	struct instances {		/* of thread-local variables, that were
					   hit */
		struct instance {
			unsigned whole;	/* the id of the variable's watch */
			uint64_t addr;
		} *at;
		size_t n, cap;
		pthread_mutex_t lock;	/* of what follows: */
		struct instances_said {	/* of a thread, what was not taken yet
					   (instances.h) */
			struct wp_target_event event;
			uint64_t time;	/* ns */
			pid_t pid, tid;
			bool left;
		} *said;
		size_t nsaid, said_cap;
		bool starved;		/* there was no memory for that */
		atomic_bool any;	/* something was said */
	} instances;
	struct held_modules *held_modules;	/* that come while threads stop
					   at hits; NULL: none do */
	struct rotate *rotate;		/* --slots rotate; NULL: it was not
					   given */
	struct objects *objects;	/* alloc:; NULL: it was not given */
	uint64_t wake;			/* the loop is not to sleep longer, ns;
					   0: than it does */
	struct arrivals *arrivals;	/* processes that come; NULL: those are
					   not watched */
	struct wp_cause skipped;	/* why one of them could not be, as it
					   began, and */
	pid_t skipped_pid;		/* which; 0: none */
	struct mappers *mappers;	/* shm: and file:, processes that map
					   them; NULL: it is not about these */
	unsigned threads_made;		/* under watch, by records */
	struct children children;	/* that are not watched */
	struct descendants descendants;	/* that are, with -f */
	bool child_reported;		/* that one went on */
	bool each;			/* each thread has its own of what is to
					   be watched */
	bool waits;			/* nothing is armed before a program is
					   executed that has it */
	size_t npending;		/* the session's first watches, which
					   say so */
	size_t *described;		/* which of the session's each of the
					   target's is: */
	size_t ndescribed, described_cap;	/* of so many */
	bool found;			/* there was such a program */
	bool refused;			/* the command was ended, since it has
					   not what it must have */
	struct search_misses absent;		/* what has nothing of it */
	bool missed_module;		/* one may have been mapped unseen; */
	pid_t missed_child;		/* one was by this process; 0: none */
	struct exec_tracer *tracer;	/* of those that have none; NULL */
	bool unprivileged_reported;	/* that a process runs without
					   privileges that its file gives */
	struct on_hit on_hit;		/* what it remembers, while hits are
					   acted at */
	bool missed;			/* a hit was not, as reported */
	struct {			/* at its hit, until run_act_pass */
		pid_t pid, tid;		/* tid 0: none is */
	} stopped;
	pid_t command;			/* as it was launched; 0: there is
					   none */
	int command_status;		/* as of waitpid(2); < 0: it runs */
	struct pollfd *poll;		/* signals, processes, rings, the
					   tracer; npoll */
	size_t npoll;
	uint64_t began;			/* ns */
	uint64_t also;			/* hits of which another watch's samples
					   tell (before.h) */
	bool uncovered_reported;	/* that a processor is not watched */
	uint64_t processors_due;	/* ns: when they are looked at next */
	long counted_hits_due;		/* ms: when they are looked at next */
	unsigned counted_hits_looks;
	bool crashed;			/* a process was ended by a signal, and
					   that is not reported yet */
	uint64_t tell;			/* --last: what came before then, ns, is
					   to be reported, for this reason; */
	const char *tell_reason;	/* NULL: nothing is */
	const char *reason;		/* why it ended; NULL: it has not */
	bool failed;			/* it ended too early, because what
					   delivers hits was killed */
	uint64_t *counts;		/* --count, at the end: the hits of each
					   watch */
};

/* ms until the time of -t is over; without -t longer than any run. */
double run_left_ms(const struct run *);

/* The same for callers that count in int; 0: there is no -t. */
int run_left_for_wait(const struct run *);

/* Whether the loop will end, or look at a signal, as soon as it comes to that:
   then nothing that takes long is to be begun. */
bool run_is_ending(const struct run *);

/* From what takes long, in the loop's thread: take signals, and look at the
   time.  Whether the run goes on. */
bool run_goes_on(struct run *);

/* Take the signals that have come. */
void run_take_signals(struct run *);

/* A signal for watchctl: it ends, or passes it on to the command. */
void run_signal(struct run *, int sig);

/* For how many ms, at most so many, the loop is to sleep. */
int run_sleep_ms(const struct run *, int ms);

/* Sleep until something of a poll set comes, but not for long.  Its first
   descriptor is that of the signals; take these. */
void run_poll(struct run *, struct pollfd *, size_t n);

/* A round begins in which threads that wait are let go on
   (remote/remote_session.h), if they do. */
void run_round(struct run *);

/* Decode a record.  False: nothing is to be done with it; what is of no known
   event is counted. */
bool run_decode(struct run *, const struct perf_event_header *,
    struct ex_record *);

/* Give the reason to end when the time of -t is over. */
void run_check_time(struct run *);

/* Have the hits that are kept (--last) reported, when all that came before now
   is there. */
void run_tell(struct run *, const char *reason);

/* A process has executed a program while it was traced: report, once, that it
   runs without privileges that the file gives. */
void run_check_privileges(struct run *, pid_t);

/* A process executed another program: report it, once. */
void run_executed(struct run *, pid_t);

/* Children that are not watched: track those of a process, as far as they have
   to be known; take in a record that one was created; see what has become of
   them. */
void run_track_children(struct run *, const struct process *);
void run_take_child(struct run *, const struct ex_record *);
void run_check_children(struct run *);

/* The last word on them, when the watch has ended. */
void run_settle_children(struct run *);

/* Take in that a thread has ended: its instance of a thread-local variable is
   no more. */
void run_take_thread_end(struct run *, const struct ex_record *);

/* Children that are watched, of a run whose status has to vouch for it: take in
   a record; the watch is about to be switched off, and all records from before
   this time, ns, have been taken in; all have been.  One that executed another
   program is reported. */
void run_take_descendant(struct run *, const struct ex_record *);
void run_leave_descendants(struct run *, uint64_t since);
void run_settle_descendants(struct run *);

/* Where a SPEC, by its index, is watched in a process that it was found in. */
struct wp_region run_region(const struct run *, const struct process *,
    size_t i);

/* Take records of what a process maps now, and learn them; executed: nothing of
   before holds.  Even of one that may not be looked into the name is known:
   that is learnt too.  0 or -errno, -EACCES or -EPERM in that case. */
int run_learn_records(struct run *, pid_t, bool executed);

/* The same, with its name, of one that is to be watched.  0 or -errno with a
   cause. */
int run_learn(struct run *, struct process *, bool executed,
    struct wp_cause *);

/* Pass an armed watch of a process to the session.  Result: how many events it
   has, for a recording, with ids to be freed; or -errno. */
int run_describe_watch(struct run *, const struct process *, size_t w,
    struct ex_perf_event *events);

/* Describe an armed watch of a process to a session that has begun.  0 or
   -errno. */
int run_describe_armed(struct run *, const struct process *, size_t w);

/* Add a process.  NULL: out of memory. */
struct process *run_new_process(struct run *, pid_t);

/* Which process has a watch of the target's; and one of a SPEC, by its index,
   as the session knows it; NULL: there is none. */
const struct process *run_process_of(const struct run *, size_t w);
const struct ex_watch *run_spec_watch(const struct run *, size_t i);

/* Which SPEC a watch of a process is for, by its index in the target. */
size_t run_spec_of(const struct process *, size_t w);

/* A watch of the target's, as the session knows it; its index there; and which
   of the target's one of the session's is, by its index, if it is one that is
   armed (-1: it is not). */
const struct ex_watch *run_watch(const struct run *, size_t w);
size_t run_session_index(const struct run *, size_t w);
ssize_t run_target_index(const struct run *, size_t watch);

/* What several ways of delivery do alike. */
int run_launch(struct run *, struct wp_cause *);
unsigned run_threads(const struct run *);
void run_announce_kernel(struct run *);

/* From here on hits are acted at, as --on-hit says, or no longer. */
void run_act_begin(struct run *);
void run_act_end(struct run *);

/* The thread that is stopped (run->stopped) goes on, and its hit was explained,
   if that did not take too long: then it is acted at now.  False: its process
   is to be left stopped. */
bool run_act_pass(struct run *);

/* Describe a slot of another place (a watch of the session) of a watch of the
   target that moves.  0 or -errno. */
int run_describe_place(struct run *, int watch, size_t w,
    const struct wp_slot *);

/* The last process has been added: sleep on it, too.  0 or -ENOMEM. */
int run_poll_add(struct run *, pid_t);

/* Whether a process has events of its own, which it loses when it ends or
   executes another program. */
bool run_is_armed(const struct run *, const struct process *);

/* Disarm the watches of a process that has ended. */
void run_disarm(struct run *, struct process *);

/* Disarm those watches of which --each wants no more hits. */
void run_turn_off(struct run *);

/* A watch of the target is disarmed, because the program uses its word by pairs
   of instructions that never succeed while it is watched: report it. */
void run_report_exclusive(struct run *, size_t watch);

/* Leave process i out, as if it had not been given. */
void run_leave_out(struct run *, size_t i);

/* Begin the file of -o perf with what was there before, and events as armed.
   0 or -errno. */
int perf_output_begin(struct run *, const struct ex_perf_event *, size_t n);

/* Take a record that may be of a process that has mapped something. */
void perf_output_learn(struct run *, const struct ex_record *);

/* What the modules were, for a reader of the file on another day. */
void perf_output_build_ids(struct run *);

#endif
