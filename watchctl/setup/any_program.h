/*
 * any_program: processes that may run any program: those of --cgroup and
 * --all-cpus, and those that have executed another one.  They are watched if
 * they have a symbol that a SPEC names.
 */
#ifndef ANY_PROGRAM_H
#define ANY_PROGRAM_H

#include <stddef.h>

#include "os/cause.h"

struct process;
struct run;

/* Plan watches for the SPECs that are found in a process and are not watched
   there yet.  0; or -errno with a cause: -ENOENT or code UNMAPPED: none was
   found. */
int any_program_find(struct run *, struct process *, struct wp_cause *);

/* Leave out a process that was running when the watch began and cannot be
   watched for this cause; and report it, unless it has no such symbol. */
void any_program_skip(struct run *, size_t i, int err, const struct wp_cause *);

/* Call this after all running processes were examined.  0, or -errno after a
   line on stderr if there are some but none has anything to watch. */
int any_program_check(struct run *);

/* Print that nothing is watched yet, or what is not. */
void any_program_announce(struct run *);

#endif
