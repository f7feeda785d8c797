/*
 * all_cpus: watches of whatever runs on any processor.
 *
 * Overview: an event of each processor has the hits of all that runs there, and
 * reports what is created, executed and mapped.  There is nobody to be held and
 * nothing to be inherited.  The processes that are there are looked at when
 * that is on, so that what changes meanwhile is seen.
 */
#include "setup/all_cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/kallsyms.h"
#include "proc/proc.h"
#include "run/run.h"
#include "spec/kernel_place.h"
#include "util/visible.h"

int
all_cpus_find(struct run *run, struct process *process,
    struct wp_cause *cause)
{
	const struct options *o = run->options;
	struct wp_region *regions = calloc(o->nspecs, sizeof(*regions));
	int err = 0;

	if (regions == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	for (size_t i = 0; i < o->nspecs && err == 0; i++) {
		err = kernel_place_find(&o->spec[i], WP_KALLSYMS,
		    &process->place[i], cause);
		regions[i] = run_region(run, process, i);
	}
	if (err == 0)
		err = wp_target_watch(run->target, regions, o->nspecs, cause);
	free(regions);
	if (err < 0)
		return err;
	process->first = (size_t)err;
	process->n = o->nspecs;
	return 0;
}

/* Whether the kernel denies even root the information.  Lockdown for integrity
   alone does not. */
static bool
is_locked_down(void)
{
	char text[128];
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	bool locked;

	if (f == NULL)
		return false;
	locked = fgets(text, sizeof(text), f) != NULL &&
	    strstr(text, "[confidentiality]") != NULL;
	(void)fclose(f);
	return locked;
}

/* The kernel does not say which SPEC it refused, so all of them are named. */
static int
blame(const struct options *o, const char *why, struct wp_cause *cause)
{
	struct buffer text = {0};
	int err;

	for (size_t i = 0; i < o->nspecs; i++) {
		buffer_puts(&text, i > 0 ? "', '" : "");
		visible_put(&text, o->spec[i].text);
	}
	err = wp_cause_set(cause, WP_CAUSE_SPEC_RANGE, buffer_text(&text), why);
	buffer_free(&text);
	return err;
}

/* Explain why no event could be opened. */
static int
explain(const struct run *run, int err, struct wp_cause *cause)
{
	const bool one = run->options->nspecs == 1;
	char why[256];

	switch (-err) {
	case EACCES:
	case EPERM:
		(void)snprintf(why, sizeof(why), is_locked_down() ?
		    "not permitted: the kernel is locked down, see "
		    "/sys/kernel/security/lockdown and "
		    "kernel_lockdown(7)" :
		    "not permitted: watching the kernel's memory takes "
		    "CAP_SYS_ADMIN (kernel.perf_event_paranoid is %d): run as "
		    "root (sudo), of the machine and not of a container",
		    wp_proc_setting("perf_event_paranoid"));
		break;
	case ENOSPC:
		(void)snprintf(why, sizeof(why), "no free slot: it takes one "
		    "in each thread of the machine, and other perf events or a "
		    "debugger hold all %u of one (see what runs perf, gdb or "
		    "watchctl)", run->features.caps.slots);
		break;
	case EINVAL:
		(void)snprintf(why, sizeof(why), "the kernel lets nobody watch "
		    "%s: it needs it itself when a watch is hit", one ? "this" :
		    "one of these");
		break;
	default:
		return wp_cause_errno(cause, "perf_event_open", -err);
	}
	return blame(run->options, why, cause);
}

int
all_cpus_attach(struct run *run, const struct process *process,
    struct wp_cause *cause)
{
	int err = wp_target_options(run->target)->kernel ?
	    wp_target_attach_everywhere(run->target, process->first,
	    process->n) : -EACCES;

	return err < 0 ? explain(run, err, cause) : 0;
}

void
all_cpus_learn(struct run *run)
{
	pid_t *pids = NULL;
	size_t cap = 0;
	int err, worst, n = wp_proc_processes(&pids, &cap);

	worst = n < 0 ? n : 0;
	for (int i = 0; i < n; i++) {
		if (pids[i] == getpid())
			continue;
		err = run_learn_records(run, pids[i], false);
		/* even root may not read some of them; these are still named */
		if (err < 0 && err != -ESRCH && err != -EACCES && err != -EPERM)
			worst = err;
	}
	free(pids);
	if (worst < 0)
		session_warn(&run->session, "not all processes could be looked "
		    "at (%s): functions of some will have no names",
		    strerror(-worst));
}
