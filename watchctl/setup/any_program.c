/* any_program: processes that may execute any program. */
#include "setup/any_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pending/new_program.h"
#include "run/run.h"
#include "setup/arrivals.h"
#include "setup/setup.h"
#include "util/complain.h"
#include "util/visible.h"

enum { ASKED_MAX = 8 };		/* processes that are asked for similar names */

/* Whether all SPECs are names.  Which of them a process has then depends only
   on the files that it maps. */
static bool
are_names(const struct options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->spec[i].symbol == NULL)
			return false;
	return true;
}

/* Whether a SPEC, by its index, is watched in this process already, by another
   entry of the list. */
static bool
is_watched(const struct run *run, const struct process *process, size_t spec)
{
	for (size_t i = 0; i < run->nprocesses; i++) {
		const struct process *other = &run->process[i];

		if (other == process || other->pid != process->pid ||
		    !run_is_armed(run, other))
			continue;
		for (size_t k = 0; k < other->n; k++)
			if (other->spec[k] == spec)
				return true;
	}
	return false;
}

/* Find the SPECs that the process has.  Returns their number, or -errno with a
   cause. */
static int
resolve(struct run *run, struct process *process, bool *found,
    struct wp_cause *cause)
{
	const struct options *o = run->options;
	const bool executed = run_has_executed(run, process->pid);
	int n = 0, worst = -ENOENT;

	for (size_t i = 0; i < o->nspecs; i++) {
		struct spec_place *place = &process->place[i];
		int err;

		if (is_watched(run, process, i) ||
		    (executed && o->spec[i].symbol == NULL))
			continue;
		/* searching for similar names takes long, and most processes
		   have none */
		err = live_broker_resolve(&run->live, process->pid, &o->spec[i],
		    false, place, NULL);
		found[i] = err == 0;
		n += found[i];
		if (err == 0 || err == -ENOENT)
			continue;
		worst = live_broker_resolve(&run->live, process->pid,
		    &o->spec[i], false, place, cause);
		if (worst != -EFAULT)
			return worst;
	}
	if (n == 0 && worst == -ENOENT)
		(void)wp_cause_set(cause, WP_CAUSE_SYMBOL_UNKNOWN,
		    o->spec->text, o->spec->text, "the process", "");
	return n > 0 ? n : worst;
}

/* Read what the process maps and find the SPECs, unless files of the same set
   have been searched in vain. */
static int
look(struct run *run, struct process *process, bool *found,
    struct wp_cause *cause)
{
	struct buffer set = {0};
	int n;

	if (are_names(run->options))
		set = search_misses_set(process->pid, false);
	if (search_misses_has(&run->absent, &set)) {
		n = wp_cause_set(cause, WP_CAUSE_SYMBOL_UNKNOWN,
		    run->options->spec->text, run->options->spec->text,
		    "the process", "");
	} else if ((n = run_learn(run, process,
	    run_has_executed(run, process->pid), cause)) == 0) {
		n = resolve(run, process, found, cause);
		if (n == -ENOENT)
			search_misses_add(&run->absent, &set);
	}
	buffer_free(&set);
	return n;
}

/* Whether the process is watched for any other SPEC. */
static bool
is_known(const struct run *run, const struct process *process)
{
	for (size_t i = 0; i < run->options->nspecs; i++)
		if (is_watched(run, process, i))
			return true;
	return false;
}

int
any_program_find(struct run *run, struct process *process,
    struct wp_cause *cause)
{
	bool *found = calloc(run->options->nspecs, sizeof(*found));
	int err;

	if (found == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	process->some = true;
	err = look(run, process, found, cause);
	if (err > 0)
		err = run_plan(run, process, found, cause);
	free(found);
	if (err < 0 && !is_known(run, process))
		live_broker_forget(&run->live, process->pid);
	return err;
}

/* --- as the watch begins --- */

static const char *
scope_name(const struct run *run)
{
	return run->options->cgroup != NULL ? "the control group" :
	    "the machine";
}

/* Whether the process could not be examined. */
static bool
is_denied(const struct wp_cause *cause)
{
	return cause->code == WP_CAUSE_DENIED_OTHER ||
	    cause->code == WP_CAUSE_DENIED_ROOT;
}

void
any_program_skip(struct run *run, size_t i, int err,
    const struct wp_cause *cause)
{
	const pid_t pid = run->process[i].pid;
	struct wp_cause now = {0};

	run_forget(run, i);
	if (wp_target_check(pid, &now) < 0)
		return;		/* the process has ended */
	if (err == -ENOENT || cause->code == WP_CAUSE_UNMAPPED) {
		arrivals_lack(run->arrivals, pid);
		return;
	}
	session_doubt(&run->session, "process %d was not watched", pid);
	if (run->skipped_pid != 0 && !is_denied(&run->skipped))
		return;
	run->skipped = *cause;
	run->skipped_pid = pid;
}

/* Explain why a process has none of the SPECs, as if it were the only one. */
static int
explain(struct run *run, pid_t pid, struct wp_cause *cause)
{
	struct process process = {.pid = pid};
	struct spec_place place = {0};
	int err = run_learn(run, &process, false, cause);

	if (err == 0)
		err = live_broker_resolve(&run->live, pid, run->options->spec,
		    false, &place, cause);
	if (err == 0)
		err = wp_target_mapped(pid, &(struct wp_region){
			place.addr, 1, run->options->spec->access,
		}, cause);
	free(place.symbol);
	live_broker_forget(&run->live, pid);
	return err;
}

/* Explain it by a process that has similar names, or else by any.  Some may
   have ended, or may not be examined. */
static void
explain_lack(struct run *run, struct wp_cause *best)
{
	const struct selected *chosen = &run->chosen;
	struct wp_cause cause = {0};
	unsigned asked = 0;

	for (size_t i = 0; i < chosen->n && asked < ASKED_MAX &&
	    strstr(best->text, "nearest") == NULL; i++) {
		if (explain(run, chosen->pid[i], &cause) == 0 ||
		    is_denied(&cause) || cause.code == WP_CAUSE_GONE)
			continue;
		asked++;
		if (best->code == WP_CAUSE_NONE ||
		    strstr(cause.text, "nearest") != NULL)
			*best = cause;
	}
}

int
any_program_check(struct run *run)
{
	const size_t n = run->chosen.n;
	struct wp_cause best = {0};

	if (run->nprocesses > 0 || n == 0)
		return 0;
	if (run->skipped_pid != 0 && !is_denied(&run->skipped))
		return complain("%s", run->skipped.text);
	if (run->options->skip_missing)
		return 0;
	explain_lack(run, &best);
	/* a SPEC of a module that is not mapped is waited for */
	if (best.code == WP_CAUSE_MODULE_UNKNOWN ||
	    best.code == WP_CAUSE_NONE)
		return 0;
	return complain("%s; no process of %s has it (%zu run%s): --if-missing "
	    "skip waits for one that has", best.text, scope_name(run), n,
	    n == 1 ? "s" : "");
}

void
any_program_announce(struct run *run)
{
	struct buffer specs = {0};

	if (!options_any_program(run->options))
		return;
	for (size_t i = 0; i < run->options->nspecs; i++) {
		buffer_puts(&specs, i > 0 ? ", " : "");
		visible_put(&specs, run->options->spec[i].text);
	}
	if (run->nprocesses == 0)
		session_warn(&run->session, "no process of %s has %s: waiting "
		    "for one that has", scope_name(run), buffer_text(&specs));
	buffer_free(&specs);
	if (run->skipped_pid != 0)
		session_warn(&run->session, "%s: process %d is not watched, "
		    "and there may be more of this kind", run->skipped.text,
		    run->skipped_pid);
}
