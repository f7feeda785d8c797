/*
 * thread_regs: the armed watches of one traced thread.  The thread has as many
 * places as debug registers; each place holds a debug register, or an event,
 * which takes one too.
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

/* A watch that is armed in threads; in memory that tracing processes share. */
struct armed {
	_Atomic uint32_t serial;	/* as in sig_data; 0: no watch */
	pid_t tid;			/* one thread's; 0: all threads' */
	int signal;			/* of its events; 0: debug registers */
	bool once;			/* they fire for one hit */
	bool kernel;			/* events: the kernel's accesses too */
	bool on;			/* as put into effect */
	uint64_t period;		/* at least 1 */
	uint64_t counted[WP_DEBUG_REGISTERS];	/* accesses to each slot that
						   debug registers reported */
	uint64_t closed_total;		/* counted by events that are closed */
	unsigned nslots;		/* at most WP_DEBUG_REGISTERS */
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	unsigned place[WP_DEBUG_REGISTERS];	/* of each slot */
};

/* What is in a place, or is to be. */
struct thread_reg {
	struct armed *watch;	/* NULL: nothing */
	uint32_t serial;	/* of the watch; it may be another's by now */
	uint32_t index;		/* of the watch */
	unsigned piece;		/* which of its slots */
	struct wp_slot slot;
	bool on;		/* off: taken, and makes no hits */
	int signal;		/* 0: a debug register */
	int fd;			/* else the event's; -1: not open */
	bool spent;		/* it has fired, and watches no more */
	uint64_t since;		/* ns, by the thread's clock */
	struct wp_async_count fired;
};

struct thread_regs {
	struct wp_thread traced;
	struct thread_reg at[WP_DEBUG_REGISTERS];
	struct wp_uptime *uptime;	/* of all, when they are closed */
	int clock;		/* an event that runs as long as the thread
				   (uptime.h), from the first other on; -1 */
	uint64_t off[WP_DEBUG_REGISTERS];	/* ns that closed events were */
	struct debugreg_time time;	/* of debug registers */
	/* where the trap comes before the access: */
	unsigned off_for_step;	/* those that are off until it is made, which
				   is at */
	uint64_t pc, sp;	/* this place, and the hit is reported; */
	bool again;		/* it was not made, and comes again */
};

/* Of a thread of which nothing is known. */
void thread_regs_init(struct thread_regs *, struct wp_uptime *);

/* Close events.  The thread has ended, or is let go. */
void thread_regs_close(struct thread_regs *);

/* It is stopped: see whether debug registers are as they should be; and go on,
   or it is for the last time. */
void thread_regs_look(struct thread_regs *, bool last);

/* Add for how long its events, which go on, have been on; its debug registers
   are in there since the last look. */
void thread_regs_uptime(const struct thread_regs *, struct wp_uptime *);

/* Make them as wanted; anew: whatever is known.  0 or -errno. */
int thread_regs_set(struct thread_regs *,
    const struct thread_reg want[WP_DEBUG_REGISTERS], bool anew);

/* Whether a debug register fires there. */
bool thread_reg_fires(const struct thread_reg *);

/* Which of those that are on were hit by the trap at which the thread is
   stopped, bit n for n. */
unsigned thread_regs_hit(const struct thread_regs *);

/* Of data or of execution, as those that were hit: off until resumed.  0 or
   -errno. */
int thread_regs_pass(struct thread_regs *, unsigned hit);
int thread_regs_resume(struct thread_regs *);

/* How many accesses the event there has seen, if it is one, since this was last
   asked; as of wp_async_count_take. */
uint64_t thread_reg_take(struct thread_reg *, struct wp_at, bool *late);

/* Whether the descriptor is of one of these. */
bool thread_regs_have(const struct thread_regs *, int fd);

/* Arm those that have fired again.  0 or -errno. */
int thread_regs_rearm(struct thread_regs *);

/* What the events of a use of a watch have counted here. */
uint64_t thread_regs_count(const struct thread_regs *, uint32_t serial);

#endif
