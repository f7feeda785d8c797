/*
 * live_maps: keeps a space up to date with the mappings of a running process.
 * Changes are not announced, so each sample is examined for signs of one.
 */
#ifndef LIVE_MAPS_H
#define LIVE_MAPS_H

#include "record/record.h"

struct ex_space;

/* Identifies a process's program and its mappings when it begins to be
   watched. */
struct live_maps_origin {
	uint64_t program;	/* wp_proc_program, */
	bool known;		/* whether it is known */
	uint64_t code;		/* wp_proc_code when the mappings were learned;
				   0: they were not */
};

struct live_maps {
	struct ex_space *space;
	pid_t pid;
	struct live_maps_origin is;	/* the watched program, and what was
					   learned last */
	uint64_t looked;	/* time of the last check, ns */
	uint64_t cost;		/* duration of a check, ns */
	uint64_t doubted[64];	/* pcs, hashed, for which a check found nothing
				   new; 0: none */
};

/* Fill in the origin of a process that executes the watched program; nothing is
   known of its mappings yet. */
void live_maps_origin(pid_t pid, struct live_maps_origin *);

/* Begin with a process of this origin. */
void live_maps_begin(struct live_maps *, struct ex_space *, pid_t pid,
    const struct live_maps_origin *);

/* Learn what the process maps now, if that has changed.  0 or -errno: -ESRCH,
   it has ended, or executes another program now, whose mappings would explain
   its hits wrongly. */
int live_maps_look(struct live_maps *);

/* The same, if this sample of the process indicates a change, or the last check
   is long ago. */
void live_maps_check(struct live_maps *, const struct ex_sample *);

/* The same for a process that has mapped nothing since the last check. */
void live_maps_check_again(struct live_maps *, const struct ex_sample *);

#endif
