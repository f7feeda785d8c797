/* arrivals: processes of --exe. */
#include "setup/arrivals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/event.h"
#include "os/attr.h"
#include "os/clock.h"
#include "os/proc.h"
#include "run/run.h"
#include "setup/setup.h"
#include "util/complain.h"

enum {
	PIDS = (1 << 22) + 1,	/* no process has a larger id */
	WAITING_MAX = 64,
	MANY = 512,		/* records taken at once: a ring may have been
				   full */
};

/* How long a program may take to map its libraries, ns; and how often it is looked
   for those whose records are lost. */
#define PATIENCE UINT64_C(5000000000)
#define LOOK UINT64_C(100000000)

struct arrivals {
	struct stat file;
	char comm[16];		/* what the kernel calls those that execute it */
	struct wp_rings *rings;
	struct wp_events events;
	uint64_t *since;	/* by pid: watched from then on, ns; 0: not */
	struct waiting {	/* nwaiting processes, that have to map what
				   is to be watched */
		pid_t pid;
		uint64_t time;	/* ns, */
		bool late;	/* when it was found; it came before then */
	} waiting[WAITING_MAX];
	unsigned nwaiting;
	bool search;		/* records may have been lost since it was
				   looked for such processes, */
	uint64_t searched;	/* at this time, ns */
	bool lost;		/* records were, as reported */
	bool missed;		/* one has ended unwatched, as reported */
};

static bool
is_pid(pid_t pid)
{
	return pid > 0 && pid < PIDS;
}

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

const struct stat *
arrivals_file(const struct arrivals *a)
{
	return &a->file;
}

/* Whether a process executes the file now. */
static bool
fits(const struct arrivals *a, pid_t pid)
{
	return wp_proc_executes(pid, a->file.st_dev, a->file.st_ino) > 0;
}

void
arrivals_armed(struct arrivals *a, pid_t pid, uint64_t time)
{
	if (is_pid(pid))
		a->since[pid] = time;
}

static int
look_at_file(struct arrivals *a, const char *path)
{
	if (stat(path, &a->file) != 0)
		return complain("--exe %s: %s; give the path of an executable "
		    "file", path, strerror(errno));
	if (!S_ISREG(a->file.st_mode))
		return complain("--exe %s: not a file; give the path of "
		    "an executable file", path);
	(void)snprintf(a->comm, sizeof(a->comm), "%.15s", basename(path));
	return 0;
}

static int
open_events(struct arrivals *a)
{
	struct perf_event_attr attr;
	struct wp_cause cause = {0};
	int err = wp_rings_open_eager(&a->rings, &cause);

	if (err < 0)
		return complain("--exe: %s", cause.text);
	wp_attr_programs(&attr);
	err = wp_events_open(&a->events, &attr, 0, 0, -1, a->rings);
	if (err == -EACCES || err == -EPERM)
		return complain("--exe: processes that come later cannot be "
		    "noticed: not permitted (kernel.perf_event_paranoid is %d); "
		    "this needs CAP_PERFMON or root; -p NAME watches those that "
		    "run now", wp_proc_setting("perf_event_paranoid"));
	return err < 0 ? complain_errno(-err, "--exe: noticing processes") : 0;
}

int
arrivals_open(struct arrivals **out, const char *path)
{
	struct arrivals *a = calloc(1, sizeof(*a));
	int err;

	if (a == NULL || (a->since = calloc(PIDS, sizeof(*a->since))) == NULL) {
		free(a);
		return complain("out of memory");
	}
	if ((err = look_at_file(a, path)) < 0 || (err = open_events(a)) < 0) {
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
	free(a->since);
	free(a);
}

/* It has ended, or cannot be watched. */
static void
report_missed(struct run *run, pid_t pid, const char *why)
{
	struct arrivals *a = run->arrivals;
	struct wp_cause ended = {0};

	if (!a->missed)
		session_warn(&run->session, "%s: process %d was not watched, "
		    "and there may be more of this kind",
		    wp_target_check(pid, &ended) < 0 ? ended.text : why, pid);
	a->missed = true;
	session_doubt(&run->session, "process %d was not watched", pid);
}

/* One came at this time (late: or before), and has no events. */
static void
take(struct run *run, pid_t pid, uint64_t time, bool late)
{
	struct arrivals *a = run->arrivals;
	struct wp_cause cause = {0};
	int err = a->since[pid] < time && fits(a, pid) ?
	    run_add_process(run, pid, late ? WATCH_NO_GAP : time, &cause) : 0;

	/* the kernel may have to map it first, or its dynamic loader to find
	   it */
	if ((err == -ENOENT || (err < 0 && cause.code == WP_CAUSE_UNMAPPED)) &&
	    wp_clock_ns() < time + PATIENCE && a->nwaiting < WAITING_MAX)
		a->waiting[a->nwaiting++] = (struct waiting){pid, time, late};
	else if (err < 0)
		report_missed(run, pid, cause.text);
}

static void
try_again(struct run *run)
{
	struct arrivals *a = run->arrivals;
	const unsigned n = a->nwaiting;
	struct waiting waiting[WAITING_MAX];

	memcpy(waiting, a->waiting, sizeof(waiting));
	a->nwaiting = 0;
	for (unsigned i = 0; i < n; i++)
		take(run, waiting[i].pid, waiting[i].time, waiting[i].late);
}

static void
take_fork(struct run *run, const struct perf_event_header *header)
{
	const struct wp_task_record *task = (const void *)header;
	const struct arrivals *a = run->arrivals;
	uint64_t *since = a->since;
	const pid_t pid = (pid_t)task->pid, parent = (pid_t)task->ppid;

	if (pid == parent || !is_pid(pid) || !is_pid(parent) ||
	    since[pid] >= task->time)
		return;
	since[pid] = 0;		/* of another one, which had this id */
	if (since[parent] != 0 && since[parent] <= task->time)
		since[pid] = task->time;
	else if (!a->lost)	/* else its parent may have inherited events */
		take(run, pid, task->time, false);
}

/* It has lost the events that it had. */
static void
take_program(struct run *run, const struct perf_event_header *header)
{
	const struct wp_comm_record *comm = (const void *)header;
	const uint64_t time = wp_attr_time(header);
	struct arrivals *a = run->arrivals;
	const pid_t pid = (pid_t)comm->pid;
	const char *name = (const char *)(comm + 1);

	if (!is_pid(pid) || a->since[pid] >= time)
		return;
	a->since[pid] = 0;
	if (wp_proc_exiting(pid) && strncmp(name, a->comm,
	    sizeof(a->comm)) == 0)
		report_missed(run, pid, "a process of --exe ended at once");
	else
		take(run, pid, time, false);
}

static bool
is_armed(const struct run *run, pid_t pid)
{
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == pid &&
		    run_is_armed(run, &run->process[i]))
			return true;
	return false;
}

/* Look for those whose records were lost.  One that has executed no program since
   it was created may have inherited events. */
static void
search(struct run *run)
{
	struct arrivals *a = run->arrivals;
	pid_t *pids = NULL;
	size_t cap = 0;
	int n;

	a->search = false;
	a->searched = wp_clock_ns();
	n = wp_proc_processes(&pids, &cap);
	for (int i = 0; i < n; i++)
		if (is_pid(pids[i]) && pids[i] != getpid() &&
		    fits(a, pids[i]) &&
		    wp_proc_has_executed(pids[i]) > 0 &&
		    !is_armed(run, pids[i]))
			take(run, pids[i], a->searched, true);
	free(pids);
}

void
run_take_arrivals(struct run *run)
{
	struct arrivals *a = run->arrivals;
	const struct perf_event_header *header;
	unsigned n = 0;

	try_again(run);
	while (run->reason == NULL &&
	    (header = wp_rings_next(a->rings, UINT64_MAX)) != NULL) {
		/* the kernel says what it has lost only before the next record */
		a->search = a->search || ++n >= MANY ||
		    header->type == PERF_RECORD_LOST;
		if (header->type == PERF_RECORD_FORK)
			take_fork(run, header);
		else if (header->type == PERF_RECORD_COMM &&
		    (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
			take_program(run, header);
		else if (header->type == PERF_RECORD_LOST && !a->lost) {
			a->lost = true;
			session_warn(&run->session, "records of new processes "
			    "were lost: one of %s may not be watched",
			    run->options->exe);
			session_doubt(&run->session, "a process was perhaps "
			    "not watched");
		}
	}
	if (a->search && run->reason == NULL &&
	    wp_clock_ns() >= a->searched + LOOK)
		search(run);
}
