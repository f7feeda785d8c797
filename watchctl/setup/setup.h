/*
 * setup: from the command line to armed watches, and what is armed later for
 * --exe.
 */
#ifndef SETUP_H
#define SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct options;
struct process;
struct run;
struct wp_cause;

/* Arm everything.  0, or the exit status after a line on stderr. */
int run_begin(struct run *);

/* Say that the watch has begun, and what it cannot vouch for. */
void run_announce(struct run *);

/* --- attach_process.c --- */

/* What the SPECs mean in a process, and that it can be watched there; then from
   here on every access counts.  0 or -errno with a cause. */
int run_find_watches(struct run *, struct process *, struct wp_cause *);
int run_arm(struct run *, struct process *, struct wp_cause *);

/* The same of the last process, if err is 0, and who has its memory; on a
   failure, err included, it is forgotten.  0 or -errno with a cause. */
int run_arm_last(struct run *, struct process *, int err, struct wp_cause *);

/* Who has the memory of the processes from this one on, before they are armed,
   and when they are. */
void run_find_sharers(struct run *, size_t first, bool armed);

/* Forget process i, and the watches planned for it. */
void run_forget(struct run *, size_t i);

/* Watch one more process, which was to be watched from this time on, ns, or
   from a later one.  0; or -errno with a cause, and it is as if it had not
   come. */
int run_add_process(struct run *, pid_t, uint64_t since, struct wp_cause *);

/* --- poll_set.c --- */

/* Make what the loop sleeps on: signals and rings, once these are there; then
   the processes, once their ids are known.  0, or -errno after a line on
   stderr. */
int run_poll_make(struct run *);
int run_poll_processes(struct run *);

/* See whether a processor runs that is not watched; report it, once. */
void run_check_processors(struct run *);

/* Before there are hits to report, the signal that --last takes does nothing;
   then signals come through the descriptor that the loop sleeps on. */
void run_expect_signals(const struct options *);
void run_take_over_signals(const struct options *);

#endif
