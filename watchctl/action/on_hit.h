/*
 * on_hit: does what --on-hit requests at each hit, while the thread that made
 * it is stopped.
 *
 *	pause		leave the process stopped and untraced, print how to
 *			attach a debugger, and end
 *	exec CMD	run CMD by sh -c with the hit in its environment
 *	core		write a core file of the live process
 */
#ifndef ON_HIT_H
#define ON_HIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "option/on_hit_option.h"

struct core_of;
struct core_size;
struct session;

/* What is known of the hit. */
struct on_hit_at {
	uint64_t seq;		/* its number in the report; 0: it is not
				   explained yet */
	pid_t pid, tid;
	uint64_t addr;		/* 0: not known */
	const char *environment;	/* len bytes as of
					   session/environment.h, which are
					   checked; 0: none */
	size_t len;
};

/* Operations that only the tracer of a process can perform. */
struct on_hit_tracer {
	/* Keep all threads stopped until the one that hit is released.  0 or
	   -errno. */
	int (*hold)(void *arg, pid_t pid);
	/* As core_write; NULL: the calling thread is the tracer. */
	int (*core)(void *arg, int fd, const struct core_of *,
	    struct core_size *);
	void *arg;
};

/*
 * Perform the action after the hit's report was flushed; the thread that hit is
 * stopped.  Failures are reported by session_warn, and the target continues.
 * After `pause' the caller must leave the process without watches and tracer,
 * with SIGSTOP pending or in effect.
 */
void on_hit_act(struct on_hit *, const struct on_hit_tracer *,
    struct session *, const struct on_hit_at *);

/* With pause: once the process is stopped and released, print on stderr how to
   attach a debugger and how to let the process continue. */
void on_hit_report_paused(const struct on_hit *);

#endif
