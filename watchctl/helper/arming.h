/*
 * arming: the watches that are armed in a program's threads by tracing them,
 * and what becomes of a debug register's hit.
 *
 * Overview.  The table says what is to be armed.  A watch takes a place in each
 * thread for each of its slots (places.h); watches of one thread may share
 * places with watches of others.  A stopped thread gets what the table says.
 *   So to change anything, the table is changed, and then each
 * thread is interrupted once.
 *
 * A hit of a debug register is a SIGTRAP that does not say which register it
 * was, and which a program can have blocked, or use itself.  The thread gets
 * the library's own signal instead, with the siginfo of a sigtrap event.  A
 * program that does not handle that signal any more (it would die of it) gets
 * none, and is warned.
 *
 * All is done by the tracing process, which has one thread.  Requests come from
 * the program, and are not trusted.
 */
#ifndef ARMING_H
#define ARMING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/cause.h"
#include "handler/channel.h"
#include "helper/places.h"

struct arming;

/* The table has WP_WATCHES_MAX entries.  again: it was that of another tracing
   process, which was killed: what it says is armed again.  0 or -errno. */
int arming_open(struct arming **, struct wp_channel *, pid_t program,
    struct armed *table, bool again);

/* Disarm all, if the program lives, and free. */
void arming_close(struct arming *);

/* Do what a request says.  0 or -errno with a cause; then all is as it was. */
int arming_arm(struct arming *, const struct wp_request *, struct wp_cause *);
int arming_move(struct arming *, const struct wp_request *, struct wp_cause *);
int arming_disarm(struct arming *, uint32_t index);

/* Look which watches want to be switched or counted (struct wp_channel_watch).
   */
void arming_look(struct arming *);

/* As wp_tracer_busy and wp_tracer_step. */
bool arming_busy(const struct arming *);
int arming_step(struct arming *);

#endif
