/*
 * exec_tracer: a thread that traces programs which have nothing to watch, until
 * they execute a program that has.
 *
 * A program that is watched by rings is not traced.  But only a tracer holds a
 * process before another program's first instruction, whatever else the machine
 * does meanwhile.  So this thread starts the command, traces it and, with -f,
 * the processes that it makes, and passes on their signals; each time that one
 * of them has executed a program it says so, and then runs what is to be done
 * with it, since only a tracer's own thread can do it.  What is armed then is
 * let go, unless it waits for a module: then each call of its loader's hook, at
 * which an execution breakpoint stops the thread, is looked at in the same
 * way.  A process that is made by fork(2) is not watched where it maps a
 * module, but it is seen whether it does.
 *
 * If watchctl is killed, the kernel lets all of them go on.
 */
#ifndef EXEC_TRACER_H
#define EXEC_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

#include "os/cause.h"

struct exec_tracer;
struct run;

/* Start the thread; and with it the command of the run, if it has one, held
   before its first instruction: the first program that exec_tracer_take looks
   at.  0 or -errno with a cause. */
int exec_tracer_start(struct exec_tracer **, struct run *, struct wp_cause *);

/* Watch a process that runs, by run_attach_waiting: it is traced from then on.
   0 or -errno with a cause. */
int exec_tracer_attach(struct exec_tracer *, pid_t, struct wp_cause *);

/* A descriptor that can be read when there is something to take. */
int exec_tracer_fd(const struct exec_tracer *);

/* Have run_program look at what has been executed, and run_modules at what has
   been mapped.  NULL: nothing is traced. */
void exec_tracer_take(struct exec_tracer *);

/* The same for the first of them, which is waited for. */
void exec_tracer_take_one(struct exec_tracer *);

/* In the thread, from what takes long: whether the run goes on. */
bool exec_tracer_goes_on(const struct exec_tracer *);

struct process;

/* From run_program, and of one that runs from run_attach_waiting: the held
   process goes on, traced, armed with its watches if it has any; and it stops
   at each call of its hook, if it has one, for run_modules.  0 or -errno with a
   cause. */
int exec_tracer_pass(struct exec_tracer *, const struct process *,
    struct wp_cause *);

/* From run_modules: arm more of a traced process.  0 or -errno with a cause. */
int exec_tracer_arm(struct exec_tracer *, const struct process *,
    struct wp_cause *);

/* Whether any process is traced. */
bool exec_tracer_is_busy(const struct exec_tracer *);

/* Let all go, as they are.  Result: whether a hook was called and its thread
   did not stop, so that what was mapped then may have been missed.  *child: a
   process that was made by fork(2), executed no program, and mapped or unmapped
   a module that is waited for: nothing was done there.  Unchanged: there was
   none. */
bool exec_tracer_end(struct exec_tracer *, pid_t *child);

#endif
