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
	LOOK_MS = 50,		/* ms between checks whether watchctl lives, or
				   gave up */
	CLEAR_MS = 5,		/* ms between checks while threads are
				   released */
	TAKE_MS = 2000,		/* ms that the process's last thread waits at
				   most */
	ROOM = 65536,		/* largest record, bytes */
	FAMILY_MAX = 1 << 16,	/* processes that are watched at a time */
};

/* The signals that the ptrace loop shall hand over. */
#define TRAPS (1ull << (SIGTRAP - 1))

/* The tracer's exit status; 0: all went well. */
enum { TRACER_NO_MEMORY = 1, TRACER_KILLED };

struct debugreg_tracer {
	pid_t pid;		/* the standby process; 0: it has been waited
				   for, ... */
	int status;		/* ... with this result, as of waitpid(2) */
	int fd;			/* the tracer's socket */
	int answer;		/* pipe that carries struct debugreg_answer; -1:
				   closed */
	pid_t target;		/* the process that it traces */
	unsigned threads;
};

/* What to watch: the first message to the tracer. */
struct register_plan {
	struct debugreg_tracer_job job;	/* the member `watched' is not valid in
					   the tracer */
	struct wp_region region[WP_DEBUG_REGISTERS];	/* of each watch */
	struct wp_slot slot[WP_DEBUG_REGISTERS];	/* by register */
	size_t of[WP_DEBUG_REGISTERS];		/* by register: the watch, from
						   0, */
	unsigned piece[WP_DEBUG_REGISTERS];	/* and which of its slots */
	unsigned nslots;
};

/* The result of the first request. */
struct debugreg_answer {
	int err;		/* 0 or -errno */
	unsigned threads;	/* number of armed threads */
};

/* What watchctl requests while a thread is stopped. */
struct debugreg_request {
	enum {
		ASK_HOLD,		/* hold all threads; is answered */
		ASK_CORE,		/* write a core file into the descriptor
					   that comes with it; is answered,
					   ... */
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

/* The processes whose threads may be armed, for the standby process. */
struct debugreg_family {
	size_t n;
	pid_t pid[FAMILY_MAX];		/* n of them; 0: it has ended */
};

/* A process of the tracer. */
struct armed_process {
	pid_t pid, parent;
	unsigned threads;	/* threads that are armed */
	pid_t awaits;		/* the child that a thread of it waits for, as
				   with vfork(2); 0: none */
	bool lent;		/* another one may share its memory */
	bool announced;		/* watchctl was told of it */
	bool shared[WP_DEBUG_REGISTERS];	/* by watch: other processes may
						   write to it unseen */
};

struct tracer_state {
	pid_t pid;		/* the process to watch */
	bool follow;		/* and its children */
	struct debugreg_family *family;	/* shared with the standby process */
	struct armed_process **process;	/* n of them; the first one stays */
	size_t n, cap;
	struct wp_command *command;	/* NULL: it runs already */
	struct wp_hold hold;	/* the command */
	struct register_plan plan;
	struct wp_ptrace_loop loop;
	pid_t parent;
	int fd;			/* for records, and requests */
	int answer;		/* for the first result, because hits may
				   precede it */
	bool began;
	bool sent;		/* hits were sent since all earlier ones were
				   known to be taken */
	unsigned all;		/* threads that ever were armed */
	struct wp_uptime uptime;	/* of threads that are no longer
					   armed */
	bool leave;		/* clear the registers and end */
	int err;		/* the first failure */
	sigset_t signals;
};

/* The tracer's parent, which only waits, unless the tracer is killed. */
_Noreturn void debugreg_standby(struct tracer_state *);

#endif
