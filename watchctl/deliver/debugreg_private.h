/* debugreg_private: the messages between watchctl and its tracer process. */
#ifndef DEBUGREG_PRIVATE_H
#define DEBUGREG_PRIVATE_H

#include <signal.h>

#include "deliver/debugreg_tracer.h"
#include "ptrace/ptrace.h"
#include "watch/debugreg_time.h"
#include "stop/stop.h"
#include "stop/ptrace_loop.h"

enum {
	LEAVE = SIGTERM,	/* to the tracer: clear, and end */
	LOOK_MS = 50,		/* between looks whether we live, or gave up */
	CLEAR_MS = 5,		/* between looks while threads are released */
	TAKE_MS = 2000,		/* that its last thread waits at most */
	ROOM = 65536,		/* of a record */
};

/* The signals that a tracer is to show. */
#define TRAPS (1ull << (SIGTRAP - 1))

/* What comes of it, as an exit status; else 0. */
enum { TRACER_NO_MEMORY = 1, TRACER_KILLED };

struct debugreg_tracer {
	pid_t pid;		/* the standby process; 0: was waited
				   for, ... */
	int status;		/* ... with this result, as of waitpid(2) */
	int fd;			/* the tracer's socket */
	int answer;		/* how something went: a pipe; -1: closed */
	pid_t target;		/* its process */
	unsigned threads;
};

/* What to watch: the first request of all. */
struct register_plan {
	struct debugreg_tracer_job job;	/* watched is not valid there */
	struct wp_region region[WP_DEBUG_REGISTERS];	/* of each watch */
	struct wp_slot slot[WP_DEBUG_REGISTERS];	/* by register */
	size_t of[WP_DEBUG_REGISTERS];		/* which watch, from 0 */
	unsigned piece[WP_DEBUG_REGISTERS];	/* which of its slots */
	unsigned nslots;
};

/* How it went. */
struct debugreg_answer {
	int err;		/* 0 or -errno */
	unsigned threads;	/* that were armed */
};

/* What we ask for while a thread is stopped. */
struct debugreg_request {
	enum {
		ASK_HOLD,		/* all its threads; is replied to */
		ASK_CORE,		/* into a descriptor that comes with
					   it; is replied to, ... */
		ASK_GIVE_UP,		/* ... and soon */
		ASK_GO,
		ASK_PAUSE,
	} what;
	struct core_of of;		/* CORE */
};

struct debugreg_reply {
	int err;			/* 0 or -errno */
	struct core_size size;		/* CORE */
};

struct tracer_state {
	pid_t pid;		/* the process to watch */
	struct wp_command *command;	/* NULL: it runs already */
	struct wp_hold hold;	/* the command */
	struct register_plan plan;
	struct wp_ptrace_loop loop;
	pid_t parent;
	int fd;			/* for records, and requests */
	int answer;		/* for how it began: some may hit before */
	bool began;
	bool sent;		/* hits, since it was known that they are all
				   taken */
	unsigned threads;	/* armed now, ... */
	unsigned all;		/* ... and at any time */
	struct wp_uptime uptime;	/* of those that are not any more */
	bool leave;		/* clear them */
	int err;		/* the first failure */
	bool shared[WP_DEBUG_REGISTERS];	/* by watch: others may write
						   it where it is not seen */
	sigset_t signals;
};

/* The tracer's parent, which has nothing to do unless that is killed. */
_Noreturn void debugreg_standby(struct tracer_state *);

#endif
