/* processors: whether all that run are watched. */
#include "setup/setup.h"

#include "os/clock.h"
#include "run/run.h"
#include "setup/arrivals.h"
#include "setup/mappers.h"

/* How often events of processors are read, ns. */
#define LOOK UINT64_C(1000000000)

void
run_check_processors(struct run *run)
{
	const uint64_t now = wp_clock_ns();
	const bool look = run->reason != NULL || now >= run->processors_due;
	int cpu;

	if (run->uncovered_reported)
		return;
	if (look) {
		run->processors_due = now + LOOK;
		wp_target_check_processors(run->target);
	}
	if ((cpu = wp_rings_uncovered(wp_target_rings(run->target))) < 0 &&
	    (cpu = arrivals_uncovered(run->arrivals, look)) < 0 &&
	    (cpu = mappers_uncovered(run->mappers, look)) < 0)
		return;
	run->uncovered_reported = true;
	session_warn(&run->session, "processor %d runs and cannot be watched: "
	    "it was offline when the watch began, or has been offline since, "
	    "or perf_event_open(2) refused it; accesses there are neither seen "
	    "nor counted", cpu);
	session_doubt(&run->session, "processor %d was not watched", cpu);
}
