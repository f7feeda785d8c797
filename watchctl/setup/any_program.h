/*
 * any_program: processes of --cgroup and --all-cpus, which may execute any
 * program: they are watched if they have a symbol that the SPECs name.
 */
#ifndef ANY_PROGRAM_H
#define ANY_PROGRAM_H

#include <stddef.h>

#include "os/cause.h"

struct process;
struct run;

/* Plan watches of those SPECs that are found in a process and are not watched
   there.  0; or -errno with a cause: -ENOENT or code UNMAPPED, it has none. */
int any_program_find(struct run *, struct process *, struct wp_cause *);

/* A process that runs as the watch begins cannot be watched, for this cause: it
   is left out, and reported unless it has nothing of it. */
void any_program_skip(struct run *, size_t i, int err, const struct wp_cause *);

/* All of these have been looked at.  0; or -errno after a line on stderr: there
   are some, and none has what may be watched. */
int any_program_check(struct run *);

/* Say that nothing is watched yet, or what is not. */
void any_program_announce(struct run *);

#endif
