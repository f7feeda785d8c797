/* live_maps_origin: the state of a process when its watch begins: the part of
   live_maps.h that reads no files. */
#include "processes/live_maps.h"

#include <errno.h>

#include "os/clock.h"
#include "proc/proc.h"

/* How many times, and how often, to check for the program that is being
   executed. */
enum { TRIES = 1000, NAP_NS = 1000000 };

void
live_maps_origin(pid_t pid, struct live_maps_origin *origin)
{
	int err = -ENOENT;

	*origin = (struct live_maps_origin){0};
	/* the process may be released before its execve(2) is complete */
	for (unsigned i = 0; i < TRIES && (err = wp_proc_program(pid,
	    &origin->program)) == -ENOENT; i++)
		wp_clock_sleep(NAP_NS);
	origin->known = err == 0;
}
