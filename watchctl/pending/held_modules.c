/*
 * held_modules: SPECs of modules that a process opens while its threads stop at
 * each hit.
 *
 * What waits has a watch from the beginning, which is nowhere, and takes slots.
 * The loader's hook is a scout (stop/stop.h): when a thread calls it, all
 * threads of its process are held, and the watch is moved to where its SPEC is,
 * or to nowhere again, before any of them continues.
 */
#include "pending/held_modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "pending/loader.h"
#include "pending/new_module.h"
#include "pending/new_program.h"
#include "ptrace/ptrace.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "stop/stop.h"
#include "util/complain.h"

struct held_modules {
	struct run *run;
	struct wp_target *hooks;	/* execution watches of the scouts */
	pid_t caller;			/* the thread that last called one, */
	uint64_t called;		/* and when, ns; 0: not known */
};

int
held_modules_open(struct held_modules **out, struct run *run)
{
	const struct options *o = run->options;
	const struct wp_options wish = {.stop = true, .eager = true};
	struct held_modules *m;
	struct wp_cause cause;
	bool any = false;

	*out = NULL;
	for (size_t i = 0; i < o->nspecs; i++)
		any = any || module_may_come(&o->spec[i]);
	if (!any || !o->stop || run->ops->registers ||
	    run_waits_not_with(o) != NULL)
		return 0;
	if ((m = calloc(1, sizeof(*m))) == NULL)
		return complain("out of memory");
	m->run = run;
	if (wp_target_new(&m->hooks, &run->features, &wish, &cause) < 0) {
		free(m);
		return complain("%s", cause.text);
	}
	*out = m;
	return 0;
}

void
held_modules_close(struct held_modules *m)
{
	if (m == NULL)
		return;
	wp_target_free(m->hooks);
	free(m);
}

/* --- what waits --- */

bool
held_modules_wait(struct held_modules *m, struct process *process, size_t spec,
    const struct wp_cause *cause)
{
	const struct options *o = m == NULL ? NULL : m->run->options;

	if (m == NULL || cause->code != WP_CAUSE_MODULE_UNKNOWN ||
	    !module_may_come(&o->spec[spec]) ||
	    (process->waits == NULL && (process->waits =
	    calloc(o->nspecs, sizeof(bool))) == NULL))
		return false;
	process->waits[spec] = true;
	process->place[spec] = (struct spec_place){.len = o->spec[spec].len};
	return true;
}

/* The number of slots available to each waiting region whose length is not
   known. */
static unsigned
share(const struct held_modules *m, const struct wp_region *regions, size_t n)
{
	unsigned slots = m->run->features.caps.slots - 1, unknown = 0;
	struct wp_slot slot[WP_SLOTS_MAX];

	for (size_t i = 0; i < n; i++) {
		const int takes = regions[i].len == 0 ? 0 : wp_slot_plan(
		    &regions[i], &m->run->features.caps, slot, NULL);

		unknown += regions[i].addr == 0 && regions[i].len == 0;
		slots -= takes < 0 || (unsigned)takes > slots ? slots :
		    (unsigned)takes;
	}
	return unknown == 0 || slots < unknown ? 1 : slots / unknown;
}

void
held_modules_plan(struct held_modules *m, const struct process *process,
    struct wp_region *regions, size_t n)
{
	unsigned each;

	if (m == NULL || process->waits == NULL)
		return;
	each = share(m, regions, n);
	for (size_t i = 0; i < n; i++)
		if (regions[i].addr == 0 && regions[i].len == 0)
			regions[i].len = regions[i].access == WP_EXEC ? 1 :
			    each * sizeof(uint64_t);
}

static bool
has_waiting(const struct held_modules *m, const struct process *process)
{
	bool any = false;

	for (size_t i = 0; process->waits != NULL &&
	    i < m->run->options->nspecs; i++)
		any = any || process->waits[i];
	return any;
}

int
held_modules_arm(struct held_modules *m, struct process *process,
    struct wp_cause *cause)
{
	struct wp_region hook = {.len = 1, .access = WP_EXEC};
	size_t all;
	const struct wp_watched *watched;
	unsigned slots = 1;
	int first;

	if (m == NULL)
		return 0;
	if (!has_waiting(m, process))	/* it has not the previous program's
					   hook either */
		return m->run->ops->scout(m->run, m->hooks, process->pid, 0, 0,
		    cause);
	hook.addr = process->hook = loader_hook_of(process->pid);
	if (hook.addr == 0)
		return wp_cause_set(cause, WP_CAUSE_STATIC, m->run->options->
		    spec->text, process->pid, m->run->options->spec->module);
	watched = wp_target_watches(m->run->target, &all);
	for (size_t w = process->first; w < process->first + process->n; w++)
		slots += watched[w].nslots;
	if (slots > m->run->features.caps.slots)
		return wp_cause_set(cause, WP_CAUSE_TOO_MANY, slots,
		    m->run->features.caps.slots);
	first = wp_target_watch(m->hooks, &hook, 1, cause);
	return first < 0 ? first : m->run->ops->scout(m->run, m->hooks,
	    process->pid, (size_t)first, 1, cause);
}

/* --- what is mapped --- */

/* The index of the watch of a SPEC. */
static size_t
watch_of(const struct process *process, size_t spec)
{
	size_t w = process->first;

	while (run_spec_of(process, w) != spec)
		w++;
	return w;
}

/* Each time the module is mapped, its address is another place of the watch. */
static int
describe(struct run *run, const struct process *process, size_t spec,
    const struct wp_region *region, uint64_t time)
{
	const size_t w = watch_of(process, spec);
	const struct ex_watch *whole = run_watch(run, w);
	struct session *s = &run->session;
	size_t all;
	const struct wp_watched *watched =
	    &wp_target_watches(run->target, &all)[w];
	int err;

	session_of_process(s, ex_watch_number(whole), whole->pid, whole->comm);
	session_pending(s, false);
	session_moves(s, true, time);
	err = session_add_watch(s, whole->spec, process->place[spec].symbol,
	    region->addr, region->len, region->access, watched->nslots);
	for (unsigned i = 0; i < watched->nslots && err == 0; i++)
		if (watched->slot[i].addr != 0)
			err = run_describe_place(run, (int)s->nwatches - 1, w,
			    &watched->slot[i]);
	return err;
}

static void
report(struct run *run, const struct process *process, size_t spec,
    enum watch_event_what what, const struct wp_region *region,
    uint64_t time, uint64_t gap)
{
	const struct spec *of = &run->options->spec[spec];
	struct watch_event event = {
		.what = what, .time = time, .pid = process->pid, .gap = gap,
		.watch = what == WATCH_ARMED ?
		    (unsigned)run->session.nwatches - 1 :
		    run_watch(run, watch_of(process, spec))->id - 1,
		.addr = region->addr, .len = region->len,
	};

	(void)snprintf(event.module, sizeof(event.module), "%.*s",
	    (int)sizeof(event.module) - 1, basename(of->module));
	session_event(&run->session, &event);
	if (gap != WATCH_NO_GAP)
		session_doubt(&run->session, "%s was not watched for %.1f us "
		    "after its module was mapped", of->text,
		    (double)gap / 1e3);
}

static int
find(struct run *run, struct process *process, size_t spec,
    struct wp_region *region, struct wp_cause *cause)
{
	struct spec_place *place = &process->place[spec];
	int err = run_learn(run, process, true, cause);

	if (err < 0)
		return err;
	free(place->symbol);	/* it was found before at another address */
	place->symbol = NULL;
	err = live_broker_resolve(&run->live, process->pid,
	    &run->options->spec[spec], false, place, cause);
	if (err < 0)
		return err;
	*region = run_region(run, process, spec);
	return wp_target_mapped(process->pid, region, cause);
}

/* How long the module was mapped and not watched: not at all if the thread that
   mapped it is still at the hook. */
static uint64_t
find_gap(const struct held_modules *m, const struct process *process,
    const struct wp_stops_held *held)
{
	if (m->called == 0 || held->time == 0)
		return wp_clock_ns() - m->run->began;
	return wp_trace_pc(m->caller) == process->hook ? WATCH_NO_GAP :
	    held->time > m->called ? held->time - m->called : 0;
}

static void
enter(struct held_modules *m, struct process *process, size_t spec,
    const struct wp_stops_held *held)
{
	struct run *run = m->run;
	const uint64_t gap = find_gap(m, process, held);
	const char *text = run->options->spec[spec].text;
	struct wp_cause cause = {0};
	struct wp_region region;
	uint64_t time;
	int err;

	run->options->spec[spec].unborn = false;
	err = find(run, process, spec, &region, &cause);
	if (err == 0 && (err = run->ops->move(run, process->pid, run->target,
	    watch_of(process, spec), &region)) < 0)
		(void)wp_cause_errno(&cause, "moving a watch (it takes more "
		    "slots than were left for it, or the kernel refused)",
		    -err);
	time = wp_clock_ns();
	if (err == 0)
		err = describe(run, process, spec, &region, time);
	if (err == 0) {
		report(run, process, spec, WATCH_ARMED, &region, time, gap);
		initial_place_report(run,
		    run->session.watches[run->session.nwatches - 1],
		    process->pid);
		return;
	}
	session_warn(&run->session, "process %d: %s", process->pid,
	    cause.code != WP_CAUSE_NONE ? cause.text : text);
	session_doubt(&run->session, "%s was not watched in process %d", text,
	    process->pid);
}

static void
leave(struct run *run, struct process *process, size_t spec)
{
	const struct wp_region nowhere = {
		.len = process->place[spec].len,
		.access = run->options->spec[spec].access,
	};

	size_t all;
	const struct wp_region was = wp_target_watches(run->target,
	    &all)[watch_of(process, spec)].region;

	if (was.addr == 0)	/* it could not be watched there */
		return;
	(void)run->ops->move(run, process->pid, run->target,
	    watch_of(process, spec), &nowhere);
	report(run, process, spec, WATCH_DISARMED, &was, wp_clock_ns(),
	    WATCH_NO_GAP);
}

void
held_modules_called(struct held_modules *m, const struct wp_sample *sample)
{
	m->caller = sample == NULL ? 0 : (pid_t)sample->tid;
	m->called = sample == NULL ? 0 : sample->time;
}

static struct process *
find_process(const struct run *run, pid_t pid)
{
	size_t i = run->nprocesses;

	while (i > 0 && (run->process[i - 1].pid != pid ||
	    run->process[i - 1].hook == 0))
		i--;
	return i == 0 ? NULL : &run->process[i - 1];
}

void
held_modules_look(struct held_modules *m, const struct wp_stops_held *held)
{
	struct run *run = m->run;
	struct process *process = find_process(run, held->pid);

	if (process == NULL) {	/* created by one that waits, and is on its
				   own */
		run->missed_child = held->pid;
		return;
	}
	for (size_t i = 0; i < run->options->nspecs; i++) {
		const struct spec *spec = &run->options->spec[i];
		bool is;

		if (!module_may_come(spec))
			continue;
		is = module_is_mapped(held->pid, spec);
		if (process->waits[i] == is)
			(void)run_explain_before(run, held->pid);
		if (process->waits[i] && is)
			enter(m, process, i, held);
		else if (!process->waits[i] && !is)
			leave(run, process, i);
		process->waits[i] = !is;
	}
}
