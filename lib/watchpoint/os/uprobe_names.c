/* uprobe_names: see uprobe_names.h. */
#include "os/uprobe_names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/perf.h"
#include "os/tracepoint.h"

#define GROUP "watchctl"

enum { COMMAND_MAX = 128 };

static unsigned made;		/* names of this process so far */

/* --- commands --- */

static int
open_commands(int flags)
{
	char path[WP_TRACEFS_PATH];
	int fd = -ENOENT;

	for (unsigned i = 0; fd < 0 && wp_tracefs_path(path, i,
	    "uprobe_events"); i++)
		if ((fd = open(path, flags | O_CLOEXEC)) < 0)
			fd = -errno;
	return fd;
}

/* One write is one command. */
static int
say(int fd, const char *command)
{
	return write(fd, command, strlen(command)) < 0 ? -errno : 0;
}

static int
remove_name(int fd, long pid, unsigned number)
{
	char command[COMMAND_MAX];

	(void)snprintf(command, sizeof(command), "-:" GROUP "/p%ld_%u\n", pid,
	    number);
	return say(fd, command);
}

/* The kernel keeps those that have events. */
static void
remove_stale(int fd)
{
	const int list = open_commands(O_RDONLY);
	FILE *f = list < 0 ? NULL : fdopen(list, "r");
	struct { long pid; unsigned number; } stale[256];
	size_t n = 0, size = 0;
	char *line = NULL;

	/* while names are removed, reading on would skip others */
	while (f != NULL && n < sizeof(stale) / sizeof(stale[0]) &&
	    getline(&line, &size, f) > 0)
		n += sscanf(line, "p:" GROUP "/p%ld_%u ", &stale[n].pid,
		    &stale[n].number) == 2;
	free(line);
	if (f != NULL)
		(void)fclose(f);
	else if (list >= 0)
		(void)close(list);
	for (size_t i = 0; i < n; i++)
		(void)remove_name(fd, stale[i].pid, stale[i].number);
}

/* --- whether there are any --- */

static const char *
find_why_not(void)
{
	const int fd = open_commands(O_WRONLY | O_APPEND);
	struct perf_event_attr attr;
	int event;

	if (fd == -ENOENT)
		return "follow the children of -f only where tracefs is "
		    "mounted: mount -t tracefs nodev /sys/kernel/tracing";
	if (fd < 0)
		return "follow the children of -f only where tracefs can be "
		    "written to: run as root (sudo)";
	(void)close(fd);
	wp_attr_named(&attr, 0, true);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	if ((event = wp_perf_open(&attr, 0, -1)) == -EINVAL)
		return "lose hits in the children of -f on this kernel: it "
		    "cannot keep inherited events (PERF_SAMPLE_READ) apart";
	if (event >= 0)
		(void)close(event);
	return NULL;
}

const char *
wp_uprobe_names_why_not(void)
{
	static bool known;
	static const char *why;

	if (!known)
		why = find_why_not();
	known = true;
	return why;
}

/* --- names --- */

/* Add one; the file is whatever the link leads to. */
static int
add(struct wp_uprobe_name *name, int fd, int file, uint64_t offset)
{
	char command[COMMAND_MAX], path[COMMAND_MAX];
	struct wp_tracepoint found;
	int err;

	(void)snprintf(command, sizeof(command), "p:" GROUP "/p%ld_%u "
	    "/proc/self/fd/%d:%#" PRIx64 "\n", (long)getpid(), name->number,
	    file, offset);
	if ((err = say(fd, command)) < 0)
		return err;
	(void)snprintf(path, sizeof(path), GROUP "/p%ld_%u", (long)getpid(),
	    name->number);
	if ((err = wp_tracepoint_find(&found, path, "common_pid")) == 0)
		name->id = found.id;
	return err;
}

static int
open_named(const struct wp_uprobe_name *name, bool inherit, pid_t tid)
{
	struct perf_event_attr attr;

	wp_attr_named(&attr, name->id, inherit);
	return wp_perf_open(&attr, tid, -1);
}

int
wp_uprobe_name_open(struct wp_uprobe_name *name, int file, uint64_t offset)
{
	const int fd = open_commands(O_WRONLY | O_APPEND);
	int event;

	if (fd < 0)
		return fd;
	(void)flock(fd, LOCK_EX);
	if (made == 0)
		remove_stale(fd);
	name->number = made++;
	event = add(name, fd, file, offset);
	if (event == 0 && (event = open_named(name, false, 0)) < 0)
		(void)remove_name(fd, getpid(), name->number);
	(void)close(fd);	/* which unlocks it */
	return event;
}

int
wp_uprobe_name_follow(const struct wp_uprobe_name *name, pid_t tid)
{
	return open_named(name, true, tid);
}

void
wp_uprobe_name_remove(unsigned number)
{
	const int fd = open_commands(O_WRONLY | O_APPEND);

	if (fd < 0)
		return;
	(void)remove_name(fd, getpid(), number);
	(void)close(fd);
}
