/*
 * perf: the kernel's perf events.  Only this file calls perf_event_open(2), its
 * ioctls, its mmap, and fcntl(2) for signal owners, so a test can wrap it.
 *
 * Functions return 0 (or a descriptor) or -errno, and are thread-safe and
 * async-signal-safe.
 */
#ifndef WP_PERF_H
#define WP_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"

#pragma GCC visibility push(default)

/* A new event's descriptor, close-on-exec.  See perf_event_open(2) for what
   attr, pid and cpu may be, and for the errors. */
int wp_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu);

int wp_perf_enable(int fd);		/* children's copies too */
int wp_perf_disable(int fd);
int wp_perf_id(int fd, uint64_t *id);
int wp_perf_redirect(int fd, int ring_fd);	/* records go to that ring */
int wp_perf_modify(int fd, const struct perf_event_attr *attr);
int wp_perf_period(int fd, uint64_t period);
/* Enable it for one overflow, after which it disables itself; and enable it in
   this way again, after it was disabled by that or otherwise. */
int wp_perf_once(int fd, uint64_t period);
int wp_perf_once_again(int fd, uint64_t period);
int wp_perf_set_bpf(int fd, int prog_fd);

/* Have overflows send sig, with si_fd, to one thread (F_SETOWN_EX, F_SETSIG,
   O_ASYNC; fcntl(2)). 0: send no signal any more. */
int wp_perf_signal(int fd, pid_t tid, int sig);

/* What read(2) returns for an event; all three include children that inherited
   it. */
struct wp_perf_count {
	uint64_t value;		/* hits */
	uint64_t running;	/* ns that it was on a processor, with its
				   thread */
	uint64_t lost;		/* of the hits, records for which there was no
				   room; 0 on kernels before 6.0, which do not
				   count them */
};

/* Read the counts. format is the event's read_format, which may have
   PERF_FORMAT_TOTAL_TIME_RUNNING and PERF_FORMAT_LOST; members that it does not
   have become 0. */
int wp_perf_read(int fd, uint64_t format, struct wp_perf_count *);

/* The ring of an event: a control page and size bytes (a power of two). */
int wp_perf_map(int fd, size_t size, struct perf_event_mmap_page **ring);
void wp_perf_unmap(struct perf_event_mmap_page *ring, size_t size);

#pragma GCC visibility pop

#endif
