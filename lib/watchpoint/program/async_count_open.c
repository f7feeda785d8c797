/* async_count_open: opens the count of an event that signals one thread.  See
   async_count.h. */
#include "handler/async_count.h"

#include <errno.h>
#include <unistd.h>

#include "os/perf.h"

int
wp_async_count_open(struct wp_async_count *fired, int fd)
{
	int err;

	*fired = (struct wp_async_count){.size = (size_t)sysconf(_SC_PAGESIZE)};
	err = wp_perf_map(fd, fired->size, &fired->ring);
	return err == -EPERM ? -ENOBUFS : err;
}

void
wp_async_count_close(struct wp_async_count *fired)
{
	if (fired->ring != NULL)
		wp_perf_unmap(fired->ring, fired->size);
	fired->ring = NULL;
}
