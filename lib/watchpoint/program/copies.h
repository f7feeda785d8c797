/*
 * copies: the copies of this library in one program: it may be linked into the
 * program, preloaded, and in objects that are loaded later.  Each copy has
 * watches and signal handlers of its own.
 *
 * Overview.  Each copy has a number, which is in sig_data, so that it does not
 * take a signal for one of its own watches if it is another copy's.  It passes
 * such a signal on to the signal action that it displaced, which leads to the
 * other copy's handler.  The object that contains a copy has an ELF note, by
 * which the other copies find it.
 */
#ifndef WP_COPIES_H
#define WP_COPIES_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/cause.h"

/* What other copies can read of a copy.  They may be of another version of the
   library: if the version is unknown, so is the layout of the rest. */
enum { WP_COPY_VERSION = 1, WP_COPIES_MAX = 255 };

struct wp_copy {
	uint32_t version;		/* WP_COPY_VERSION */
	_Atomic uint32_t number;	/* 1 to WP_COPIES_MAX; 0: it has had no
					   watch yet, and may be unloaded */
	/* Whether the copy installed this action; and the action that it
	   displaced for one of its signals. */
	bool (*is_its)(const struct sigaction *);
	const struct sigaction *(*displaced)(int sig);
	/* The calling thread begins to start a process that executes a program;
	   or, !begins, has done so. */
	void (*making)(bool begins);
};

/* Get a number, before the first watch is opened; not locked.  0 or -errno with
   a cause. */
int wp_copies_join(struct wp_cause *);

/* Whether signals to this action reach ours, because it is ours or other copies
   pass them on; not locked. */
bool wp_copies_lead_here(int sig, const struct sigaction *);

/* Report to the other copies that a thread begins to start such a process, or
   has done so. */
void wp_copies_making(bool begins);

#endif
