/*
 * tracer_process: requests of the watched program that need ptrace(2): holding
 * its threads, and watches that are armed in each thread.
 *
 * The helper forwards them to a tracing process, which answers them.  It is
 * forked when it is first needed, and ends when nothing is traced any more
 * (ptrace_loop.h explains why it is a process).  The two look after each other:
 * if the tracing process is killed, another takes its place and arms everything
 * again; if the helper is killed, the tracing process continues until the
 * program ends, because somebody has to take the traps of its debug registers.
 *
 * It is a child of the helper, and its end raises SIGCHLD: the helper should
 * wait(2) for children by their ids.
 */
#ifndef TRACER_PROCESS_H
#define TRACER_PROCESS_H

#include <sys/types.h>

#include "handler/channel.h"

struct tracer_process;
struct wp_uptime;

/* Ready to trace a program; nothing is started yet.  0 or -errno. */
int tracer_process_open(struct tracer_process **, pid_t program);

/*
 * See whether the program wants something, or the tracing process has been
 * killed: to be called whenever the bell rings, and now and then.  Does not
 * wait.  Requests that are others' to answer are left alone.
 */
void tracer_process_request(struct tracer_process *, struct wp_channel *);

/* Disarm everything, release the threads, free.  NULL: nothing to do. */
void tracer_process_close(struct tracer_process *);

/* For how long the watches that it has armed have been on, with those that are;
   not known if there was none, or a tracing process was killed.  uptime.watch
   is the channel's index.  Waits for the tracing process, but not for long. */
void tracer_process_uptime(struct tracer_process *, struct wp_uptime *);

/* The program has ended: wait until the tracing process has seen so, too, which
   has the last word on what was counted. */
void tracer_process_await_end(struct tracer_process *);

#endif
