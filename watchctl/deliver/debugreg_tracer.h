/*
 * debugreg_tracer: --stop by debug registers, where perf_event_open(2) is
 * refused and ptrace(2) is not.
 *
 * Overview.  A thread whose debug registers are set dies at its next hit if it
 * is not traced.  So the tracer is a process of its own, wp-guardian, with a
 * session of its own, which users have no reason to kill.  At each hit it makes
 * a record while the thread is stopped, sends it through a socket, and lets the
 * thread continue.  When watchctl ends or is killed, the tracer clears all
 * registers, releases all threads, and ends.  It holds a command from the
 * beginning.
 *
 *	thread -- trap --> tracer -- record --> watchctl: explain, report
 *
 * If the tracer is killed all the same, its parent, wp-standby, clears the
 * registers.  A thread that hits in the moment before that dies.  Each watched
 * process has two such processes; children that are followed (-f) share those
 * of the process that they descend from, and are armed, like new threads,
 * before their first instruction.
 *
 * Hits are explained with data of the process that vanishes with its last
 * thread.  So that thread is held when it is about to end, until watchctl has
 * everything that it needs for the hits that were sent, or has not answered for
 * two seconds.
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

/* Types of packets beyond those of records. */
enum {
	TRACER_STOPPED = 1 << 16,	/* after the records of a stop */
	TRACER_SEVERAL,			/* before the records of a stop that has
					   several, */
	TRACER_ALL,			/* and after them */
	TRACER_EXECUTED,		/* struct tracer_executed */
	TRACER_CHILD,			/* struct tracer_child */
	TRACER_UNARMED,			/* struct tracer_unarmed: a thread is
					   not watched */
	TRACER_EXCLUSIVE,		/* struct tracer_exclusive: a watch is
					   disarmed */
	TRACER_UPTIME,			/* struct tracer_uptime, the last
					   packet */
	TRACER_LEAVING,			/* the process is about to end, and is
					   held until debugreg_tracer_go, but
					   not for long */
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

/* The index in the target of a watch whose word ldxr and stxr use: these never
   succeed while the word is watched. */
struct tracer_exclusive {
	struct perf_event_header header;
	uint64_t watch;
};

/* A process executes another program, and is not watched any more. */
struct tracer_executed {
	struct perf_event_header header;
	pid_t pid, parent;
	uint64_t time;			/* ns */
};

/* A child of a process.  It is watched if children are followed, and nothing of
   it has been sent before; otherwise it is not. */
struct tracer_child {
	struct perf_event_header header;
	pid_t pid, parent;
	uint64_t time;			/* ns */
	bool awaited;		/* its parent waits for it, as with vfork(2):
				   another packet will follow */
	bool is_known;		/* this is that packet; the child has ... */
	bool executed;		/* ... executed a program, or else ended */
};

struct debugreg_tracer;

/* What a tracer is to watch. */
struct debugreg_tracer_job {
	const struct wp_watched *watched;	/* the watches of a target, of
						   which it takes */
	size_t first, n;	/* n from first on; their samples have the ids
				   of wp_target_stop_id */
	uint32_t stack;		/* bytes of the stack in a sample */
	bool stay_stopped;	/* a thread that hits is stopped until it is
				   released */
};

/* Create a tracer of a running process or of a command (else NULL) that was
   just started; follow: also of the processes that it creates, which are
   watched in the same way.  For a command, then call
   debugreg_tracer_await_command: 0 when the tracer holds it, or -errno as of
   wp_command_hold.  0; -errno with a cause. */
int debugreg_tracer_new(struct debugreg_tracer **, pid_t pid,
    struct wp_command *, bool follow, struct wp_cause *);
int debugreg_tracer_await_command(struct debugreg_tracer *);

/* Watch all threads of the process, present and future, and its future
   children if it was created for these.  0; -errno with a
   cause. */
int debugreg_tracer_begin(struct debugreg_tracer *,
    const struct debugreg_tracer_job *, struct wp_cause *);

/* The socket: each packet is a record or of the types above; at end of file
   nothing is watched any more. */
int debugreg_tracer_fd(const struct debugreg_tracer *);

/* The number of threads that were armed at the beginning. */
unsigned debugreg_tracer_threads(const struct debugreg_tracer *);

/*
 * While the thread that hit is stopped (TRACER_STOPPED was read): stop all
 * threads, 0 or -errno; write a core file, as core_write, of a process that is
 * so stopped; let all continue; or end, and leave the process stopped as by
 * SIGSTOP.
 */
int debugreg_tracer_hold(struct debugreg_tracer *);
int debugreg_tracer_core(struct debugreg_tracer *, int fd,
    const struct core_of *, struct core_size *);
void debugreg_tracer_go(struct debugreg_tracer *);
void debugreg_tracer_pause(struct debugreg_tracer *);

/* Have the tracer clear all registers, and end.  Packets that it has sent can
   still be read. */
void debugreg_tracer_stop(struct debugreg_tracer *);

/* Wait until the tracer has ended.  Result: whether it was killed. */
bool debugreg_tracer_was_killed(struct debugreg_tracer *);

/* Free it; NULL: nothing to do.  A command that it only holds continues. */
void debugreg_tracer_free(struct debugreg_tracer *);

#endif
