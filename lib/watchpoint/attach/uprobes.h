/*
 * uprobes: places of a target's programs that are watched without a slot, by
 * the kernel's uprobes.
 *
 * Overview: one takes an event, on a thread of the process, and its program
 * runs for all of its threads.  The kernel puts a breakpoint instruction into
 * the process's own copy of the code, and takes it back when the event is
 * closed, also if that is because we have been killed.  Opening and closing
 * take long, so they are opened before the process is held; they count from
 * when they are turned on.
 *
 *	wp_uprobes_plan -> programs are loaded -> wp_uprobes_open
 *	    -> wp_uprobes_turn (on, off) ... -> wp_uprobes_close
 *
 * One thread uses them.
 */
#ifndef WP_UPROBES_H
#define WP_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/target.h"
#include "bpf/uprobe_guard.h"

struct wp_uprobes {
	int map;		/* of what is shared with programs; < 0: there
				   is none yet */
	struct wp_guarded *guarded;	/* the same */
	unsigned given;		/* so many of it have been */
	struct wp_uprobe {
		uint16_t watch, slot;
		pid_t pid, tid;	/* the process; the thread that it is opened
				   on */
		uint64_t addr;
		unsigned index;	/* in guarded */
		int fd, program;	/* < 0: not opened, not known */
		int programs;	/* what turns it off when the process executes
				   another program; < 0: another's does */
	} *uprobe;		/* n of them */
	size_t n, cap;
	struct wp_closer *closer;	/* that are being closed */
};

/* An event at a place of this thread's process, or where the function that
   begins there returns: its descriptor, or -errno; and why not. */
int wp_uprobe_open(pid_t tid, uint64_t addr, bool returns);
const char *wp_uprobe_why_not(int err);

/* Have a guard for each place of these watches that is to be a uprobe.  0 or
   -errno with a cause: there are none of these. */
int wp_uprobes_plan(struct wp_target *, size_t first, size_t n, pid_t,
    struct wp_cause *);

/* The guard of a place; false: it has none. */
bool wp_uprobes_guard(const struct wp_uprobes *, size_t watch, unsigned slot,
    struct wp_uprobe_guard *);

/* Open those of these watches, turned off; their programs have been loaded.  0;
   -ECANCELED: begin anew, for another one is a uprobe now; or -errno with a
   cause: there are none of these. */
int wp_uprobes_open(struct wp_target *, size_t first, size_t n,
    struct wp_cause *);

void wp_uprobes_turn(struct wp_uprobes *, size_t first, size_t n, bool on);

/* The hits of a watch. */
uint64_t wp_uprobes_count(const struct wp_uprobes *, size_t watch);

/* A thread has ended: those that were opened on it are opened on another one of
   its process.  How many; 0: none, or all of that process has ended; -errno:
   not all could be. */
int wp_uprobes_move(struct wp_target *, pid_t tid);

/* Close those of these watches, which takes a thread its time. */
void wp_uprobes_close(struct wp_uprobes *, size_t first, size_t n);

/* Close all, and wait for that. */
void wp_uprobes_free(struct wp_uprobes *);

#endif
