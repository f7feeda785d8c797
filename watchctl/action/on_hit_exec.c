/*
 * on_hit_exec: runs a shell command at a hit.
 *
 * The command gets a process group of its own, so that everything it started
 * can be ended with it, and so that a terminal's signals go to watchctl, which
 * passes them on.
 */
#include "action/on_hit_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/environment.h"
#include "util/interrupt.h"
#include "util/visible.h"

enum { LEAVE_MS = 1000 };	/* ms between SIGTERM and SIGKILL */

static const char prefix[] = ENVIRONMENT_PREFIX;

/* The command's environment: ours without variables of an outer watchctl,
   followed by those of the hit. */
struct exec_environment {
	char **all;	/* NULL-terminated; the strings belong to others */
	char *own[ENVIRONMENT_MAX];	/* nown allocated strings */
	size_t nown;
};

/* Whether a text is a variable of a hit, without control characters. */
static bool
is_variable(const char *text, size_t len)
{
	const size_t name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

	return len < ENVIRONMENT_TEXT_MAX && text[name] == '=' &&
	    strncmp(text, prefix, sizeof(prefix) - 1) == 0 &&
	    strchr(text, '\n') == NULL && visible_is_harmless(text, len, false);
}

static void
set_text(struct exec_environment *e, const char *text)
{
	char *copy = e->nown < ENVIRONMENT_MAX &&
	    is_variable(text, strlen(text)) ? strdup(text) : NULL;

	if (copy != NULL)
		e->own[e->nown++] = copy;
}

__attribute__((format(printf, 2, 3)))
static void
set(struct exec_environment *e, const char *format, ...)
{
	char text[64];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	set_text(e, text);
}

/* Set what is known of a hit that has not been explained yet. */
static void
set_plain(struct exec_environment *e, const struct on_hit_at *at)
{
	set(e, "WATCHCTL_PID=%d", (int)at->pid);
	set(e, "WATCHCTL_TID=%d", (int)at->tid);
	if (at->addr != 0)
		set(e, "WATCHCTL_ADDR=0x%" PRIx64, at->addr);
}

static void
set_hit(struct exec_environment *e, const struct on_hit_at *at)
{
	const char *text = at->environment;

	if (at->len == 0 || text[at->len - 1] != '\0')
		set_plain(e, at);
	else
		for (size_t i = 0; i < at->len; i += strlen(text + i) + 1)
			set_text(e, text + i);
}

/* Returns 0 or -ENOMEM. */
static int
join(struct exec_environment *e)
{
	size_t n = 0, all = 0;

	while (environ[n] != NULL)
		n++;
	e->all = calloc(n + e->nown + 1, sizeof(*e->all));
	if (e->all == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], prefix, sizeof(prefix) - 1) != 0)
			e->all[all++] = environ[i];
	memcpy(e->all + all, e->own, e->nown * sizeof(*e->all));
	return 0;
}

static void
environment_free(struct exec_environment *e)
{
	for (size_t i = 0; i < e->nown; i++)
		free(e->own[i]);
	free(e->all);
}

/* Start the command with default signals.  Returns 0 or -errno. */
static int
spawn(const char *command, char **env, pid_t *pid)
{
	char *argv[] = {
		(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c",
		(char *)(uintptr_t)command, NULL,
	};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, ignored;
	int err;

	/* libraries may have opened descriptors without O_CLOEXEC */
	(void)close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	(void)sigemptyset(&none);
	ignored = none;
	(void)sigaddset(&ignored, SIGPIPE);
	(void)sigaddset(&ignored, SIGXFSZ);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
	    POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &ignored);
	(void)posix_spawn_file_actions_init(&files);
	err = posix_spawn_file_actions_addopen(&files, STDIN_FILENO,
	    "/dev/null", O_RDONLY, 0);
	if (err == 0)
		err = posix_spawn_file_actions_adddup2(&files, STDERR_FILENO,
		    STDOUT_FILENO);
	if (err == 0)
		err = posix_spawn(pid, "/bin/sh", &files, &attr, argv, env);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)posix_spawnattr_destroy(&attr);
	return -err;
}

/* Wait for the process to end (returns 0), for a signal to watchctl, or for
   this many ms. */
static int
await_end(int process, int signals, int ms)
{
	struct pollfd wait[] = {
		{.fd = process, .events = POLLIN},
		{.fd = signals, .events = POLLIN},
	};

	while (poll(wait, 2, ms) < 0 && errno == EINTR)
		;
	return wait[0].revents != 0 ? 0 : wait[1].revents != 0 ? -EINTR :
	    -ETIMEDOUT;
}

/* Returns 0, or why the process was ended. */
static int
await(pid_t pid, int ms, int *status)
{
	const int process = pidfd_open(pid, 0);
	sigset_t ending;
	int signals, err = 0;

	interrupt_signals(&ending);
	signals = signalfd(-1, &ending, SFD_CLOEXEC);
	if (process >= 0 && signals >= 0 &&
	    (err = await_end(process, signals, ms > 0 ? ms : -1)) < 0) {
		(void)kill(-pid, SIGTERM);
		if (await_end(process, -1, LEAVE_MS) < 0)
			(void)kill(-pid, SIGKILL);
	}
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	(void)close(process);
	(void)close(signals);
	return err;
}

int
on_hit_exec(const char *command, const struct on_hit_at *at, int ms,
    int *status)
{
	struct exec_environment e = {0};
	pid_t pid = -1;
	int err;

	set_hit(&e, at);
	if ((err = join(&e)) == 0)
		err = spawn(command, e.all, &pid);
	environment_free(&e);
	return err < 0 ? err : await(pid, ms, status);
}
