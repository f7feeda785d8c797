/* exec_monitor: waits for a program's end, or for its execve(2). */
#include "processes/exec_monitor.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/perf.h"
#include "proc/proc.h"

enum { RING = 4096 };

/* Records changes of the program's name by execve(2), in its first thread: an
   execve(2) by another thread ends this one.  A new command may still be in its
   own execve(2), so the event is off until it is wanted. */
static void
open_event(struct exec_monitor *v)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY, .comm = 1, .comm_exec = 1,
		.exclude_kernel = 1, .exclude_hv = 1,
		.disabled = 1, .watermark = 1, .wakeup_watermark = 1,
	};

	v->event = wp_perf_open(&attr, v->program, -1);
	if (v->event >= 0 && wp_perf_map(v->event, RING, &v->ring) < 0) {
		(void)close(v->event);
		v->event = -1;
	}
}

/* Take all records.  Returns whether one reports an execve(2). */
static bool
read_executed(struct perf_event_mmap_page *ring)
{
	const char *data = (const char *)ring + ring->data_offset;
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->data_tail;
	bool executed = false;

	while (tail != head) {
		struct perf_event_header header;

		/* headers are not split, as records are multiples of 8 bytes */
		memcpy(&header, data + tail % RING, sizeof(header));
		executed |= header.type == PERF_RECORD_COMM &&
		    (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
		tail += header.size;
	}
	__atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
	return executed;
}

/* The event reported a record, or the end of its thread.  While the program
   lives, that thread ends only if another one calls execve(2). */
static void
take_event(struct exec_monitor *v, struct pollfd *p)
{
	bool executed = read_executed(v->ring);

	if ((p->revents & ~POLLIN) != 0) {
		executed |= !wp_proc_exiting(v->program);
		p->fd = -1;
	}
	if (executed) {
		atomic_store(&v->executed, true);
		wp_channel_ring(v->channel);
	}
}

static void *
keep(void *arg)
{
	struct exec_monitor *v = arg;
	struct pollfd p[] = {
		{v->pidfd, POLLIN, 0}, {v->event, POLLIN, 0},
		{v->leave, POLLIN, 0},
	};

	(void)sem_post(&v->begun);
	while (p[0].revents == 0 && p[2].revents == 0)
		if (poll(p, 3, -1) > 0 && p[1].revents != 0)
			take_event(v, &p[1]);
	if (p[0].revents != 0) {
		atomic_store(&v->gone, true);
		wp_channel_ring(v->channel);
	}
	return NULL;
}

void
exec_monitor_begin(struct exec_monitor *v, struct wp_channel *channel,
    pid_t program, int pidfd)
{
	*v = (struct exec_monitor){
		.channel = channel, .program = program, .pidfd = pidfd,
	};
	open_event(v);
	(void)sem_init(&v->begun, 0, 0);
	/* pthread_cancel(3) would abort without libgcc_s.so.1 */
	v->leave = eventfd(0, EFD_CLOEXEC);
	v->awake = v->leave >= 0 &&
	    pthread_create(&v->thread, NULL, keep, v) == 0;
	if (!v->awake && v->leave >= 0)
		(void)close(v->leave);
	/* a process forked soon afterwards to trace the program must not
	   inherit locks that a starting thread holds */
	while (v->awake && sem_wait(&v->begun) != 0)
		;
}

void
exec_monitor_enable(struct exec_monitor *v)
{
	if (v->event >= 0)
		(void)wp_perf_enable(v->event);
}

void
exec_monitor_end(struct exec_monitor *v)
{
	if (v->awake) {
		(void)eventfd_write(v->leave, 1);
		(void)pthread_join(v->thread, NULL);
		(void)close(v->leave);
	}
	if (v->ring != NULL)
		wp_perf_unmap(v->ring, RING);
	if (v->ring != NULL && v->event >= 0)
		(void)close(v->event);
	*v = (struct exec_monitor){.pidfd = -1, .event = -1};
}

bool
exec_monitor_ended(struct exec_monitor *v)
{
	struct pollfd p = {v->pidfd, POLLIN, 0};

	if (!v->awake && poll(&p, 1, 0) > 0)
		atomic_store(&v->gone, true);
	return atomic_load(&v->gone);
}
