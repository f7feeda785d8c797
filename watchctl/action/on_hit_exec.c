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
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/change.h"
#include "util/interrupt.h"
#include "util/visible.h"

enum {
	OWN_MAX = 32,		/* variables */
	TEXT_MAX = 128 << 10,	/* bytes that execve(2) takes in one */
	LEAVE_MS = 1000,	/* between SIGTERM and SIGKILL */
};

static const char prefix[] = "WATCHCTL_";

/* The environment of the command: ours without what an outer watchctl set, and
   then the hit's. */
struct environment {
	char **all;		/* NULL-terminated, of strings of others */
	char *own[OWN_MAX];	/* nown of them, malloc'd */
	size_t nown;
};

/* NULL and "" are not known, and not set. */
static void
set_text(struct environment *e, const char *name, const char *text)
{
	struct buffer b = {0};

	if (text == NULL || *text == '\0')
		return;
	buffer_puts(&b, prefix);
	buffer_puts(&b, name);
	buffer_puts(&b, "=");
	visible_put(&b, text);
	buffer_put(&b, "", 1);
	if (b.failed || b.len > TEXT_MAX || e->nown == OWN_MAX)
		buffer_free(&b);
	else
		e->own[e->nown++] = b.bytes;
}

static void
set_dec(struct environment *e, const char *name, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	set_text(e, name, text);
}

static void
set_hex(struct environment *e, const char *name, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, n);
	set_text(e, name, text);
}

static void
set_value(struct environment *e, const char *name, const struct ex_hit *hit,
    const struct ex_value *value)
{
	struct buffer b = {0};

	change_put_hex(&b, hit, value);
	set_text(e, name, buffer_text(&b));
	buffer_free(&b);
}

/* What the touched bytes held. */
static void
set_change(struct environment *e, const struct ex_hit *hit)
{
	if (hit->change.has_old)
		set_value(e, "OLD", hit, &hit->old);
	if (hit->change.has_new)
		set_value(e, "NEW", hit, &hit->new);
}

/* The innermost frame of the program itself: of the instruction, or of the
   system call. */
static void
set_place(struct environment *e, const struct ex_hit *hit)
{
	const struct ex_stack *stack = hit->stack;
	unsigned i = 0;

	while (stack != NULL && i < stack->n && stack->frame[i].kernel)
		i++;
	if (stack == NULL || i == stack->n) {
		set_hex(e, "PC", hit->pc);
		return;
	}
	set_hex(e, "PC", stack->frame[i].pc);
	set_text(e, "FUNCTION", stack->frame[i].function);
	set_text(e, "FILE", stack->frame[i].file);
	if (stack->frame[i].line > 0)
		set_dec(e, "LINE", (uint64_t)stack->frame[i].line);
	if (stack->frame[i].module != NULL)
		set_text(e, "MODULE", ex_module_path(stack->frame[i].module));
}

/* The hit as -o json has it, without the newline. */
static void
set_json(struct environment *e, const struct session *s,
    const struct ex_hit *hit)
{
	struct report report = {.ops = &report_json};
	char *text = NULL;
	size_t len = 0, start;

	report.out = open_memstream(&text, &len);
	if (report.out == NULL)
		return;
	if (report_json.start(&report, &s->report.begin) == 0) {
		start = len;
		if (report_json.hit(&report, hit) == 0 &&
		    report_json.flush(&report) == 0 && len > start) {
			text[len - 1] = '\0';
			set_text(e, "HIT", text + start);
		}
		(void)report_json.end(&report, NULL);
	}
	(void)fclose(report.out);
	free(text);
}

static void
set_hit(struct environment *e, const struct session *s,
    const struct ex_hit *hit)
{
	set_dec(e, "SEQ", hit->seq);
	set_dec(e, "PID", (uint64_t)hit->pid);
	set_dec(e, "TID", (uint64_t)hit->tid);
	set_text(e, "COMM", hit->comm);
	set_text(e, "WATCH", hit->watch->spec);
	set_hex(e, "ADDR", hit->addr);
	if (hit->len > 0)
		set_dec(e, "LEN", hit->len);
	set_text(e, "ACCESS", hit->access);
	set_text(e, "ORIGIN", hit->kernel ? "kernel" : "user");
	if (hit->kernel)
		set_text(e, "SYSCALL", hit->call.name);
	set_place(e, hit);
	set_change(e, hit);
	set_json(e, s, hit);
}

/* 0 or -ENOMEM. */
static int
join(struct environment *e)
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
environment_free(struct environment *e)
{
	for (size_t i = 0; i < e->nown; i++)
		free(e->own[i]);
	free(e->all);
}

/* Start the command with the signals as programs expect them.  0 or -errno. */
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

	/* code that reads debug information may not have considered commands */
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

/* Wait until the process ends (0), or a signal for watchctl arrives, or this
   many ms have passed. */
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

/* 0, or why it was made to end. */
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
on_hit_exec(const char *command, const struct session *s,
    const struct ex_hit *hit, int ms, int *status)
{
	struct environment e = {0};
	pid_t pid = -1;
	int err;

	set_hit(&e, s, hit);
	if ((err = join(&e)) == 0)
		err = spawn(command, e.all, &pid);
	environment_free(&e);
	return err < 0 ? err : await(pid, ms, status);
}
