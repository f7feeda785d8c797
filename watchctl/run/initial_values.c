/*
 * initial_values: the values of the watched bytes when the watch began, and
 * whether all of their writers are seen.
 */
#include "run/initial_values.h"

#include <errno.h>
#include <stdlib.h>

#include "os/clock.h"
#include "proc/proc.h"
#include "proc/sharers.h"

static bool
is_lent(const struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == pid && run->process[i].lent)
			return true;
	return false;
}

/* Whether all writes to these bytes make hits.  They do not if other processes
   map the same pages or share the memory, or if the kernel's accesses are not
   watched.  For a SPEC with shm: or file:, not all other processes are
   known. */
bool
initial_writes_hit(const struct run *run, pid_t pid, uint64_t addr,
    uint64_t len)
{
	return run->mappers == NULL &&
	    wp_target_options(run->target)->kernel &&
	    !run->ops->registers && !is_lent(run, pid) &&
	    ((run->ops->owns != NULL && run->ops->owns(run, pid, addr, len)) ||
	    !wp_proc_shares(pid, addr, len));
}

static void
set_initial(struct run *run, const struct ex_watch *watch, pid_t pid,
    const struct wp_watched *watched)
{
	uint8_t bytes[EX_VALUE_MAX];
	ssize_t n;

	if (pid == EVERYWHERE) {
		session_unseen(&run->session, watch);
		return;
	}
	if (!initial_writes_hit(run, pid, watched->region.addr,
	    watched->region.len))
		session_unseen(&run->session, watch);
	if (watched->nbefore > 0) {
		session_known(&run->session, watch, pid, watched->before,
		    watched->nbefore, 0);
		return;
	}
	n = wp_proc_read(pid, watch->addr, bytes, watch->len < sizeof(bytes) ?
	    watch->len : sizeof(bytes));
	if (n > 0)
		session_known(&run->session, watch, pid, bytes, (size_t)n,
		    wp_clock_ns());
}

void
initial_value_report(struct run *run, size_t watch, pid_t pid)
{
	const struct process *process = run_process_of(run, watch);
	size_t n;

	if (process->place[run_spec_of(process, watch)].rotates ||
	    process->place[run_spec_of(process, watch)].local)
		return;		/* each of its parts is reported as a watch */
	set_initial(run, run_watch(run, watch), pid,
	    &wp_target_watches(run->target, &n)[watch]);
}

void
initial_place_report(struct run *run, const struct ex_watch *watch, pid_t pid)
{
	const struct wp_watched watched = {.region = {
		watch->addr, watch->len, watch->access,
	}};

	set_initial(run, watch, pid, &watched);
}

void
initial_values_report(struct run *run)
{
	const struct ex_value_options values = {
		/* with --stop, values are read at the stop or not at all */
		.read = run->options->stop ||
		    options_everywhere(run->options) ? NULL : wp_proc_read,
		.now = wp_clock_ns,
		.follows = run->options->follow, .shares = wp_sharers_has,
		.at_once = run->options->stop,
		.crowds = run->options->on_hit.what == ON_HIT_REPORT,
	};
	struct session *s = &run->session;
	size_t n;

	session_values(s, &values);
	(void)wp_target_watches(run->target, &n);
	for (size_t w = 0; w < n; w++)
		initial_value_report(run, w, run_process_of(run, w)->pid);
}

static bool
is_watched(const struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == pid)
			return true;
	return false;
}

/* armed: the watches are armed, so the sharer may have written since; otherwise
   no hit can have come before. */
static void
take_sharer(const struct run *run, struct process *process, pid_t sharer,
    bool armed, uint64_t until)
{
	const bool other = sharer != 0 && !is_watched(run, sharer);
	const bool left = other && wp_sharers_leaves(process->pid, sharer,
	    until);

	if (left && !armed)
		return;
	process->lent = true;
	/* a process that now has another memory has executed a program */
	if (other && process->sharer == 0 && !(left &&
	    wp_proc_has_memory(sharer)))
		process->sharer = sharer;
}

void
initial_sharers_find(const struct run *run, struct process *process, size_t n,
    bool armed)
{
	pid_t *pids = calloc(n, sizeof(*pids));
	struct wp_sharer *found = NULL;
	uint64_t until;
	int nfound = -ENOMEM;

	for (size_t i = 0; pids != NULL && i < n; i++)
		pids[i] = process[i].pid;
	if (pids != NULL)
		nfound = wp_sharers(pids, n, &found);
	until = wp_sharers_moment();
	for (size_t i = 0; nfound < 0 && i < n; i++)
		process[i].lent = true;
	for (int i = 0; i < nfound; i++)
		take_sharer(run, &process[found[i].i], found[i].pid, armed,
		    until);
	free(found);
	free(pids);
}

void
initial_sharers_report(struct run *run, const struct process *process)
{
	if (process->sharer == 0)
		return;
	session_warn(&run->session, "process %d seems to share the memory of "
	    "process %d, and is not watched: its writes are not seen; add -p "
	    "%d to watch it as well", process->sharer, process->pid,
	    process->sharer);
	session_doubt(&run->session, "process %d, which seems to share the "
	    "memory of process %d, was not watched", process->sharer,
	    process->pid);
}
