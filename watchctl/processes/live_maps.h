/*
 * live_maps: keeps a space up to date with the mappings of a running process.
 * Changes are not announced, so each sample is examined for signs of one.
 */
#ifndef LIVE_MAPS_H
#define LIVE_MAPS_H

#include "module/module.h"

/* What a process is, and maps, when it begins to be watched. */
struct live_maps_origin {
	uint64_t program;	/* wp_proc_program, */
	bool known;		/* if that is known */
	uint64_t code;		/* wp_proc_code of what is known to be mapped;
				   0: nothing is */
};

struct live_maps {
	struct ex_space *space;
	pid_t pid;
	struct live_maps_origin is;	/* the program that is meant, and what
					   was learnt last */
	uint64_t looked;	/* when, ns */
	uint64_t cost;		/* what looking took, ns */
	uint64_t doubted[64];	/* pcs that a look did not help, hashed; 0:
				   none */
};

/* What a process is that has executed the program that is meant; nothing is
   known of that yet. */
void live_maps_origin(pid_t pid, struct live_maps_origin *);

/* Begin with a process that was that. */
void live_maps_begin(struct live_maps *, struct ex_space *, pid_t pid,
    const struct live_maps_origin *);

/* Learn what the process maps now, if that has changed.  0 or -errno: -ESRCH,
   it has ended, or executes another program now, whose mappings would explain
   its hits wrongly. */
int live_maps_look(struct live_maps *);

/* The same, if this sample of the process says that something has, or it is
   time again. */
void live_maps_check(struct live_maps *, const struct ex_sample *);

/* The same, of a process that has mapped nothing since the last check. */
void live_maps_check_again(struct live_maps *, const struct ex_sample *);

#endif
