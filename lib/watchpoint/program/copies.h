/*
 * copies: this library may be in a program more than once: linked into it,
 * preloaded, in objects that are loaded later.  Each copy has watches and
 * signal handlers of its own.
 *
 * Overview.  A copy has a number, which is in sig_data, so that no signal is
 * taken for one of another copy's watches; a signal of another's is handed on
 * to the action that was displaced, which leads to that one's handler.  The
 * object that a copy is in has an ELF note, by which the others find it.
 */
#ifndef WP_COPIES_H
#define WP_COPIES_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/cause.h"

/* Of another copy, which may be of another version of the library: a number
   that is not known here says that nothing else of it is. */
enum { WP_COPY_VERSION = 1, WP_COPIES_MAX = 255 };

struct wp_copy {
	uint32_t version;		/* WP_COPY_VERSION */
	_Atomic uint32_t number;	/* 1 to WP_COPIES_MAX; 0: it has had no
					   watch yet, and may be unloaded */
	/* Whether the action is one that it has installed; and what was there
	   before it, of one of its signals. */
	bool (*is_its)(const struct sigaction *);
	const struct sigaction *(*displaced)(int sig);
	/* The calling thread begins to make a process that executes a program,
	   and has done so. */
	void (*making)(bool begins);
};

/* Have a number: before the first watch is opened, not locked.  0 or -errno
   with a cause. */
int wp_copies_join(struct wp_cause *);

/* Whether signals that come to this action come to ours, because it is ours or
   other copies hand them on; not locked. */
bool wp_copies_lead_here(int sig, const struct sigaction *);

/* This copy's thread begins to make such a process, and has done so, as the
   others are to know. */
void wp_copies_making(bool begins);

#endif
