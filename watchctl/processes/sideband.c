/* sideband: actions of programs other than accesses. */
#include "processes/sideband.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/probe.h"
#include "proc/proc.h"
#include "proc/sharers.h"

enum {
	ROOM = 1 << 16,		/* bytes of each ring */
	MANY = ROOM / 4,	/* if a look finds fewer bytes of records
				   than this, none can have been lost,
				   because a full ring is emptied in at most
				   two looks */
	EVENTS_MAX = 4096,	/* most events of one kind, */
	ADDED_MAX = 1 << 18,	/* or of the only kind */
	ROUNDS = 100,		/* for a program that keeps creating threads */
};

static bool
has(const struct wp_events *events, pid_t tid)
{
	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].tid == tid)
			return true;
	return false;
}

/* Open events for threads that have none.  Returns their number, or -errno. */
static int
open_others(pid_t pid, struct wp_events *events, struct perf_event_attr *attr,
    const struct wp_rings *rings, size_t most)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int err = 0, opened = 0, n = wp_proc_threads(pid, &tids, &cap);

	for (int i = 0; i < n && err == 0; i++) {
		if (has(events, tids[i]))
			continue;
		err = events->n > most ? -EMFILE :
		    wp_events_open(events, attr, 0, 0, tids[i], rings);
		opened += err == 0;
		if (err == -ESRCH)
			err = 0;
	}
	free(tids);
	return err < 0 ? err : n < 0 ? n : opened;
}

/* Drop what older kernels do not have.  Returns false if there is nothing left
   to drop. */
static bool
ask_for_less(struct perf_event_attr *attr)
{
	if ((attr->read_format & PERF_FORMAT_LOST) != 0) {
		attr->read_format &= ~(uint64_t)PERF_FORMAT_LOST;
		return true;
	}
	if (!attr->inherit_thread && !attr->remove_on_exec)
		return false;
	attr->inherit_thread = attr->remove_on_exec = 0;
	attr->comm_exec = attr->task;
	return true;
}

/* Threads inherit the events of their creator, so all are covered once a look
   finds no thread without events. */
static int
open_all(pid_t pid, struct wp_events *events, struct perf_event_attr *attr,
    const struct wp_rings *rings, size_t most)
{
	unsigned rounds = 0;
	int opened;

	do
		opened = open_others(pid, events, attr, rings, most);
	while ((opened > 0 && ++rounds < ROUNDS) ||
	    (opened == -EINVAL && ask_for_less(attr)));
	return opened > 0 ? -EAGAIN : opened;
}

static void
close_stream(struct sideband_stream *stream)
{
	wp_events_close(&stream->events, 0);
	if (stream->rings != NULL)
		wp_rings_close(stream->rings);
	stream->rings = NULL;
}

static int
open_stream(struct sideband *side, struct sideband_stream *stream, pid_t pid,
    size_t most)
{
	const size_t before = stream->events.n;
	struct perf_event_attr attr;
	int err = 0;

	if (stream->rings == NULL && (err = wp_rings_open(&stream->rings, ROOM,
	    &side->cause)) < 0) {
		stream->rings = NULL;
		return err;
	}
	wp_attr_side(&attr, stream == &side->tasks);
	err = open_all(pid, &stream->events, &attr, stream->rings, most);
	stream->format = attr.read_format;
	if (err >= 0 && stream->events.n > before)
		return 0;
	if (err >= 0 && before > 0)
		return -ESRCH;	/* it has ended, and others are left */
	err = err < 0 ? err : -ESRCH;
	(void)wp_cause_errno(&side->cause, "opening an event that records what "
	    "a program creates", -err);
	close_stream(stream);
	return err;
}

/* Whether no perf event at all is permitted, which is the cause then; having no
   room for one is not. */
static bool
is_refused(struct wp_cause *cause)
{
	struct perf_event_attr attr;
	int fd;

	wp_attr_ring(&attr, 1);
	if ((fd = wp_perf_open(&attr, 0, -1)) >= 0) {
		(void)close(fd);
		return false;
	}
	(void)wp_probe_cause(-fd, cause);
	return fd != -EMFILE && fd != -ENFILE && fd != -ENOMEM;
}

void
sideband_open(struct sideband *side, pid_t pid)
{
	sideband_close(side);
	*side = (struct sideband){.pid = pid};
	(void)open_stream(side, &side->tasks, pid, EVENTS_MAX);
	if (side->tasks.rings == NULL) {
		side->refused = is_refused(&side->cause);
		return;
	}
	(void)open_stream(side, &side->maps, pid, EVENTS_MAX);
}

int
sideband_add(struct sideband *side, pid_t pid)
{
	return open_stream(side, &side->tasks, pid, ADDED_MAX);
}

void
sideband_close(struct sideband *side)
{
	close_stream(&side->tasks);
	close_stream(&side->maps);
}

static bool
is_complete(const struct sideband_stream *stream)
{
	return stream->rings != NULL && !stream->lost &&
	    wp_rings_uncovered(stream->rings) < 0;
}

bool
sideband_knows_tasks(const struct sideband *side)
{
	return is_complete(&side->tasks);
}

bool
sideband_knows_maps(const struct sideband *side)
{
	return is_complete(&side->maps);
}

/* The kernel reports a loss only before the next record, which may never come,
   so the events are read.  Older kernels do not count losses. */
static bool
has_lost(const struct sideband_stream *stream)
{
	struct wp_perf_count count;

	for (size_t i = 0; i < stream->events.n; i++)
		if (wp_perf_read(stream->events.event[i].fd, stream->format,
		    &count) < 0 || count.lost > 0)
			return true;
	return stream->format == 0;
}

static void
take_child(struct sideband *side, const struct perf_event_header *header,
    const struct sideband_calls *calls, void *arg)
{
	const struct wp_task_record *task = (const void *)header;
	const struct sideband_child child = {
		(pid_t)task->pid, (pid_t)task->ppid, (pid_t)task->ptid,
		task->time,
	};
	const struct wp_loan loan = {child.parent, child.tid, child.pid};

	if (child.pid == child.parent) {
		if (calls->thread != NULL)
			calls->thread(arg, child.pid, child.time);
		return;
	}
	if (calls->lent != NULL)
		wp_shared_vm_add(&side->lent, &loan);
	calls->made(arg, &child);
}

/* A process ends with its first thread as far as execve(2) is concerned, though
   others may continue. */
static void
take_end(const struct perf_event_header *header,
    const struct sideband_calls *calls, void *arg)
{
	const struct wp_task_record *task = (const void *)header;

	if (calls->ended != NULL && task->pid == task->tid)
		calls->ended(arg, (pid_t)task->pid);
}

bool
sideband_is_worker(const char *comm)
{
	return strncmp(comm, "iou-wrk-", strlen("iou-wrk-")) == 0 ||
	    strncmp(comm, "iou-sqp-", strlen("iou-sqp-")) == 0;
}

/* Used where events do not end when another program is executed. */
static void
take_name(const struct perf_event_header *header,
    const struct sideband_calls *calls, void *arg)
{
	const struct wp_comm_record *comm = (const void *)header;

	if (calls->worker != NULL && comm->pid != comm->tid &&
	    sideband_is_worker(comm->comm))
		calls->worker(arg, (pid_t)comm->pid);
	if ((header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0 &&
	    calls->executed != NULL)
		calls->executed(arg, (pid_t)comm->pid);
}

static void
take_mapping(const struct perf_event_header *header,
    const struct sideband_calls *calls, void *arg)
{
	const struct wp_mmap2_record *mmap2 = (const void *)header;
	const struct sideband_mapping map = {
		(pid_t)mmap2->pid, mmap2->addr, mmap2->addr + mmap2->len,
		(mmap2->flags & MAP_SHARED) != 0,
		(header->misc & PERF_RECORD_MISC_MMAP_DATA) == 0,
		wp_attr_time(header),
	};

	calls->mapped(arg, &map);
}

/* Take the records of a stream.  New processes are recorded among the mappings
   too.  Returns whether no record was lost. */
static bool
look_at(struct sideband *side, struct sideband_stream *stream,
    const struct sideband_calls *calls, void *arg)
{
	const struct perf_event_header *header;
	const bool tasks = stream == &side->tasks;
	size_t taken = 0;

	while (stream->rings != NULL &&
	    (header = wp_rings_next(stream->rings, UINT64_MAX)) != NULL) {
		taken += header->size;
		if (header->type == PERF_RECORD_FORK && tasks)
			take_child(side, header, calls, arg);
		else if (header->type == PERF_RECORD_EXIT && tasks)
			take_end(header, calls, arg);
		else if (header->type == PERF_RECORD_COMM && tasks)
			take_name(header, calls, arg);
		else if (header->type == PERF_RECORD_LOST)
			stream->lost = true;
		else if (header->type == PERF_RECORD_MMAP2)
			take_mapping(header, calls, arg);
	}
	if (taken >= MANY && !stream->lost)
		stream->lost = has_lost(stream);
	return is_complete(stream);
}

bool
sideband_look(struct sideband *side, const struct sideband_calls *calls,
    void *arg)
{
	const bool tasks = look_at(side, &side->tasks, calls, arg),
	    maps = look_at(side, &side->maps, calls, arg);

	/* reported before it is checked, because a process that no longer
	   shares the memory may have written until now */
	for (unsigned i = 0; i < side->lent.n; i++)
		calls->lent(arg, side->lent.loan[i].pid);
	(void)wp_shared_vm_left(&side->lent, 0, wp_sharers_has);
	return tasks && maps && !side->lent.more;
}
