/*
 * arming: what is armed in a program's threads on behalf of its watches, by
 * tracing them: debug registers, or events that raise a signal in the thread.
 * And what becomes of a debug register's hit.
 *
 * Overview.  There are as many places as debug registers, and a watch takes one
 * for each of its slots; watches of one thread may share places with watches of
 * others.  A thread that stands still is given what the table says.  So to change
 * anything, the table is changed, and then each thread is interrupted once.
 *
 * A hit of a debug register is a SIGTRAP that does not tell which it was, and
 * that a thread can have blocked.  The thread gets the library's own signal
 * instead, with the siginfo of a sigtrap event: so what the program does with
 * SIGTRAP is its own affair, as long as it is traced.  A program that does not
 * handle that signal any more (it would die of it) gets none, and is warned.
 *
 * All is done by the tracing process, which has one thread.  Requests come from
 * the program, and are not trusted.
 */
#ifndef ARMING_H
#define ARMING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cause.h"
#include "channel.h"
#include "ptrace.h"

/* A watch in the table. */
struct armed {
	_Atomic uint32_t serial;	/* as in sig_data; 0: no watch */
	pid_t tid;			/* one thread's; 0: all threads' */
	int signal;			/* of its events; 0: debug registers */
	bool kernel;			/* events: the kernel's accesses too */
	bool on;			/* as put into effect */
	uint64_t period;		/* at least 1 */
	uint64_t gone;			/* counted by events that are closed */
	unsigned nslots;		/* at most WP_DEBUG_REGISTERS */
	struct wp_slot slot[WP_DEBUG_REGISTERS];
	unsigned place[WP_DEBUG_REGISTERS];	/* of each slot */
};

struct arming;

/* The table has WP_WATCHES_MAX entries.  again: it was that of another tracing
   process, which was killed: what it says is armed again.  0 or -errno. */
int arming_open(struct arming **, struct wp_channel *, pid_t program,
    struct armed *table, bool again);

/* Disarm all, if the program lives.  NULL: nothing to do. */
void arming_close(struct arming *);

/* Do what a request says.  0 or -errno with a cause; then all is as it was. */
int arming_arm(struct arming *, const struct wp_request *, struct wp_cause *);
int arming_move(struct arming *, const struct wp_request *, struct wp_cause *);
int arming_disarm(struct arming *, uint32_t index);

/* Look which watches want to be switched or counted (struct wp_channel_watch). */
void arming_look(struct arming *);

/* As wp_tracer_busy and wp_tracer_step. */
bool arming_busy(const struct arming *);
int arming_step(struct arming *);

/* Why a thread of the process cannot be held or traced: err > 0, as of
   wp_hold_process.  -err with a cause. */
int arming_refused(pid_t program, int err, struct wp_cause *);

#endif
