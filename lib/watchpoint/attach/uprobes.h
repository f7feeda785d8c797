/*
 * uprobes: watches execution at places of a target's programs by the kernel's
 * uprobes, which take no slot.
 *
 * Overview: a uprobe is an event on one thread of the process, whose program
 * runs for all threads of the process.  The kernel puts a breakpoint
 * instruction into the process's own copy of the code, and removes it when the
 * event is closed, even if that is because this process was killed.  Opening
 * and closing are slow, so uprobes are opened before the process is held, and
 * are turned on later:
 *
 *	wp_uprobes_plan -> programs are loaded -> wp_uprobes_open
 *	    -> wp_uprobes_turn (on, off) ... -> wp_uprobes_close
 *
 * For children to be watched, too, uprobes are named, and each thread has an
 * event of each of them that is inherited: see uprobe_names.h.
 *
 * One thread uses them.
 */
#ifndef WP_UPROBES_H
#define WP_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/target.h"
#include "os/uprobe_names.h"
#include "bpf/uprobe_guard.h"

struct wp_uprobes {
	int map;		/* the map that is shared with programs; < 0:
				   none yet */
	struct wp_guarded *guarded;	/* its contents */
	unsigned given;		/* the number of its elements in use */
	bool named;		/* they have names */
	struct wp_uprobe {
		uint16_t watch, slot;
		pid_t pid, tid;	/* the process, and the thread on which the
				   event was opened */
		uint64_t addr;
		unsigned index;	/* in guarded */
		int fd, program;	/* < 0: not opened, not loaded */
		struct wp_uprobe_name name;	/* while it is open and named,
						   fd keeps it, and tid is 0 */
		int programs;	/* the attached program that turns it off when
				   the process executes another program; < 0:
				   that of another uprobe does */
	} *uprobe;		/* n of them */
	size_t n, cap;
	struct wp_followed {	/* events that are inherited */
		struct {
			int fd;
			uint16_t watch;
		} *event;	/* n of them */
		size_t n, cap;
	} followed;
	struct wp_closer *closer;	/* closes uprobes, in a thread of its
					   own */
};

/* Open an event at a place of this thread's process, or at the return of the
   function that begins there: a descriptor or -errno; and the reason of such an
   error. */
int wp_uprobe_open(pid_t tid, uint64_t addr, bool returns);
int wp_uprobe_open_signal(pid_t tid, uint64_t addr);	/* it overflows at each
							   hit */
const char *wp_uprobe_why_not(int err);

/* Make a guard for each place of these watches that is to be a uprobe.  0; or
   -errno with a cause, and none is made. */
int wp_uprobes_plan(struct wp_target *, size_t first, size_t n, pid_t,
    struct wp_cause *);

/* The guard of a place.  False: it has none. */
bool wp_uprobes_guard(const struct wp_uprobes *, size_t watch, unsigned slot,
    struct wp_uprobe_guard *);

/* Open the uprobes of these watches, turned off; their programs have been
   loaded.  0; -ECANCELED: start again, because another watch is a uprobe now;
   or -errno with a cause, and none is open. */
int wp_uprobes_open(struct wp_target *, size_t first, size_t n,
    struct wp_cause *);

/* Watch what a thread creates from now on, if the uprobes of these watches are
   named.  0 or -errno. */
int wp_uprobes_follow(struct wp_uprobes *, size_t first, size_t n, pid_t tid);

void wp_uprobes_turn(struct wp_uprobes *, size_t first, size_t n, bool on);

/* The number of hits of a watch. */
uint64_t wp_uprobes_count(const struct wp_uprobes *, size_t watch);

/* Report that a thread has ended: uprobes that were opened on it are opened on
   another thread of its process.  Result: how many; 0: none, or the whole
   process has ended; -errno: some could not be. */
int wp_uprobes_move(struct wp_target *, pid_t tid);

/* Close the uprobes of these watches, by a thread, since it is slow. */
void wp_uprobes_close(struct wp_uprobes *, size_t first, size_t n);

/* Close all uprobes, and wait until that is done. */
void wp_uprobes_free(struct wp_uprobes *);

#endif
