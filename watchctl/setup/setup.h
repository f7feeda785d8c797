/*
 * setup: turns the command line into armed watches, and arms what comes later
 * for --exe.
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
struct watch_event;
struct wp_cause;

/* Why uprobes cannot be opened. */
#define RUN_NO_UPROBES "need root, or CAP_SYS_ADMIN, and BPF programs"

/* Why uprobes cannot watch execution with these options on this machine, as the
   end of a sentence; NULL: they can, if they can be opened. */
const char *run_no_uprobes(const struct options *);

/* Arm everything.  0, or the exit status after a line on stderr. */
int run_begin(struct run *);

/* Print that the watch has begun, and what may be missed. */
void run_announce(struct run *);

/* --- attach_process.c --- */

/* Resolve the SPECs in a process, and check that it can be watched; then arm
   the watches: every access from then on counts.  0 or -errno with a cause. */
int run_find_watches(struct run *, struct process *, struct wp_cause *);
int run_arm(struct run *, struct process *, struct wp_cause *);

/* The same of the last process, if err is 0, and who has its memory; on a
   failure, err included, it is forgotten.  0 or -errno with a cause. */
int run_arm_last(struct run *, struct process *, int err, struct wp_cause *);

/* Find processes that share memory with those from `first' on: before these are
   armed, and again when they are. */
void run_find_sharers(struct run *, size_t first, bool armed);

/* Forget process i, and the watches planned for it. */
void run_forget(struct run *, size_t i);

/* Add a process of which nothing is watched.  NULL: out of memory. */
struct process *run_add_unwatched(struct run *, pid_t);

/* Watch another process, which should have been watched since this time, ns, or
   a later one.  0; or -errno with a cause, and the process is ignored. */
int run_add_process(struct run *, pid_t, uint64_t since, struct wp_cause *);

/* --- poll_set.c --- */

/* Make the set of descriptors that the loop polls: signals, and rings once they
   exist; then processes, once their IDs are known.  0, or -errno after a line
   on stderr. */
int run_poll_make(struct run *);
int run_poll_processes(struct run *);

/* run_expect_signals ignores the signal that --last uses until there are hits
   to report.  After run_take_over_signals, signals are received by a descriptor
   that the loop polls. */
void run_expect_signals(const struct options *);
void run_take_over_signals(const struct options *);

/* --- processors.c --- */

/* Watch processors that came online, and report that, and that one cannot be
   watched. */
void run_check_processors(struct run *);

#endif
