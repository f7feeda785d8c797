/*
 * debugreg_table: the watches that are armed in a program's threads by tracing
 * them, and the delivery of the hits of debug registers.
 *
 * Overview.  The table lists what is to be armed.  A watch takes one place in
 * each thread for each of its slots (thread_regs.h); watches of different
 * threads may use the same places.  To change anything, the table is changed,
 * and each thread is interrupted once; while it is stopped, its registers and
 * events are set as the table lists them.
 *
 * A hit of a debug register raises SIGTRAP, which does not show which register
 * was hit, and which the program may have blocked or may use itself.  The
 * thread gets the library's own signal instead, with the siginfo of a sigtrap
 * event.  A program that no longer handles that signal would die of it; it gets
 * no signal, and a warning is reported.
 *
 * All of this is done by the tracing process, which has one thread.  Requests
 * come from the program and are not trusted.
 */
#ifndef DEBUGREG_TABLE_H
#define DEBUGREG_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/cause.h"
#include "handler/channel.h"
#include "helper/thread_regs.h"

struct debugreg_table;

/* Open a table; `armed' has WP_WATCHES_MAX entries. again: they are from
   another tracing process, which was killed, and are armed again.  The time for
   which watches were on is added to the wp_uptime when threads end or are
   released.  0 or -errno. */
int debugreg_table_open(struct debugreg_table **, struct wp_channel *,
    pid_t program, struct armed *armed, struct wp_uptime *, bool again);

/* Add up for how long watches have been on, including those that are. */
void debugreg_table_uptime(struct debugreg_table *, struct wp_uptime *);

/* Disarm all watches, if the program lives, and free. */
void debugreg_table_close(struct debugreg_table *);

/* Do what a request says.  0, or -errno with a cause, and nothing has
   changed. */
int debugreg_table_arm(struct debugreg_table *, const struct wp_request *,
    struct wp_cause *);
int debugreg_table_move(struct debugreg_table *, const struct wp_request *,
    struct wp_cause *);
int debugreg_table_disarm(struct debugreg_table *, uint32_t index);

/* Switch or count the watches for which the program has requested that (struct
   wp_channel_watch). */
void debugreg_table_look(struct debugreg_table *);

/* As wp_ptrace_loop_busy and wp_ptrace_loop_step. */
bool debugreg_table_busy(const struct debugreg_table *);
int debugreg_table_step(struct debugreg_table *);

#endif
