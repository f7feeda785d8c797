/* perf_map: the file in which a process names code that it has generated. */
#include "proc/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc.h"

/* When a process started, in seconds of the real-time clock: field 22 of its
   stat file. */
static bool
began(pid_t pid, time_t *when)
{
	struct timespec boot, now;
	unsigned long long ticks;
	char text[1024];
	const char *at;

	if (wp_proc_text(pid, "stat", text, sizeof(text)) < 0 ||
	    (at = strrchr(text, ')')) == NULL ||
	    sscanf(at + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
	    "%*s %*s %*s %*s %*s %*s %*s %llu", &ticks) != 1 ||
	    clock_gettime(CLOCK_BOOTTIME, &boot) != 0 ||
	    clock_gettime(CLOCK_REALTIME, &now) != 0)
		return false;
	*when = now.tv_sec - boot.tv_sec +
	    (time_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK)) - 1;
	return true;
}

int
wp_perf_map_find(struct wp_perf_map *map, pid_t pid, int root)
{
	struct wp_proc_status status;

	*map = (struct wp_perf_map){.pid = pid, .root = root};
	if (wp_proc_status(pid, &status) != 0 || !began(pid, &map->began))
		return -ESRCH;
	map->uid = status.uid;
	(void)snprintf(map->name, sizeof(map->name), "perf-%d.map",
	    status.inner);
	return 0;
}

int
wp_perf_map_open(const struct wp_perf_map *map)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int dir = map->root < 0 ? open("/tmp", flags | O_DIRECTORY) :
	    openat(map->root, "tmp", flags | O_DIRECTORY);
	int place = dir < 0 ? -1 : openat(dir, map->name, flags);
	int fd = place < 0 ? -errno : -ESTALE;
	struct stat st;
	char link[32];

	if (place >= 0 && fstat(place, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == map->uid && st.st_mtime >= map->began) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	if (place >= 0)
		(void)close(place);
	if (dir >= 0)
		(void)close(dir);
	return fd;
}
