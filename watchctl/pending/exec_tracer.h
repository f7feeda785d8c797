/*
 * exec_tracer: a thread that traces programs that have nothing to watch, until
 * they execute a program that has.
 *
 * Programs that are watched by rings are not traced.  But only a tracer can
 * reliably hold a process before the first instruction of a program that it
 * executes.  So this thread starts the command, traces it and, with -f, the
 * processes that it makes, and passes on their signals.  Each time one of them
 * executes a program, the thread reports that, and then does what is to be done
 * with the process, since only a tracer's own thread can.  An armed process is
 * released, unless it waits for a module: then an execution breakpoint stops
 * its threads at each call of its loader's hook, and the thread handles these
 * in the same way.  A child made by fork(2) is not watched where it maps a
 * module, but it is noticed that it does.
 *
 * If watchctl is killed, the kernel lets all of them continue.
 */
#ifndef EXEC_TRACER_H
#define EXEC_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

#include "os/cause.h"

struct exec_tracer;
struct run;

/* Start the thread and, if the run has a command, that too, held before its
   first instruction: exec_tracer_take examines it first.  0 or -errno with a
   cause. */
int exec_tracer_start(struct exec_tracer **, struct run *, struct wp_cause *);

/* Watch a running process by run_attach_waiting, and trace it from then on.  0
   or -errno with a cause. */
int exec_tracer_attach(struct exec_tracer *, pid_t, struct wp_cause *);

/* A descriptor that can be read when there is something to take. */
int exec_tracer_fd(const struct exec_tracer *);

/* Call run_program for programs that were executed, and run_modules for modules
   that were mapped.  NULL: nothing is traced. */
void exec_tracer_take(struct exec_tracer *);

/* The same for the first program, which this waits for. */
void exec_tracer_take_one(struct exec_tracer *);

/* For slow operations in the thread: whether the run continues. */
bool exec_tracer_goes_on(const struct exec_tracer *);

struct process;

/* Within run_program and run_attach_waiting: let the held process continue,
   traced, and armed if it has watches.  If it has a hook, it stops at each call
   of it for run_modules.  0 or -errno with a cause. */
int exec_tracer_pass(struct exec_tracer *, const struct process *,
    struct wp_cause *);

/* Within run_modules: arm more in a traced process.  0 or -errno with a
   cause. */
int exec_tracer_arm(struct exec_tracer *, const struct process *,
    struct wp_cause *);

/* Whether any process is traced. */
bool exec_tracer_is_busy(const struct exec_tracer *);

/* Release all processes as they are.  Result: whether a hook was called without
   stopping its thread, so that modules may have been missed. *child: a process
   made by fork(2) that executed no program, and mapped or unmapped a module
   that is waited for, where nothing was done; unchanged if there was none. */
bool exec_tracer_end(struct exec_tracer *, pid_t *child);

#endif
