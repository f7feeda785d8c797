/* debuginfod: debug information from servers. */
#include "util/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/regular_file.h"
#include "util/interrupt.h"

enum { PATIENCE_MS = 60000, LOOK_MS = 100 };

/* --- the process that fetches --- */

typedef struct debuginfod_client client;

/* What of libdebuginfod is called; there need be none. */
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

/* All that it writes, until it ends or there is a reason not to wait.  Result:
   how many bytes. */
static size_t
hear(int from, char *text, size_t size)
{
	struct pollfd poll_set = {.fd = from, .events = POLLIN};
	size_t len = 0;
	ssize_t n;

	for (int ms = 0; ms < PATIENCE_MS && !interrupt_pending() &&
	    len < size; ms += LOOK_MS) {
		while (len < size && poll(&poll_set, 1, LOOK_MS) > 0) {
			n = read(from, text + len, size - len);
			if (n <= 0)
				return len;
			len += (size_t)n;
		}
	}
	return 0;
}

int
debuginfod_fetch(const char *build_id)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char path[PATH_MAX] = "";
	int ends[2], status = -1;
	pid_t pid;

	if (urls == NULL || *urls == '\0' || getauxval(AT_SECURE) != 0)
		return -ENOENT;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	pid = start(build_id, ends[1]);
	(void)close(ends[1]);
	if (pid > 0 && hear(ends[0], path, sizeof(path) - 1) == 0)
		(void)kill(pid, SIGKILL);
	(void)close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status != 0 || *path == '\0' ? -ENOENT : wp_open_regular(path);
}
