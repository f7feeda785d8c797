/*
 * loader: the dynamic loader of a process: where it stops a starting program
 * when it has mapped shared libraries, and the list of its modules that it
 * keeps for debuggers (_r_debug of <link.h>).
 */
#ifndef LOADER_H
#define LOADER_H

#include <stdbool.h>

#include "broker/live_broker.h"

/* The stops of a program that has just been executed. */
struct loader {
	uint64_t hook;		/* the dynamic loader's call when its list of
				   modules changes; 0: it has none */
	uint64_t entry;		/* the program's first instruction, or 0 */
};

/* Find them in a process that is held at the end of execve, and has been
   learnt.  The hook is called before any constructor runs, which is why it is
   wanted. */
void loader_find(pid_t, struct live_broker *, struct loader *);

/* The same hook of a process that runs, as its loader itself says; 0: it has
   none (static), or has not begun. */
uint64_t loader_hook_of(pid_t);

/* Whether its program names one, which may not have begun. */
bool loader_is_needed(pid_t);

/* How far in front of a thread's control block the thread-local storage begins
   of the program itself, whose vaddrs have base added to them: linkers put that
   into its code, whatever its C library is.  False: it has none, or base is
   another module's. */
bool loader_program_storage(pid_t, uint64_t base, uint64_t *distance);

/* Where the loader keeps what it knows of the module whose vaddrs have base
   added to them (struct link_map); 0: there is none. */
uint64_t loader_module(pid_t, uint64_t base);

/* Whether the loader's list of modules is complete now, and not just being
   changed. */
bool loader_is_consistent(pid_t);

/* How many files a process has mapped to execute. */
unsigned loader_count(pid_t);

#endif
