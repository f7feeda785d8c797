/* perf: the system calls of perf events, one function each. */
#include "os/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PERF_FLAG_FD_CLOEXEC
#error "kernel headers of Linux 3.14 or later are needed"
#endif

static int
result(long value)
{
	return value < 0 ? -errno : (int)value;
}

int
wp_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return result(syscall(SYS_perf_event_open, attr, pid, cpu, -1,
	    PERF_FLAG_FD_CLOEXEC));
}

int
wp_perf_enable(int fd)
{
	return result(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
}

int
wp_perf_disable(int fd)
{
	return result(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
}

int
wp_perf_id(int fd, uint64_t *id)
{
	return result(ioctl(fd, PERF_EVENT_IOC_ID, id));
}

int
wp_perf_redirect(int fd, int ring_fd)
{
	return result(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd));
}

int
wp_perf_modify(int fd, const struct perf_event_attr *attr)
{
	return result(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, attr));
}

int
wp_perf_period(int fd, uint64_t period)
{
	return result(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
}

/*
 * Some kernels stop an event for good once its overflows are used up: only a
 * new period revives it, while it is enabled.  The new period begins with an
 * overflow at once, unless it is 1; to correct that, the event is taken off the
 * processor and put on it again.
 */
static int
revive(int fd, uint64_t period)
{
	int err = wp_perf_period(fd, period);

	if (err < 0 || period == 1 || (err = wp_perf_disable(fd)) < 0)
		return err;
	return wp_perf_enable(fd);
}

int
wp_perf_once(int fd, uint64_t period)
{
	int err = result(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));

	return err < 0 ? err : revive(fd, period);
}

int
wp_perf_once_again(int fd, uint64_t period)
{
	int err = wp_perf_enable(fd);

	return err < 0 ? err : revive(fd, period);
}

int
wp_perf_set_bpf(int fd, int prog_fd)
{
	return result(ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd));
}

int
wp_perf_signal(int fd, pid_t tid, int sig)
{
	struct f_owner_ex owner = {F_OWNER_TID, tid};
	int err;

	if (sig == 0)
		return result(fcntl(fd, F_SETFL, 0));
	if ((err = result(fcntl(fd, F_SETOWN_EX, &owner))) < 0 ||
	    (err = result(fcntl(fd, F_SETSIG, sig))) < 0)
		return err;
	return result(fcntl(fd, F_SETFL, O_ASYNC));
}

int
wp_perf_read(int fd, uint64_t format, struct wp_perf_count *count)
{
	const bool has_running = (format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0;
	const bool has_lost = (format & PERF_FORMAT_LOST) != 0;
	const size_t want = 1u + has_running + has_lost;
	uint64_t values[3];
	/* read(2) is a cancellation point, and this also runs in a signal
	   handler */
	long n = syscall(SYS_read, fd, values, want * sizeof(*values));

	if (n < 0)
		return -errno;
	if ((size_t)n != want * sizeof(*values))
		return -EIO;
	count->value = values[0];
	count->running = has_running ? values[1] : 0;
	count->lost = has_lost ? values[want - 1] : 0;
	return 0;
}

int
wp_perf_map(int fd, size_t size, struct perf_event_mmap_page **ring)
{
	void *at = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE) + size,
	    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*ring = at;
	return 0;
}

void
wp_perf_unmap(struct perf_event_mmap_page *ring, size_t size)
{
	(void)munmap(ring, (size_t)sysconf(_SC_PAGESIZE) + size);
}
