/*
 * loader: the dynamic loader of a process: where a starting program can be
 * stopped after it has mapped its shared libraries, and the list of modules
 * that the loader keeps for debuggers (_r_debug of <link.h>).
 */
#ifndef LOADER_H
#define LOADER_H

#include <stdbool.h>

#include "broker/live_broker.h"

/* Where a program that was just executed can be stopped. */
struct loader {
	uint64_t hook;		/* the function that the dynamic loader calls
				   when its list of modules changes; 0: none */
	uint64_t entry;		/* the program's first instruction, or 0 */
};

/* Find these in a process that is held at the end of execve, and whose mappings
   are known.  The hook is called before any constructor runs, which is why it
   is needed. */
void loader_find(pid_t, struct live_broker *, struct loader *);

/* The hook of a running process, according to its loader; 0: it has none
   (static), or the loader has not begun. */
uint64_t loader_hook_of(pid_t);

/* Whether the program names a loader, which may not have begun. */
bool loader_is_needed(pid_t);

/* The distance from the program's own thread-local storage to the thread's
   control block behind it; the program's vaddrs have base added to them.
   Linkers put it into the code, so it does not depend on the C library.  False:
   there is no such storage, or base is another module's. */
bool loader_program_storage(pid_t, uint64_t base, uint64_t *distance);

/* The address of the loader's description (struct link_map) of the module whose
   vaddrs have base added to them; 0: there is none. */
uint64_t loader_module(pid_t, uint64_t base);

/* Whether the loader's list of modules is complete now, and not just being
   changed. */
bool loader_is_consistent(pid_t);

/* The number of files that a process has mapped executable. */
unsigned loader_count(pid_t);

#endif
