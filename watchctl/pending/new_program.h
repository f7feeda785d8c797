/*
 * new_program: programs that a process executes while the watch is on, in which
 * the SPECs are resolved again.
 */
#ifndef NEW_PROGRAM_H
#define NEW_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct run;
struct watch_event;
struct wp_cause;

struct process;

/* Add a process that gets its watches after the report has begun.  NULL: out of
   memory. */
struct process *run_new_program(struct run *, pid_t);

/* Remove all processes from this one on, which were added in this way before a
   report began. */
void run_leave_programs(struct run *, size_t first);

/* Plan a process's watches, of the SPECs that are found there.  0 or -errno
   with a cause. */
int run_plan(struct run *, struct process *, const bool *found,
    struct wp_cause *);

/* Whether there is a SPEC that another program may have, and that can be
   watched there. */
bool run_watches_programs(const struct run *);

/* Whether there is one that means nothing in another program. */
bool run_has_addresses(const struct run *);

/* Set the path of the program that the process of the event runs. */
void run_name_program(struct watch_event *);

/* Report which SPECs, of those that lacks() says, a program does not have that a
   process executed. */
void run_report_missing(struct run *, pid_t, bool (*lacks)(const void *arg,
    size_t spec), const void *arg);

/* When the mappings of a process change: have all its earlier records
   explained.  Result: whether it is watched. */
bool run_explain_before(struct run *, pid_t);

/*
 * A process is held at the end of its execve(2), traced by the calling thread
 * or launched: watch what the SPECs name in its new program, and let it
 * continue.  False: nothing was done.
 */
bool run_program(struct run *, pid_t);

#endif
