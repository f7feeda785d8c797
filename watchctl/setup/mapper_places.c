/*
 * mapper_places: the addresses at which processes have mapped the bytes of
 * SPECs, and the watches there.
 *
 * A place is where one process has them: an entry of the run's processes, with
 * one watch.  Its events are inherited by children, which have a copy of the
 * mapping; so a place has members, the processes in which it is armed, until
 * they execute another program or end.  One that unmaps it stays a member: it
 * may map it there again.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "pending/new_program.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "setup/mappers_private.h"
#include "setup/setup.h"

enum { FOUND_MAX = 64 };  /* most mappings of one process that are examined */

/* --- members --- */

void
mappers_add(struct run *run, pid_t pid, size_t place, uint64_t since)
{
	struct mappers *m = run->mappers;

	if (WP_ARRAY_ROOM(&m->members, at) < 0) {
		session_note(&run->session, -ENOMEM);
		return;
	}
	m->members.at[m->members.n++] = (struct mapper){
		.pid = pid, .place = place, .since = since,
	};
}

bool
mappers_have(const struct mappers *m, pid_t pid, size_t place)
{
	for (size_t i = 0; i < m->members.n; i++)
		if (m->members.at[i].pid == pid &&
		    m->members.at[i].place == place)
			return true;
	return false;
}

static bool
is_in(const struct mappers *m, pid_t pid)
{
	for (size_t i = 0; i < m->members.n; i++)
		if (m->members.at[i].pid == pid)
			return true;
	return false;
}

/* Forget the places that the process had before this time, ns. */
void
mappers_leave(struct mappers *m, pid_t pid, uint64_t time)
{
	size_t n = 0;

	for (size_t i = 0; i < m->members.n; i++) {
		const struct mapper *it = &m->members.at[i];

		if (it->pid != pid || it->since > time)
			m->members.at[n++] = *it;
	}
	m->members.n = n;
}

/* Whether mappings of this process are to be watched. */
static bool
is_wanted(const struct mappers *m, pid_t pid)
{
	if (!pid_table_has(pid) || pid == getpid())
		return false;
	if (m->options->exe != NULL)
		return wp_proc_executes(pid, m->exe.st_dev,
		    m->exe.st_ino) > 0;
	return m->chosen == NULL || m->chosen[pid];
}

/* --- places --- */

void
mappers_missed(struct run *run, pid_t pid, size_t spec, const char *why)
{
	struct mappers *m = run->mappers;
	const char *text = run->options->spec[spec].text;
	struct wp_cause ended = {0};

	if (!m->missed)
		session_warn(&run->session, "%s was not watched in process %d: "
		    "%s; there may be more of this kind", text, pid,
		    wp_target_check(pid, &ended) < 0 ? ended.text : why);
	m->missed = true;
	session_doubt(&run->session, "%s was not watched in process %d", text,
	    pid);
}

/* Plan the watch of a place.  Returns 0 or -errno with a cause. */
static int
plan(struct run *run, struct process *process, size_t spec, uint64_t addr,
    struct wp_cause *cause)
{
	const struct mappers *m = run->mappers;
	struct spec_place *place = &process->place[spec];
	struct wp_region region;
	/* the records of a member are there already */
	int err = is_in(m, process->pid) ? 0 :
	    run_learn(run, process, m->started, cause);

	if (err < 0)
		return err;
	synthetic_records_free(&run->synthetic);
	(void)wp_proc_comm(process->pid, process->pid, process->comm);
	place->addr = addr;
	place->len = run->options->spec[spec].len;
	region = run_region(run, process, spec);
	if ((err = wp_target_watch(run->target, &region, 1, cause)) < 0)
		return err;
	process->first = (size_t)err;
	process->n = 1;
	process->spec[0] = spec;
	return 0;
}

/* Report, in a report that has begun, that the place is armed. */
static int
describe(struct run *run, const struct process *process, size_t spec,
    const struct place *place, uint64_t since)
{
	const uint64_t gap = place->armed > since ? place->armed - since : 0;
	int err;

	if (!run->mappers->started)
		return 0;	/* it is described with the others */
	if ((err = run_describe_armed(run, process, process->first)) < 0)
		return err;
	session_event(&run->session, &(struct watch_event){
		.what = WATCH_ARMED, .time = place->armed, .pid = place->pid,
		.watch = run_watch(run, process->first)->id - 1,
		.addr = place->addr, .len = run->options->spec[spec].len,
		.gap = gap,
	});
	session_doubt(&run->session, "process %d had mapped what is watched "
	    "for at most %.1f ms before it was watched", place->pid,
	    (double)gap / 1e6);
	return 0;
}

/* Watch the SPEC at an address of a process, which has mapped it since this
   time, ns, at the earliest.  Returns 0 or -errno with a cause. */
static int
arm(struct run *run, pid_t pid, size_t spec, uint64_t addr, uint64_t since,
    struct wp_cause *cause)
{
	struct mappers *m = run->mappers;
	struct process *process;
	struct place *place;
	size_t i;
	int err;

	if (WP_ARRAY_ROOM(&m->places, at) < 0 ||
	    (process = run_new_program(run, pid)) == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	i = run->nprocesses - 1;
	err = run_arm_last(run, process, plan(run, process, spec, addr, cause),
	    cause);
	if (err < 0)
		return err;
	place = &m->places.at[m->places.n++];
	*place = (struct place){
		.spec = spec, .process = i, .pid = pid, .addr = addr,
		.armed = wp_target_armed(run->target), .mapped = true,
	};
	run->found = true;
	mappers_add(run, pid, m->places.n - 1, place->armed);
	if (describe(run, process, spec, place, since) < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	if (m->started)
		initial_sharers_report(run, process);
	return 0;
}

/* --- what a process maps --- */

struct found_places {
	struct run *run;
	pid_t pid;
	struct {
		size_t spec;
		uint64_t addr;
	} at[FOUND_MAX];
	size_t n;
};

static int
take_mapping(void *arg, const struct wp_proc_map *map)
{
	struct found_places *found = arg;
	struct run *run = found->run;
	struct mappers *m = run->mappers;
	const struct options *o = run->options;

	for (size_t i = 0; i < o->nspecs; i++) {
		uint64_t addr;
		bool part = false;

		if (shared_file_in(&m->file[i], map, &addr, &part) &&
		    found->n < FOUND_MAX) {
			found->at[found->n].spec = i;
			found->at[found->n++].addr = addr;
		}
		if (part && !m->parted && is_wanted(m, found->pid)) {
			m->parted = true;
			session_warn(&run->session, "process %d maps only a "
			    "part of %s: it is not watched there",
			    found->pid, o->spec[i].text);
			session_doubt(&run->session, "process %d maps only a "
			    "part of %s", found->pid, o->spec[i].text);
		}
	}
	return 0;
}

static bool
is_gone(const struct run *run, const struct place *place)
{
	return run->process[place->process].disarmed;
}

/* The armed place where the process has mapped the SPEC, or n. */
static size_t
find_place(const struct run *run, pid_t pid, size_t spec, uint64_t addr)
{
	const struct mappers *m = run->mappers;

	for (size_t i = 0; i < m->places.n; i++)
		if (m->places.at[i].spec == spec &&
		    m->places.at[i].addr == addr &&
		    !is_gone(run, &m->places.at[i]) && mappers_have(m, pid, i))
			return i;
	return m->places.n;
}

/* Records were lost, perhaps including the one of this process's creation.
   Then it may have inherited the place of the process whose memory it has. */
static bool
has_inherited(struct run *run, pid_t pid, size_t spec, uint64_t addr)
{
	const struct mappers *m = run->mappers;

	if (!m->lost || !run->options->follow || wp_proc_has_executed(pid) != 0)
		return false;
	for (size_t i = 0; i < m->places.n; i++)
		if (m->places.at[i].spec == spec &&
		    m->places.at[i].addr == addr &&
		    !is_gone(run, &m->places.at[i])) {
			mappers_add(run, pid, i, wp_clock_ns());
			return true;
		}
	return false;
}

int
mappers_look_at(struct run *run, pid_t pid, uint64_t since,
    struct wp_cause *cause)
{
	struct mappers *m = run->mappers;
	struct found_places found = {.run = run, .pid = pid};
	int first = 0;

	if (!is_wanted(m, pid))
		return 0;
	/* its record may be lost, or it could not be watched then */
	if (m->search || m->missed)
		since = m->known;
	(void)wp_proc_maps(pid, take_mapping, &found);
	for (size_t i = 0; i < found.n; i++) {
		const size_t spec = found.at[i].spec;
		const uint64_t addr = found.at[i].addr;
		struct wp_cause why = {0};
		int err;

		if (find_place(run, pid, spec, addr) < m->places.n ||
		    has_inherited(run, pid, spec, addr))
			continue;
		err = arm(run, pid, spec, addr, since, &why);
		if (err < 0 && m->started)
			mappers_missed(run, pid, spec, why.text);
		else if (err < 0 && m->chosen == NULL) {
			/* others are watched nevertheless; it is reported with
			   them */
			if (wp_target_check(pid, NULL) == 0) {
				m->denied.pid = pid;
				m->denied.spec = spec;
				m->denied.why = why;
			}
		} else if (err < 0 && first == 0) {
			first = err;
			if (cause != NULL)
				*cause = why;
		}
	}
	return first;
}

int
mappers_look_at_all(struct run *run, struct wp_cause *cause)
{
	struct mappers *m = run->mappers;
	const uint64_t now = wp_clock_ns();
	pid_t *pids = NULL;
	size_t cap = 0;
	int err = 0, n = wp_proc_processes(&pids, &cap);

	for (int i = 0; i < n && err == 0; i++) {
		err = mappers_look_at(run, pids[i], m->known, cause);
		/* the process has ended meanwhile */
		if (err < 0 && wp_target_check(pids[i], NULL) < 0)
			err = 0;
	}
	free(pids);
	if (!m->missed)
		m->known = now;
	return err;
}

/* --- what goes --- */

static void
disarm(struct run *run, struct place *place)
{
	struct process *process = &run->process[place->process];

	if (process->disarmed)
		return;
	session_event(&run->session, &(struct watch_event){
		.what = WATCH_DISARMED, .time = wp_clock_ns(),
		.watch = run_watch(run, process->first)->id - 1,
		.pid = place->pid, .addr = place->addr,
		.len = run->options->spec[place->spec].len,
		.gap = WATCH_NO_GAP,
	});
	run_disarm(run, process);
}

/* Mark the places that a process has mapped, or forget it if it has ended.
   Returns whether it has mapped the object where it is not watched. */
static bool
mark(struct run *run, pid_t pid)
{
	struct mappers *m = run->mappers;
	struct found_places found = {.run = run, .pid = pid};
	const int err = wp_proc_maps(pid, take_mapping, &found);
	bool others = false;

	if (err < 0 || wp_proc_exiting(pid)) {
		mappers_leave(m, pid, UINT64_MAX);
		return false;
	}
	for (size_t i = 0; i < found.n; i++) {
		const size_t at = find_place(run, pid, found.at[i].spec,
		    found.at[i].addr);

		if (at < m->places.n)
			m->places.at[at].mapped = true;
		else
			others = true;
	}
	return others;
}

/* Disarm places that no member has mapped any more, and watch those that were
   moved. */
void
mappers_look_again(struct run *run)
{
	struct mappers *m = run->mappers;
	const uint64_t last = m->looked != 0 ? m->looked : m->began;

	m->look = false;
	m->looked = wp_clock_ns();
	for (size_t i = 0; i < m->places.n; i++)
		m->places.at[i].mapped = false;
	for (size_t i = 0; i < m->members.n; i++)
		m->members.at[i].moved = false;
	for (size_t i = m->members.n; i-- > 0;)
		if (i < m->members.n && mark(run, m->members.at[i].pid))
			m->members.at[i].moved = true;
	for (size_t i = 0; i < m->places.n; i++)
		if (!m->places.at[i].mapped)
			disarm(run, &m->places.at[i]);
	for (size_t i = 0; i < m->members.n; i++)
		if (m->members.at[i].moved)
			(void)mappers_look_at(run, m->members.at[i].pid, last,
			    NULL);
	for (size_t i = 0; i < m->options->nspecs; i++)
		shared_file_refresh(&m->file[i]);
	m->took = wp_clock_ns() - m->looked;
}
