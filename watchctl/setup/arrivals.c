/* arrivals: processes that appear during a run. */
#include "setup/arrivals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring/event_table.h"
#include "os/array.h"
#include "os/attr.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "processes/cgroup.h"
#include "run/run.h"
#include "setup/pid_table.h"
#include "setup/setup.h"
#include "util/complain.h"

enum {
	MANY = 512,  /* records taken at once: the ring may have been full, */
	MORE = 16,		/* rings are this many times larger where
				   there are more kinds of records */
	RINGS = MORE << 16,	/* bytes */
};

/* ns that a program may take to map its libraries; and ns between searches for
   processes that were missed or of which no records are made. */
#define PATIENCE UINT64_C(5000000000)
#define LOOK UINT64_C(100000000)

struct arrivals {
	const struct options *options;
	struct stat file;	/* --exe */
	char comm[16];	/* the kernel's name for processes that execute it */
	pid_t hidden;	/* has that name, and what it executes cannot be read;
			   0: there is none, -1: that has been reported */
	struct cgroup group;	/* --cgroup; */
	uint64_t moves;		/* id of the tracepoint for processes that
				   are moved; 0: they are searched */
	uint32_t moved;		/* offset of the process id in its raw data */
	struct wp_rings *rings;
	struct wp_events events;
	struct seen {		/* indexed by pid */
		uint64_t since;	/* ns, watched since then; 0: not watched */
		pid_t root;	/* the process whose events, or inherited
				   copies of them, watch it */
		bool fits;  /* it, or its parent, belonged when last examined */
		bool lacks;	/* it has nothing that is watched */
		bool missed;	/* its present program could not be watched */
	} *seen;
	struct arrival {	/* processes that have arrived, or have not
				   yet mapped what is to be watched */
		pid_t pid, parent;	/* parent 0: it executed a program or
					   was moved */
		uint64_t time;	/* ns, when it arrived, or */
		uint64_t after;	/* was found; then it arrived after this
				   time, ns; 0: time is its arrival */
	} *waiting;
	size_t n, cap;
	bool search;	/* records may have been lost since the last search, */
	uint64_t known;	/* which was at this time, ns; 0: there was none */
	uint64_t searched;	/* the same for processes without records */
	bool lost;		/* lost records have been reported */
	bool missed;	/* a process that ended unwatched has been reported */
	bool again;		/* a module mapped again has been reported */
};

unsigned
arrivals_fds(const struct arrivals *a)
{
	return a == NULL ? 0 : wp_rings_count(a->rings);
}

int
arrivals_fd(const struct arrivals *a, unsigned i)
{
	return wp_rings_fd(a->rings, i);
}

/* Whether the process is neither a kernel thread nor an explainer of this run.
   An explainer that is held cannot answer questions. */
static bool
is_other(pid_t pid)
{
	struct wp_proc_status status;

	return pid != getpid() && wp_proc_status(pid, &status) == 0 &&
	    status.tgid == pid && !status.kernel_thread &&
	    status.parent != getpid();
}

static bool
executes_file(struct arrivals *a, pid_t pid)
{
	const int found = wp_proc_executes(pid, a->file.st_dev, a->file.st_ino);
	char comm[64];

	if (found == -EACCES && a->hidden == 0 &&
	    wp_proc_comm(pid, pid, comm) == 0 && strcmp(comm, a->comm) == 0)
		a->hidden = pid;
	return found > 0;
}

bool
arrivals_fits(void *arrivals, pid_t pid)
{
	struct arrivals *a = arrivals;
	const struct options *o = a->options;
	const bool fits = pid_table_has(pid) && is_other(pid) &&
	    (o->exe != NULL ? executes_file(a, pid) :
	    o->cgroup == NULL || cgroup_has(&a->group, pid));

	if (pid_table_has(pid))
		a->seen[pid].fits = fits;
	return fits;
}

void
arrivals_armed(struct arrivals *a, pid_t pid, uint64_t time)
{
	if (!pid_table_has(pid))
		return;
	a->seen[pid].since = time;
	a->seen[pid].root = pid;
}

void
arrivals_lack(struct arrivals *a, pid_t pid)
{
	if (pid_table_has(pid))
		a->seen[pid].lacks = true;
}

/* --- beginning --- */

int
arrivals_find_file(const char *path, struct stat *file)
{
	if (stat(path, file) != 0)
		return complain("--exe %s: %s; give the path of an executable "
		    "file", path, strerror(errno));
	if (!S_ISREG(file->st_mode))
		return complain("--exe %s: not a file; give the path of "
		    "an executable file", path);
	return 0;
}

static int
look_at_file(struct arrivals *a, const char *path)
{
	(void)snprintf(a->comm, sizeof(a->comm), "%.15s", basename(path));
	return arrivals_find_file(path, &a->file);
}

/* Record processes that are moved from one control group to another. */
static int
open_moves(struct arrivals *a)
{
	struct wp_tracepoint point;
	struct perf_event_attr attr;

	if (cgroup_moves(&point) < 0)
		return -ENOENT;
	wp_attr_tracepoint(&attr, point.id);
	a->moves = point.id;
	a->moved = point.offset;
	return wp_events_open(&a->events, &attr, 1, 0, -1, a->rings);
}

static int
open_programs(struct arrivals *a)
{
	struct perf_event_attr attr;

	wp_attr_programs(&attr, options_any_program(a->options));
	return wp_events_open(&a->events, &attr, 0, 0, -1, a->rings);
}

static void
open_missing(void *arg)
{
	struct arrivals *a = arg;
	const size_t n = a->events.n;

	if (open_programs(a) == 0 && a->moves != 0 && open_moves(a) < 0)
		wp_events_close(&a->events, n);
}

struct wp_rings *
arrivals_rings(struct arrivals *a, bool look)
{
	if (a == NULL)
		return NULL;
	/* what happened on a processor before may be lost */
	if (look && wp_events_check_processors(&a->events,
	    PERF_FORMAT_TOTAL_TIME_RUNNING, a->rings, open_missing, a))
		a->search = a->lost = true;
	return a->rings;
}

static int
open_events(struct arrivals *a)
{
	const bool any = options_any_program(a->options);
	const char *scope = options_scope(a->options);
	struct wp_cause cause = {0};
	int err = wp_rings_open_eager(&a->rings, any ? RINGS : 0, &cause);

	if (err < 0)
		return complain("%s: %s", scope, cause.text);
	err = open_programs(a);
	if (err == -EACCES || err == -EPERM)
		return complain("%s: processes that come later cannot be "
		    "noticed: not permitted (kernel.perf_event_paranoid is "
		    "%d); this needs CAP_PERFMON or root; -p NAME watches "
		    "those that run now", scope,
		    wp_proc_setting("perf_event_paranoid"));
	if (err < 0)
		return complain("%s: noticing processes: %s", scope,
		    strerror(-err));
	if (a->options->cgroup != NULL && open_moves(a) < 0)
		a->moves = 0;
	return 0;
}

int
arrivals_open(struct arrivals **out, const struct options *o)
{
	struct arrivals *a = calloc(1, sizeof(*a));
	int err = 0;

	if (a == NULL ||
	    (a->seen = calloc(PID_TABLE_SIZE, sizeof(*a->seen))) == NULL) {
		free(a);
		return complain("out of memory");
	}
	a->options = o;
	if (o->exe != NULL)
		err = look_at_file(a, o->exe);
	else if (o->cgroup != NULL)
		err = cgroup_find(&a->group, o->cgroup);
	if (err < 0 || (err = open_events(a)) < 0) {
		arrivals_close(a);
		return err;
	}
	*out = a;
	return 0;
}

void
arrivals_close(struct arrivals *a)
{
	if (a == NULL)
		return;
	wp_events_close(&a->events, 0);
	wp_rings_close(a->rings);
	cgroup_free(&a->group);
	free(a->seen);
	free(a->waiting);
	free(a);
}

static void
report_hidden(struct run *run)
{
	struct arrivals *a = run->arrivals;

	if (a->hidden <= 0)
		return;
	session_warn(&run->session, "process %d may execute %s: that takes "
	    "root or CAP_SYS_PTRACE to see, so it is not watched, and there "
	    "may be more of this kind", a->hidden, run->options->exe);
	session_doubt(&run->session, "process %d was not watched", a->hidden);
	a->hidden = -1;
}

void
arrivals_announce(struct run *run)
{
	const struct arrivals *a = run->arrivals;

	if (a == NULL)		/* mappers find processes by what they map */
		return;
	report_hidden(run);
	if (run->options->cgroup == NULL || a->moves != 0)
		return;
	session_warn(&run->session, "processes that are moved into the control "
	    "group, or out of it, are found only by looking ten times a "
	    "second: /sys/kernel/tracing, which would say, is not mounted "
	    "(mount -t tracefs none /sys/kernel/tracing), or this is not the "
	    "machine's PID namespace");
	session_doubt(&run->session, "a process may have been in the control "
	    "group unseen");
}

/* --- watching those that came --- */

/* Report that a process which belonged, or may have, was not watched. */
static void
report_missed(struct run *run, pid_t pid, const char *why)
{
	struct arrivals *a = run->arrivals;
	struct wp_cause ended = {0};

	if (!a->missed)
		session_warn(&run->session, "%s: process %d was not watched, "
		    "and there may be more of this kind",
		    wp_target_check(pid, &ended) < 0 ? ended.text : why, pid);
	a->missed = a->seen[pid].missed = true;
	session_doubt(&run->session, "process %d was not watched", pid);
}

/* Note a process that has arrived and has no events. */
static void
expect(struct run *run, const struct arrival *one)
{
	struct arrivals *a = run->arrivals;

	for (size_t i = 0; i < a->n; i++)
		if (a->waiting[i].pid == one->pid) {	/* it is expected
							   already */
			if (a->waiting[i].after == 0)
				a->waiting[i].after = one->after;
			return;
		}
	if (WP_ARRAY_ROOM(a, waiting) < 0)
		session_note(&run->session, -ENOMEM);
	else
		a->waiting[a->n++] = *one;
}

/* The process ended before it was examined.  A forked process has the same as
   its parent. */
static void
take_gone(struct run *run, const struct arrival *one)
{
	struct arrivals *a = run->arrivals;
	const struct seen *seen = &a->seen[one->pid];

	if (!options_any_program(run->options) || !seen->fits ||
	    (one->parent != 0 && a->seen[one->parent].lacks))
		return;
	if (!a->missed)
		session_warn(&run->session, "process %d ended before it was "
		    "looked at, and may have had what is to be watched; there "
		    "may be more of this kind", one->pid);
	a->missed = true;
	session_doubt(&run->session, "process %d ended before it was looked at",
	    one->pid);
}

/* Since when, in ns, the process may have existed unwatched: its record may be
   lost, or it could not be watched before. */
static uint64_t
first_there(const struct run *run, const struct arrival *one)
{
	const struct arrivals *a = run->arrivals;

	return a->seen[one->pid].missed ? run->began :
	    one->after != 0 ? one->after :
	    !a->search ? one->time : a->known != 0 ? a->known : run->began;
}

/* Watch a process.  Returns false if it has not mapped yet what is to be
   watched. */
static bool
take(struct run *run, const struct arrival *one)
{
	struct arrivals *a = run->arrivals;
	const bool any = options_any_program(run->options);
	struct seen *seen = &a->seen[one->pid];
	const bool fitted = seen->fits;
	struct wp_cause cause = {0};
	int err;

	if (seen->since >= one->time)
		return true;
	if (!arrivals_fits(a, one->pid)) {
		seen->fits = fitted && wp_proc_exiting(one->pid);
		take_gone(run, one);
		return true;
	}
	err = run_add_process(run, one->pid, first_there(run, one), &cause);
	/* the kernel, or the dynamic loader, may not have mapped it yet */
	if (((err == -ENOENT && !any) ||
	    (err < 0 && cause.code == WP_CAUSE_UNMAPPED)) &&
	    wp_clock_ns() < one->time + PATIENCE)
		return false;
	if (err == 0)
		return true;
	seen->lacks = any &&
	    (err == -ENOENT || cause.code == WP_CAUSE_UNMAPPED);
	if (!seen->lacks && wp_proc_exiting(one->pid))
		take_gone(run, one);
	if (!seen->lacks && !(any && wp_proc_exiting(one->pid)))
		report_missed(run, one->pid, cause.text);
	return true;
}

static void
take_all(struct run *run)
{
	struct arrivals *a = run->arrivals;
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct arrival one = a->waiting[i];

		if (run->reason != NULL || !take(run, &one))
			a->waiting[n++] = one;
	}
	a->n = n;
	report_hidden(run);
}

/* --- records --- */

static void
take_fork(struct run *run, const struct perf_event_header *header)
{
	const struct wp_task_record *task = (const void *)header;
	struct arrivals *a = run->arrivals;
	const pid_t pid = (pid_t)task->pid, parent = (pid_t)task->ppid;
	struct seen *seen = a->seen;

	if (pid == parent || !pid_table_has(pid) || !pid_table_has(parent) ||
	    seen[pid].since >= task->time || parent == getpid())
		return;
	/* forget an earlier process with this id */
	seen[pid] = (struct seen){
		.fits = seen[parent].fits, .lacks = seen[parent].lacks,
	};
	if (seen[parent].since != 0 && seen[parent].since <= task->time) {
		seen[pid].since = task->time;
		seen[pid].root = seen[parent].root;
	} else if (!a->lost && !seen[pid].lacks) {
		/* otherwise it may have inherited its parent's events */
		expect(run, &(struct arrival){
			.pid = pid, .parent = parent, .time = task->time,
		});
	}
}

/* execve(2) has removed the events of the process. */
static void
take_program(struct run *run, const struct perf_event_header *header)
{
	const struct wp_comm_record *comm = (const void *)header;
	const uint64_t time = wp_attr_time(header);
	struct arrivals *a = run->arrivals;
	const pid_t pid = (pid_t)comm->pid;
	const char *name = (const char *)(comm + 1);

	if (!pid_table_has(pid) || a->seen[pid].since >= time)
		return;
	a->seen[pid].since = 0;
	a->seen[pid].lacks = a->seen[pid].missed = false;
	if (run->options->exe != NULL && wp_proc_exiting(pid) &&
	    strncmp(name, a->comm, sizeof(a->comm)) == 0)
		report_missed(run, pid, "a process of --exe ended at once");
	else
		expect(run, &(struct arrival){.pid = pid, .time = time});
}

/* Whether the record is of the module of a SPEC, as far as its name shows. */
static bool
is_module(const struct options *o, const struct wp_mmap2_record *map)
{
	const char *path = (const char *)(map + 1);
	const char *name = basename(path);

	for (size_t i = 0; i < o->nspecs; i++) {
		const char *module = o->spec[i].module;

		if (module != NULL && strncmp(name, basename(module),
		    strlen(basename(module))) == 0)
			return true;
	}
	return false;
}

/* A watched process has mapped the module of a SPEC, which it may have closed
   before, so it may be at another address now. */
static void
take_again(struct run *run, pid_t pid)
{
	struct arrivals *a = run->arrivals;

	if (!a->again)
		session_warn(&run->session, "process %d has mapped the module "
		    "of a SPEC again: what is watched is where it was before; "
		    "there may be more of this kind", pid);
	a->again = true;
	session_doubt(&run->session, "process %d has mapped a module again",
	    pid);
}

/* The process has mapped code, and may now have what is to be watched. */
static void
take_code(struct run *run, const struct perf_event_header *header)
{
	const struct wp_mmap2_record *map = (const void *)header;
	const uint64_t time = wp_attr_time(header);
	struct arrivals *a = run->arrivals;
	const pid_t pid = (pid_t)map->pid;

	if (!pid_table_has(pid) || map->ino == 0 || !a->seen[pid].fits ||
	    a->seen[pid].since >= time)
		return;
	if (a->seen[pid].since != 0 && is_module(run->options, map) &&
	    run->options->nspecs == 1)
		take_again(run, pid);
	if (a->seen[pid].since != 0 && run->options->nspecs == 1)
		return;
	a->seen[pid].lacks = false;
	expect(run, &(struct arrival){.pid = pid, .time = time});
}

/* --- control groups --- */

static void
disarm(struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++) {
		struct process *process = &run->process[i];

		if (process->pid != pid || !run_is_armed(run, process))
			continue;
		run_disarm(run, process);
		for (size_t w = process->first;
		    w < process->first + process->n; w++)
			session_event(&run->session, &(struct watch_event){
				.what = WATCH_DISARMED, .watch = (unsigned)w,
				.time = wp_clock_ns(), .pid = pid,
				.gap = WATCH_NO_GAP,
			});
	}
}

/* A process does not belong any more since this time, ns, or 0 if that is not
   known.  Other processes that have inherited the same events lose them as
   well; those that still belong are watched anew. */
static void
leave(struct run *run, pid_t pid, uint64_t time)
{
	char ms[32] = "moment";
	struct arrivals *a = run->arrivals;
	const pid_t root = a->seen[pid].root;
	pid_t *pids = NULL;
	size_t cap = 0;
	const uint64_t now = wp_clock_ns();
	int n;

	disarm(run, root);
	if (time != 0)
		(void)snprintf(ms, sizeof(ms), "%.1f ms",
		    (double)(wp_clock_ns() - time) / 1e6);
	session_warn(&run->session, "process %d has left the control group, "
	    "and is not watched any more: its hits of the %s in between are "
	    "reported", pid, ms);
	n = wp_proc_processes(&pids, &cap);
	for (int i = 0; i < n; i++) {
		const pid_t one = pids[i];

		if (!pid_table_has(one) || a->seen[one].since == 0 ||
		    a->seen[one].root != root)
			continue;
		a->seen[one].since = 0;
		if (one != pid)
			expect(run, &(struct arrival){.pid = one, .time = now});
	}
	free(pids);
	a->seen[pid].since = 0;
}

/* A process is in the group, or is not, at this time, ns.  It has been since
   then or, unless `after' is 0, since some time after that. */
static void
take_place(struct run *run, pid_t pid, uint64_t time, uint64_t after)
{
	struct arrivals *a = run->arrivals;
	struct seen *seen = &a->seen[pid];
	const bool fits = arrivals_fits(a, pid);

	if (fits && seen->since == 0 && !seen->lacks)
		expect(run, &(struct arrival){
			.pid = pid, .time = time, .after = after,
		});
	else if (!fits && seen->since != 0 && !wp_proc_exiting(pid))
		leave(run, pid, after != 0 ? 0 : time);
}

static void
take_move(struct run *run, const struct perf_event_header *header)
{
	const struct wp_sample *sample = (const void *)header;
	const uint8_t *raw = (const uint8_t *)(sample + 1) + sizeof(uint32_t);
	struct arrivals *a = run->arrivals;
	int32_t pid;

	if (header->size < sizeof(*sample) + sizeof(uint32_t) + a->moved +
	    sizeof(pid))
		return;
	memcpy(&pid, raw + a->moved, sizeof(pid));
	if (!pid_table_has(pid))
		return;
	a->seen[pid].lacks = false;
	take_place(run, pid, sample->time, 0);
}

static void
take_loss(struct run *run)
{
	struct arrivals *a = run->arrivals;

	if (a->lost)
		return;
	a->lost = true;
	session_warn(&run->session, "records of new processes were lost: one "
	    "of %s may not be watched", run->options->exe != NULL ?
	    run->options->exe : options_scope(run->options));
	session_doubt(&run->session, "a process may not have been watched");
}

static void
take_records(struct run *run)
{
	struct arrivals *a = run->arrivals;
	const unsigned most = options_any_program(run->options) ?
	    MORE * MANY : MANY;
	const struct perf_event_header *header;
	unsigned n = 0;

	while (run->reason == NULL &&
	    (header = wp_rings_next(a->rings, UINT64_MAX)) != NULL) {
		/* the kernel reports a loss only with the next record */
		a->search = a->search || ++n >= most ||
		    header->type == PERF_RECORD_LOST;
		if (header->type == PERF_RECORD_FORK)
			take_fork(run, header);
		else if (header->type == PERF_RECORD_COMM &&
		    (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
			take_program(run, header);
		else if (header->type == PERF_RECORD_MMAP2)
			take_code(run, header);
		else if (header->type == PERF_RECORD_SAMPLE)
			take_move(run, header);
		else if (header->type == PERF_RECORD_LOST)
			take_loss(run);
	}
}

/* --- those of which there are no records --- */

static bool
is_armed(const struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == pid &&
		    run_is_armed(run, &run->process[i]))
			return true;
	return false;
}

/* Search for processes whose records were lost.  One that has not executed a
   program since it was created may have inherited events. */
static void
search(struct run *run)
{
	struct arrivals *a = run->arrivals;
	const bool lost = a->search;
	const uint64_t known = a->known != 0 ? a->known : run->began;
	const uint64_t after = a->searched != 0 ? a->searched : run->began;
	pid_t *pids = NULL;
	size_t cap = 0;
	int n;

	a->search = false;
	a->searched = wp_clock_ns();
	if (lost)
		a->known = a->searched;
	n = wp_proc_processes(&pids, &cap);
	take_records(run);	/* processes created meanwhile have inherited
				   events and get no others */
	for (int i = 0; i < n; i++) {
		const pid_t pid = pids[i];

		if (!pid_table_has(pid) || pid == getpid())
			continue;
		if (lost && arrivals_fits(a, pid) &&
		    wp_proc_has_executed(pid) > 0 && !is_armed(run, pid)) {
			a->seen[pid].lacks = false;
			expect(run, &(struct arrival){
				.pid = pid, .time = a->searched, .after = known,
			});
		} else if (run->options->cgroup != NULL) {
			take_place(run, pid, a->searched, after);
		}
	}
	free(pids);
}

void
run_take_arrivals(struct run *run)
{
	struct arrivals *a = run->arrivals;
	const bool looks = run->options->cgroup != NULL && a->moves == 0;

	take_records(run);
	if ((a->search || looks) && run->reason == NULL &&
	    wp_clock_ns() >= a->searched + LOOK)
		search(run);
	take_all(run);
}
