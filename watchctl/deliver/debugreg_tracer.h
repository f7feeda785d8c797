/*
 * debugreg_tracer: --stop by debug registers, where perf_event_open(2) is
 * refused and ptrace(2) is not.
 *
 * Overview.  A thread whose debug registers are set dies at its next hit if it
 * is not traced.  So the tracer is a process of its own, wp-guardian, with a
 * session of its own, which users have no reason to kill.  At each hit it makes
 * a record while the thread is stopped, sends it through a socket, and lets the
 * thread continue.  When watchctl ends or is killed, the tracer clears all
 * registers, releases all threads, and ends.  A command is held by it from the
 * beginning.
 *
 *	thread -- trap --> tracer -- record --> watchctl: explain, report
 *
 * If the tracer is killed all the same, its parent, wp-standby, clears the
 * registers.  A thread that hits in the moment before that dies.  Each watched
 * process has two such processes.
 *
 * What explaining a hit takes of the process is there until its last thread
 * ends.  So that one is held before, until watchctl has all that it needs of
 * the hits that it was sent, or does not answer for two seconds.
 *
 *	tracer -- TRACER_LEAVING --> watchctl
 *		<-- go --
 *
 * With --on-hit the thread is stopped until watchctl has decided how it
 * continues.  In the meantime the tracer does for watchctl what only a tracer
 * can do.
 *
 *	tracer -- records, TRACER_STOPPED --> watchctl
 *		<-- hold, core --
 *		-- result -->
 *		<-- go, or pause --
 */
#ifndef DEBUGREG_TRACER_H
#define DEBUGREG_TRACER_H

#include "os/cause.h"
#include "action/core.h"
#include "ptrace/ptrace.h"
#include "attach/target.h"
#include "ring/uptime.h"

/* Types of packets that no record has. */
enum {
	TRACER_STOPPED = 1 << 16,	/* behind the records of a stop */
	TRACER_SEVERAL,			/* in front of those of one that has
					   several, */
	TRACER_ALL,			/* and behind them */
	TRACER_EXECUTED,		/* it executes another program */
	TRACER_CHILD,			/* what a child does, with more behind
					   it */
	TRACER_UNARMED,			/* a thread is not watched, with more
					   behind it */
	TRACER_EXCLUSIVE,		/* a watch is disarmed, with more behind
					   it */
	TRACER_UPTIME,			/* the last one, with more behind it */
	TRACER_LEAVING,			/* it is about to end, and is held until
					   debugreg_tracer_go, but not for
					   long */
};

struct tracer_uptime {
	struct perf_event_header header;
	struct wp_uptime uptime;	/* of all threads */
};

struct tracer_unarmed {
	struct perf_event_header header;
	pid_t tid;
	int err;			/* -errno */
};

/* A watch, by its index in the target, whose word ldxr and stxr use: these never
   succeed while the word is watched. */
struct tracer_exclusive {
	struct perf_event_header header;
	uint64_t watch;
};

/* A process that it made, which is not watched. */
struct tracer_child {
	struct perf_event_header header;
	pid_t pid, parent;
	uint64_t time;			/* ns */
	bool awaited;		/* as with vfork(2): there will be another
				   packet */
	bool is_known;		/* this is the other: what became of it is
				   known, ... */
	bool executed;		/* ... a program; else it has ended */
};

struct debugreg_tracer;

/* What it is for. */
struct debugreg_tracer_job {
	const struct wp_watched *watched;	/* by these of a target, */
	size_t first, n;	/* n from first on, whose samples have the ids
				   of wp_target_stop_id */
	uint32_t stack;		/* bytes of it in a sample */
	bool stay_stopped;	/* a thread that hits is stopped until it is
				   released */
};

/* Make a tracer of a running process, or of a command (else NULL) that was just
   started: then debugreg_tracer_await_command, 0 when it is held, or -errno as
   of wp_command_hold.  0; -errno with a cause. */
int debugreg_tracer_new(struct debugreg_tracer **, pid_t pid,
    struct wp_command *, struct wp_cause *);
int debugreg_tracer_await_command(struct debugreg_tracer *);

/* Watch all threads of it, and those to come.  0; -errno with a cause. */
int debugreg_tracer_begin(struct debugreg_tracer *,
    const struct debugreg_tracer_job *, struct wp_cause *);

/* The socket: each packet is a record; at its end nothing is watched. */
int debugreg_tracer_fd(const struct debugreg_tracer *);

/* How many threads it began with. */
unsigned debugreg_tracer_threads(const struct debugreg_tracer *);

/*
 * The thread that hit is stopped (TRACER_STOPPED was read): stop all threads,
 * 0 or -errno; write a core file, as core_write, of a process that does; let
 * all go on; or end, and leave the process stopped as by SIGSTOP.
 */
int debugreg_tracer_hold(struct debugreg_tracer *);
int debugreg_tracer_core(struct debugreg_tracer *, int fd,
    const struct core_of *, struct core_size *);
void debugreg_tracer_go(struct debugreg_tracer *);
void debugreg_tracer_pause(struct debugreg_tracer *);

/* Have it clear everything, and end.  Packets that it sent are still there. */
void debugreg_tracer_stop(struct debugreg_tracer *);

/* Wait until it has ended.  Result: whether it was killed. */
bool debugreg_tracer_was_killed(struct debugreg_tracer *);

/* NULL: nothing to do.  A command that it only holds goes on. */
void debugreg_tracer_free(struct debugreg_tracer *);

#endif
