/*
 * uprobe_guard: the check with which each program of a uprobe begins.
 *
 * A uprobe is in a file.  It runs its programs wherever a process that it is
 * for has that mapped, so they see to it that it is the place that is meant,
 * and that the process is: one that vfork(2) has made has the same memory.
 */
#ifndef WP_UPROBE_GUARD_H
#define WP_UPROBE_GUARD_H

#include <stdint.h>
#include <sys/types.h>

struct code;

/* What is shared with the programs of a place. */
struct wp_guarded {
	uint64_t on;		/* whether they run */
	uint64_t count;		/* the hits, each before anything else */
};

struct wp_uprobe_guard {
	uint64_t addr;
	pid_t pid;
	int map;		/* an array that can be mapped, */
	unsigned index;		/* and which struct wp_guarded is its own */
};

/* End here unless it is a hit, which is counted.  What the program is given is
   in R6; the other registers are changed, and at the stack's end are the
   thread and, behind it, the process. */
void wp_code_guard(struct code *, const struct wp_uprobe_guard *);

/* Jump if another process runs.  At the stack's end are the thread and, behind
   it, the process; registers 0 to 5 are changed. */
void wp_code_unless_process(struct code *, pid_t, unsigned other[2]);

/* Turn off this one's and the n - 1 next ones' when the process has executed
   another program, before that begins, until the descriptor is closed; or
   -errno. */
int wp_uprobe_guard_programs(const struct wp_uprobe_guard *, unsigned n);

#endif
