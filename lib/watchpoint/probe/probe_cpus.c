/*
 * probe_cpus: fires a watch on each processor.
 *
 * Each processor has its own debug registers, and a hypervisor may give them to
 * some of its processors only, or take them and trap nothing.  The watches are
 * fired by one thread for each processor at the same time, so that it does not
 * take long on a busy machine.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "os/cpus.h"
#include "probe/probe_private.h"

enum { STACK = 64 << 10 };

struct cpu_shot {
	int cpu;
	pthread_t thread;
	bool tried;		/* the watch was set and the store made there */
	bool fired;
};

/* When a processor goes offline in the meantime, its threads move to others. */
static void *
shoot(void *arg)
{
	const size_t size = CPU_ALLOC_SIZE(WP_CPUS_MAX);
	cpu_set_t *only = CPU_ALLOC(WP_CPUS_MAX);
	struct cpu_shot *shot = arg;
	int got;

	if (only == NULL)
		return NULL;
	CPU_ZERO_S(size, only);
	CPU_SET_S((size_t)shot->cpu, size, only);
	if (sched_setaffinity(0, size, only) == 0 &&
	    sched_getcpu() == shot->cpu && (got = wp_probe_fires()) >= 0 &&
	    sched_getcpu() == shot->cpu) {
		shot->tried = true;
		shot->fired = got > 0;
	}
	CPU_FREE(only);
	return NULL;
}

/* Prepare a shot for each processor that this thread may run on.  Result: how
   many. */
static unsigned
find_processors(struct cpu_shot *shots)
{
	const size_t size = CPU_ALLOC_SIZE(WP_CPUS_MAX);
	cpu_set_t *all = CPU_ALLOC(WP_CPUS_MAX);
	unsigned n = 0;

	if (all == NULL)
		return 0;
	if (sched_getaffinity(0, size, all) == 0)
		for (int cpu = 0; cpu < WP_CPUS_MAX; cpu++)
			if (CPU_ISSET_S((size_t)cpu, size, all))
				shots[n++].cpu = cpu;
	CPU_FREE(all);
	return n;
}

/* A processor for which no thread can be created is not tried. */
static void
shoot_all(struct cpu_shot *shots, unsigned n)
{
	pthread_attr_t attr;
	unsigned begun = 0;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	while (begun < n && pthread_create(&shots[begun].thread, &attr, shoot,
	    &shots[begun]) == 0)
		begun++;
	for (unsigned i = 0; i < begun; i++)
		(void)pthread_join(shots[i].thread, NULL);
	(void)pthread_attr_destroy(&attr);
}

void
wp_probe_cpus(struct wp_probe_cpus *out)
{
	struct cpu_shot *shots = calloc(WP_CPUS_MAX, sizeof(*shots));
	unsigned n;

	*out = (struct wp_probe_cpus){.silent = -1};
	if (shots == NULL)
		return;
	n = find_processors(shots);
	shoot_all(shots, n);
	for (unsigned i = 0; i < n; i++) {
		out->tried += shots[i].tried;
		out->fired += shots[i].fired;
		if (shots[i].tried && !shots[i].fired && out->silent < 0)
			out->silent = shots[i].cpu;
	}
	free(shots);
}
