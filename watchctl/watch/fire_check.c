/* fire_check: fires a breakpoint before the first use. */
#include "watch/fire_check.h"

#include <errno.h>

#include "util/complain.h"
#include "probe/probe.h"

static int
try_register(void)
{
	struct wp_probe_result shot;

	wp_probe_fire(WP_PROBE_PTRACE, &shot);
	if (shot.ok || shot.err != 0)
		return 0;
	(void)complain("%s: %s", shot.detail, shot.advice);
	return -ENODEV;
}

int
fire_check_processors(struct wp_cause *cause)
{
	struct wp_probe_cpus cpus;

	wp_probe_cpus(&cpus);
	return cpus.silent < 0 ? 0 : wp_cause_set(cause, WP_CAUSE_SILENT,
	    cpus.silent, cpus.fired, cpus.tried);
}

static int
try_processors(void)
{
	struct wp_cause cause;
	int err = fire_check_processors(&cause);

	if (err < 0)
		(void)complain("%s", cause.text);
	return err;
}

int
fire_check_try(bool registers)
{
	return registers ? try_register() : try_processors();
}

int
fire_check_inside(void)
{
	struct wp_features features;
	struct wp_cause cause;

	if (fire_check_try(false) < 0)
		return -ENODEV;
	return wp_probe_features(&features, &cause) < 0 ? fire_check_try(true) :
	    0;
}
