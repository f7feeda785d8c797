/*
 * mappers: processes that map the objects of SPECs with shm: and file:.
 */
#include "setup/mappers_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring/event_table.h"
#include "os/attr.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "run/run.h"
#include "setup/arrivals.h"
#include "util/complain.h"

#define ADDRESSES (UINT64_C(1) << 46)	/* more than any process has */
enum { RING = 1 << 20 };	/* bytes for each processor */

/* Mappings are listed at most every LOOK ns, and take at most one part in
   LOOK_SHARE of the time. */
#define LOOK UINT64_C(200000000)
#define LOOK_SHARE 20

unsigned
mappers_fds(const struct mappers *m)
{
	return m == NULL ? 0 : wp_rings_count(m->rings);
}

int
mappers_fd(const struct mappers *m, unsigned i)
{
	return wp_rings_fd(m->rings, i);
}

/* --- begin --- */

static int
explain_denied(const char *text, int err)
{
	if (err != -EACCES && err != -EPERM)
		return complain_errno(-err, "%s: noticing mappings", text);
	return complain("%s: not permitted: which processes map it, and that a "
	    "hit was there, is known to root alone (kernel.perf_event_paranoid "
	    "is %d): run as root (sudo); an address is watched without: -p PID "
	    "-w ADDR", text, wp_proc_setting("perf_event_paranoid"));
}

/* Whether samples can have physical addresses. */
static int
try_physical(void)
{
	struct perf_event_attr attr;
	int fd;

	wp_attr_mappings(&attr);
	attr.sample_type |= PERF_SAMPLE_PHYS_ADDR;
	fd = wp_perf_open(&attr, getpid(), -1);
	if (fd < 0)
		return fd;
	(void)close(fd);
	return 0;
}

static int
open_mappings(struct mappers *m)
{
	struct perf_event_attr attr;

	wp_attr_mappings(&attr);
	return wp_events_open(&m->events, &attr, 0, 0, -1, m->rings);
}

static void
open_missing(void *arg)
{
	(void)open_mappings(arg);
}

struct wp_rings *
mappers_rings(struct mappers *m, bool look)
{
	if (m == NULL)
		return NULL;
	if (look && wp_events_check_processors(&m->events,
	    PERF_FORMAT_TOTAL_TIME_RUNNING, m->rings, open_missing, m))
		m->search = true;
	return m->rings;
}

static int
open_events(struct mappers *m)
{
	const char *text = m->options->spec[0].text;
	struct wp_cause cause = {0};
	int err = try_physical();

	if (err < 0)
		return explain_denied(text, err);
	if (wp_rings_open_eager(&m->rings, RING, &cause) < 0)
		return complain("%s: %s", text, cause.text);
	err = open_mappings(m);
	return err < 0 ? explain_denied(text, err) : 0;
}

int
mappers_open(struct mappers **out, const struct options *o)
{
	struct mappers *m = calloc(1, sizeof(*m));

	if (m == NULL || (m->file = calloc(o->nspecs,
	    sizeof(*m->file))) == NULL) {
		free(m);
		return complain("out of memory");
	}
	*out = m;		/* closed by mappers_close in any case */
	m->options = o;
	if (o->command != NULL || o->npids > 0 || o->nnames > 0)
		m->chosen = calloc(PID_TABLE_SIZE, sizeof(*m->chosen));
	if (m->chosen == NULL && (o->command != NULL || o->npids > 0 ||
	    o->nnames > 0))
		return complain("out of memory");
	if ((o->exe != NULL && arrivals_find_file(o->exe, &m->exe) < 0) ||
	    open_events(m) < 0)
		return -EINVAL;
	for (size_t i = 0; i < o->nspecs; i++)
		if (shared_file_open(&m->file[i], &o->spec[i]) < 0)
			return -EINVAL;
	return 0;
}

void
mappers_close(struct mappers *m)
{
	if (m == NULL)
		return;
	wp_events_close(&m->events, 0);
	wp_rings_close(m->rings);
	for (size_t i = 0; i < m->options->nspecs; i++)
		shared_file_close(&m->file[i]);
	free(m->file);
	free(m->places.at);
	free(m->members.at);
	free(m->chosen);
	free(m);
}

/* Check that there are slots for each SPEC, wherever it is mapped. */
static int
try_lengths(struct run *run)
{
	const struct options *o = run->options;
	struct wp_cause cause = {0};

	for (size_t i = 0; i < o->nspecs; i++) {
		const struct wp_region region = {
			.addr = o->spec[i].off % ADDRESSES,
			.len = o->spec[i].len, .access = o->spec[i].access,
		};
		const int w = wp_target_watch(run->target, &region, 1, &cause);

		if (w < 0)
			return complain("%s: %s", o->spec[i].text, cause.text);
		wp_target_unwatch(run->target, (size_t)w, 1);
	}
	return 0;
}

int
run_begin_mappers(struct run *run)
{
	struct mappers *m = run->mappers;
	struct wp_cause cause = {0};

	for (size_t i = 0; m->chosen != NULL && i < run->nprocesses; i++)
		if (pid_table_has(run->process[i].pid))
			m->chosen[run->process[i].pid] = true;
	m->began = m->known = run->began = wp_clock_ns();
	if (try_lengths(run) < 0)
		return -EINVAL;
	if (mappers_look_at_all(run, &cause) < 0)
		return complain("%s", cause.text);
	return 0;
}

bool
mappers_lacks(const struct mappers *m, size_t spec)
{
	for (size_t i = 0; i < m->places.n; i++)
		if (m->places.at[i].spec == spec)
			return false;
	return true;
}

void
run_start_mappers(struct run *run)
{
	struct mappers *m = run->mappers;

	m->started = true;
	if (m->denied.pid != 0)
		mappers_missed(run, m->denied.pid, m->denied.spec,
		    m->denied.why.text);
	if (run->options->command != NULL)
		wp_target_let_go(run->target);
}

/* --- records --- */

/* The new process shares its parent's memory or has a copy of it, with the
   watches armed there. */
static void
take_fork(struct run *run, const struct perf_event_header *header)
{
	const struct wp_task_record *task = (const void *)header;
	struct mappers *m = run->mappers;
	const pid_t pid = (pid_t)task->pid, parent = (pid_t)task->ppid;
	const size_t n = m->members.n;
	bool before = false;

	if (pid == parent || !pid_table_has(pid) || !pid_table_has(parent))
		return;
	mappers_leave(m, pid, task->time);  /* an earlier process had this id */
	if (m->chosen != NULL)
		m->chosen[pid] = run->options->follow && m->chosen[parent];
	for (size_t i = 0; i < n && i < m->members.n; i++) {
		const struct mapper it = m->members.at[i];

		if (it.pid != parent)
			continue;
		before = before || it.since > task->time;
		if (it.since <= task->time && run->options->follow &&
		    !mappers_have(m, pid, it.place))
			mappers_add(run, pid, it.place, task->time);
	}
	if (before)
		(void)mappers_look_at(run, pid, task->time, NULL);
}

static bool
is_of_file(const struct mappers *m, const struct wp_mmap2_record *map)
{
	for (size_t i = 0; i < m->options->nspecs; i++)
		if (map->ino == (m->file[i].recorded != 0 ?
		    m->file[i].recorded : m->file[i].ino))
			return true;
	return false;
}

static void
take_loss(struct run *run)
{
	struct mappers *m = run->mappers;

	m->search = true;
	if (m->lost)
		return;
	m->lost = true;
	session_warn(&run->session, "records of new mappings may have been "
	    "lost: a process may not have been watched for a while");
	session_doubt(&run->session, "a process may not have been watched");
}

static void
take_record(struct run *run, const struct perf_event_header *header)
{
	const struct wp_mmap2_record *map = (const void *)header;
	const struct wp_comm_record *comm = (const void *)header;
	struct mappers *m = run->mappers;

	if (header->type == PERF_RECORD_MMAP2 && (pid_t)map->pid == getpid())
		for (size_t i = 0; i < m->options->nspecs; i++)
			shared_file_learn(&m->file[i], map->addr, map->ino);
	if (header->type != PERF_RECORD_LOST &&
	    wp_attr_time(header) < m->began)
		return;
	if (header->type == PERF_RECORD_FORK)
		take_fork(run, header);
	else if (header->type == PERF_RECORD_COMM &&
	    (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
		mappers_leave(m, (pid_t)comm->pid, wp_attr_time(header));
	else if (header->type == PERF_RECORD_MMAP2 &&
	    (map->flags & MAP_SHARED) != 0 && is_of_file(m, map))
		(void)mappers_look_at(run, (pid_t)map->pid,
		    wp_attr_time(header), NULL);
	else if (header->type == PERF_RECORD_LOST)
		take_loss(run);
}

void
run_take_mappers(struct run *run)
{
	struct mappers *m = run->mappers;
	const struct perf_event_header *header;
	const uint64_t now = wp_clock_ns();

	while (run->reason == NULL &&
	    (header = wp_rings_next(m->rings, UINT64_MAX)) != NULL)
		take_record(run, header);
	/* the kernel reports a loss only with the next record */
	if (!m->lost && wp_rings_were_full(m->rings))
		take_loss(run);
	if (now < m->looked + LOOK_SHARE * m->took || (!m->look &&
	    now < m->looked + LOOK))
		return;
	mappers_look_again(run);
	if (m->search)
		(void)mappers_look_at_all(run, NULL);
	m->search = false;
}

/* --- hits, and what else the events of places report --- */

/* Of several places in one process, only the first has the events that report
   its mappings and its children. */
static bool
is_lead(const struct run *run, size_t w)
{
	const struct mappers *m = run->mappers;
	const struct process *process = run_process_of(run, w);

	for (size_t i = 0; i < m->places.n; i++) {
		const struct process *it =
		    &run->process[m->places.at[i].process];

		if (it == process)
			return true;
		if (it->pid == process->pid && !it->disarmed)
			return false;
	}
	return true;
}

ssize_t
run_read_mappers(void *arg, pid_t pid, uint64_t addr, void *to, size_t len)
{
	const struct run *run = arg;
	const struct mappers *m = run->mappers;

	for (size_t i = m->places.n; i-- > 0;) {
		const struct place *it = &m->places.at[i];
		const struct spec *spec = &run->options->spec[it->spec];

		if (addr >= it->addr && addr - it->addr + len <= spec->len &&
		    (it->pid == pid || mappers_have(m, pid, i)))
			return shared_file_read(&m->file[it->spec],
			    spec->off + (addr - it->addr), to, len);
	}
	return -ENOENT;
}

bool
run_is_of_mappers(struct run *run, const struct ex_record *r)
{
	struct mappers *m = run->mappers;
	const struct process *process;
	size_t spec, w;
	uint64_t off;

	if (r->attr < 0 || (size_t)r->attr >= run->session.nslots ||
	    run->session.slots[r->attr].watch == NULL)
		return true;
	w = (size_t)run_target_index(run,
	    run->session.slots[r->attr].watch->id - 1);
	if (r->type != PERF_RECORD_SAMPLE)
		return r->type == PERF_RECORD_LOST || is_lead(run, w);
	process = run_process_of(run, w);
	spec = run_spec_of(process, w);
	off = run->options->spec[spec].off +
	    (r->sample.addr - process->place[spec].addr);
	switch (shared_file_access(&m->file[spec], off, r->sample.phys_addr)) {
	case SHARED_SAME:
		return true;
	case SHARED_OTHER:
		m->foreign++;
		break;
	case SHARED_UNKNOWN:
		m->unproved++;
		break;
	}
	m->look = true;
	return false;
}

bool
mappers_await(struct mappers *m)
{
	if (m == NULL)
		return false;
	if (m->chosen == NULL)
		return true;
	for (pid_t pid = 1; m->options->follow && pid < PID_TABLE_SIZE; pid++) {
		if (m->chosen[pid] && wp_proc_exiting(pid))
			m->chosen[pid] = false;
		if (m->chosen[pid])
			return true;
	}
	return false;
}

uint64_t
mappers_foreign(const struct mappers *m)
{
	return m == NULL ? 0 : m->foreign;
}

void
run_settle_mappers(struct run *run)
{
	const struct mappers *m = run->mappers;
	struct session *s = &run->session;

	if (m->places.n == 0) {
		session_warn(s, "no process that is watched mapped %s shared: "
		    "nothing was ever watched", run->options->spec[0].text);
		session_doubt(s, "nothing was ever watched");
	}
	if (m->unproved > 0) {
		session_warn(s, "%" PRIu64 " hit%s not reported: the kernel "
		    "moved the page then, and that it was this one is not "
		    "proved", m->unproved, m->unproved == 1 ? " is" : "s are");
		session_doubt(s, "hits were not proved to be of the page");
	}
}
