/*
 * tracer_process: serves the requests of the watched program that need
 * ptrace(2): holding its threads, and watches that are armed in each thread.
 *
 * The helper forwards them to a tracing process, which answers them.  It is
 * forked when it is first needed, and ends when nothing is traced any more
 * (ptrace_loop.h explains why it is a process).  The two watch over each other:
 * if the tracing process is killed, another takes its place and arms everything
 * again; if the helper is killed, the tracing process continues until the
 * program ends, because somebody has to handle the traps of its debug
 * registers.
 *
 * It is a child of the helper, and its end raises SIGCHLD: the helper has to
 * wait(2) for children by their ids.
 */
#ifndef TRACER_PROCESS_H
#define TRACER_PROCESS_H

#include <sys/types.h>

#include "handler/channel.h"

struct tracer_process;
struct wp_uptime;

/* Prepare to trace a program; nothing is started yet.  0 or -errno. */
int tracer_process_open(struct tracer_process **, pid_t program);

/*
 * Check whether the program has a request, or the tracing process was killed.
 * Call this whenever the bell rings, and now and then.  It does not wait, and
 * leaves requests alone that others answer.
 */
void tracer_process_request(struct tracer_process *, struct wp_channel *);

/* Disarm everything, release the threads, and free.  NULL: nothing to do. */
void tracer_process_close(struct tracer_process *);

/* For how long the watches that it has armed have been on, including those that
   are; unknown if there was no tracing process, or one was killed. uptime.watch
   is the channel's index.  Waits for the tracing process, but not for long. */
void tracer_process_uptime(struct tracer_process *, struct wp_uptime *);

/* The program has ended: wait until the tracing process, which has the final
   counts, has noticed that. */
void tracer_process_await_end(struct tracer_process *);

#endif
