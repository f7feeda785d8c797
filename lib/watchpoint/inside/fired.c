/* fired: what an event that signals one thread has seen.  See fired.h. */
#include "handler/fired.h"

#include <errno.h>
#include <unistd.h>

#include "os/perf.h"

int
wp_fired_open(struct wp_fired *fired, int fd)
{
	int err;

	*fired = (struct wp_fired){.size = (size_t)sysconf(_SC_PAGESIZE)};
	err = wp_perf_map(fd, fired->size, &fired->ring);
	return err == -EPERM ? -ENOBUFS : err;
}

void
wp_fired_close(struct wp_fired *fired)
{
	if (fired->ring != NULL)
		wp_perf_unmap(fired->ring, fired->size);
	fired->ring = NULL;
}
