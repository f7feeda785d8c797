/* processors: whether all that run are watched. */
#include "setup/setup.h"

#include "os/clock.h"
#include "pending/instances.h"
#include "run/run.h"
#include "setup/arrivals.h"
#include "setup/mappers.h"

/* The interval at which events of processors are read, ns. */
#define LOOK UINT64_C(1000000000)

/* What ran on it before its events were opened may have been missed. */
static void
report_returned(struct run *run, int cpu, uint64_t since)
{
	const double gap = (double)(wp_clock_ns() - since) / 1e6;

	session_warn(&run->session, "processor %d came online and is watched "
	    "from now on: what ran there in the last %.0f ms was neither seen "
	    "nor counted", cpu, gap);
	session_doubt(&run->session, "processor %d was not watched for up to "
	    "%.0f ms", cpu, gap);
	(void)session_flush(&run->session, 0);
}

static void
report_uncovered(struct run *run, int cpu)
{
	run->uncovered_reported = true;
	session_warn(&run->session, "processor %d runs and cannot be watched: "
	    "perf_event_open(2) refused it; accesses there are neither seen "
	    "nor counted", cpu);
	session_doubt(&run->session, "processor %d was not watched", cpu);
}

void
run_check_processors(struct run *run)
{
	const uint64_t now = wp_clock_ns(), since = run->processors_looked;
	const bool look = run->reason != NULL || now >= since + LOOK;
	struct wp_rings *const rings[] = {
		wp_target_rings(run->target),
		arrivals_rings(run->arrivals, look),
		mappers_rings(run->mappers, look),
	};
	int cpu;

	if (look) {
		run->processors_looked = now;
		wp_target_check_processors(run->target);
	}
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		while ((cpu = wp_rings_returned(rings[i])) >= 0) {
			instances_learn(run);
			report_returned(run, cpu, since > 0 ? since :
			    run->began);
		}
		if (!run->uncovered_reported &&
		    (cpu = wp_rings_uncovered(rings[i])) >= 0)
			report_uncovered(run, cpu);
	}
}
