/*
 * thread_regs: sets the watches of one traced thread.  The thread has as many
 * places as debug registers; each holds a debug register, or an event, which
 * uses up one too.
 *
 * A debug register is set by ptrace(2), for which the thread must be stopped.
 * An event sends the thread a signal; one that fires for a single hit is
 * opened again afterwards.
 */
#ifndef THREAD_REGS_H
#define THREAD_REGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "handler/channel.h"
#include "handler/async_count.h"
#include "ptrace/ptrace.h"
#include "stop/thread_table.h"
#include "watch/debugreg_time.h"

/* A watch that is armed in threads.  It is in memory that tracing processes
   share. */
struct armed {
	_Atomic uint32_t serial;	/* as in sig_data; 0: no watch */
	pid_t tid;			/* of the one thread that it is armed
					   in; 0: all threads */
	int signal;			/* sent by its events; 0: it uses debug
					   registers */
	bool once;			/* its events fire only once */
	bool kernel;			/* events: the kernel's accesses too */
	bool on;			/* enabled, as put into effect */
	uint64_t period;		/* at least 1 */
	uint64_t counted[WP_DEBUG_REGISTERS];	/* accesses to each slot that
						   debug registers reported */
	uint64_t closed_total;		/* accesses counted by closed events */
	unsigned nslots;		/* at most WP_DEBUG_REGISTERS */
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	unsigned place[WP_DEBUG_REGISTERS];	/* by slot */
};

/* The present or wanted content of a place. */
struct thread_reg {
	struct armed *watch;	/* NULL: nothing */
	uint32_t serial;	/* of the watch, which may have been replaced
				   since */
	uint32_t index;		/* of the watch */
	unsigned piece;		/* which of its slots */
	struct wp_slot slot;
	bool on;		/* false: the place is taken, but makes no
				   hits */
	int signal;		/* 0: a debug register */
	int fd;			/* else the event's; -1: not open */
	bool spent;		/* it has fired its one hit */
	uint64_t since;		/* ns, by the thread's clock */
	struct wp_async_count fired;
};

struct thread_regs {
	struct wp_thread traced;
	struct thread_reg at[WP_DEBUG_REGISTERS];
	struct wp_uptime *uptime;	/* where times are added when the
					   thread's are closed */
	int clock;		/* an event that measures the thread's time
				   (uptime.h), opened with the first other
				   event; -1: none */
	uint64_t off[WP_DEBUG_REGISTERS];	/* by place: ns for which closed
						   events were on */
	struct debugreg_time time;	/* time for which debug registers were
					   on */
	/* On processors that trap before the access: */
	unsigned off_for_step;	/* the set of places that are off until the
				   access is made */
	uint64_t pc, sp;	/* that access, whose hit is reported; */
	bool again;		/* the access was not made, and will be
				   repeated */
};

/* Initialize for a thread of which nothing is known. */
void thread_regs_init(struct thread_regs *, struct wp_uptime *);

/* Close the events of a thread that has ended or is released. */
void thread_regs_close(struct thread_regs *);

/* Update the time for which debug registers were on: the thread is stopped and
   will continue, or this is its last stop. */
void thread_regs_look(struct thread_regs *, bool last);

/* Add for how long the thread's open events have been on.  Debug registers are
   included up to the last thread_regs_look. */
void thread_regs_uptime(const struct thread_regs *, struct wp_uptime *);

/* Set all places as wanted; anew: even those that are believed to be so
   already.  0 or -errno. */
int thread_regs_set(struct thread_regs *,
    const struct thread_reg want[WP_DEBUG_REGISTERS], bool anew);

/* Whether the place has a debug register that is on. */
bool thread_reg_fires(const struct thread_reg *);

/* The places that the trap at which the thread is stopped has hit, a bit for
   each. */
unsigned thread_regs_hit(const struct thread_regs *);

/* Switch off the registers of the same kind as those that were hit (data or
   execution), until thread_regs_resume.  0 or -errno. */
int thread_regs_pass(struct thread_regs *, unsigned hit);
int thread_regs_resume(struct thread_regs *);

/* The number of accesses that the place's event, if it is one, has counted
   since the last call; as of wp_async_count_take. */
uint64_t thread_reg_take(struct thread_reg *, struct wp_at, bool *late);

/* Whether the descriptor is one of these events. */
bool thread_regs_have(const struct thread_regs *, int fd);

/* Arm the events again that have fired.  0 or -errno. */
int thread_regs_rearm(struct thread_regs *);

/* The accesses counted here by events of the watch with this serial. */
uint64_t thread_regs_count(const struct thread_regs *, uint32_t serial);

#endif
