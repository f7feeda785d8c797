/* debuginfod: debug information from servers. */
#include "util/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "proc/regular_file.h"
#include "util/interrupt.h"

enum { PATIENCE_MS = 60000 };

/* --- the process that fetches --- */

typedef struct debuginfod_client client;

/* The functions of libdebuginfod that are called; the library may be
   missing. */
static struct {
	client *(*begin)(void);
	void (*set_progressfn)(client *, int (*)(client *, long, long));
	int (*find_debuginfo)(client *, const unsigned char *, int, char **);
} library;

static bool
load(void)
{
	static const struct {
		const char *name;
		void *at;
	} wanted[] = {
		{"debuginfod_begin", &library.begin},
		{"debuginfod_set_progressfn", &library.set_progressfn},
		{"debuginfod_find_debuginfo", &library.find_debuginfo},
	};
	void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW);

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *symbol = handle == NULL ? NULL :
		    dlsym(handle, wanted[i].name);

		if (symbol == NULL)
			return false;
		memcpy(wanted[i].at, &symbol, sizeof(symbol));
	}
	return true;
}

static int
show_progress(client *c, long done, long all)
{
	(void)c;
	if (isatty(STDERR_FILENO) == 1)
		(void)fprintf(stderr, "\rwatchctl: fetching debug information: "
		    "%ld of %ld bytes ", done, all);
	return 0;
}

int
debuginfod(const char *build_id)
{
	char *path = NULL;
	client *c;
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!load() || (c = library.begin()) == NULL)
		return EXIT_FAILURE;
	library.set_progressfn(c, show_progress);
	fd = library.find_debuginfo(c, (const unsigned char *)build_id, 0,
	    &path);
	if (isatty(STDERR_FILENO) == 1)
		(void)fputs("\r\033[K", stderr);
	if (fd >= 0)
		(void)printf("%s", path);
	if (fflush(stdout) != 0 || fd < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);	/* its libraries clean up slowly, or not */
}

/* --- the one that waits for it --- */

static pid_t
start(const char *build_id, int to)
{
	char *argv[] = {
		(char *)(uintptr_t)"watchctl", (char *)(uintptr_t)"debuginfod",
		(char *)(uintptr_t)build_id, NULL,
	};
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	(void)posix_spawn_file_actions_init(&actions);
	if (posix_spawn_file_actions_adddup2(&actions, to,
	    STDOUT_FILENO) != 0 || posix_spawn(&pid, "/proc/self/exe",
	    &actions, NULL, argv, environ) != 0)
		pid = -1;
	(void)posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* End the process that fetches.  Result: the file that it named, if any, or
   -errno. */
static int
end(struct debuginfod_fetch *fetch, bool whole)
{
	siginfo_t info;

	/* a process that has written everything ends by itself */
	(void)syscall(SYS_pidfd_send_signal, fetch->pidfd, SIGKILL, NULL, 0);
	(void)close(fetch->from);
	while (waitid(P_PIDFD, (id_t)fetch->pidfd, &info, WEXITED) < 0 &&
	    errno == EINTR)
		;
	(void)close(fetch->pidfd);
	fetch->begun = false;
	return !whole || *fetch->path == '\0' ? -ENOENT :
	    wp_open_regular(fetch->path);
}

int
debuginfod_begin(struct debuginfod_fetch *fetch, const char *build_id)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	int ends[2];
	pid_t pid;

	if (urls == NULL || *urls == '\0' || getauxval(AT_SECURE) != 0)
		return -ENOENT;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	pid = start(build_id, ends[1]);
	(void)close(ends[1]);
	*fetch = (struct debuginfod_fetch){
		.begun = true, .from = ends[0], .pidfd = pid < 0 ? -1 :
		    (int)syscall(SYS_pidfd_open, pid, 0),
		.until = wp_clock_ms() + PATIENCE_MS,
	};
	if (fetch->pidfd >= 0)
		return 0;
	(void)close(ends[0]);
	fetch->begun = false;
	if (pid > 0 && kill(pid, SIGKILL) == 0)
		(void)waitpid(pid, NULL, 0);
	return -ENOENT;
}

int
debuginfod_look(struct debuginfod_fetch *fetch)
{
	struct pollfd poll_set = {.fd = fetch->from, .events = POLLIN};
	const size_t room = sizeof(fetch->path) - 1;
	ssize_t n;

	while (fetch->len < room && poll(&poll_set, 1, 0) > 0) {
		n = read(fetch->from, fetch->path + fetch->len,
		    room - fetch->len);
		if (n <= 0)
			return end(fetch, true);
		fetch->len += (size_t)n;
	}
	return fetch->len == room || wp_clock_ms() >= fetch->until ||
	    interrupt_pending() ? end(fetch, false) : -EAGAIN;
}

void
debuginfod_abandon(struct debuginfod_fetch *fetch)
{
	if (fetch->begun)
		(void)end(fetch, false);
}
