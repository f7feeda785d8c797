/* command: programs started by a test, and what they said. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static _Noreturn void
become(const char *const argv[], bool (*prepare)(int what), int what)
{
	if (prepare != NULL && !prepare(what))
		_exit(UNPREPARED);
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	(void)fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

size_t
append(const char *argv[ARGS], size_t n, const char *const *more)
{
	for (; *more != NULL; more++) {
		assert_true(n < ARGS - 1);
		argv[n++] = *more;
	}
	argv[n] = NULL;
	return n;
}

void
start(struct running *r, const char *const argv[])
{
	start_prepared(r, argv, NULL, 0);
}

void
start_prepared(struct running *r, const char *const argv[],
    bool (*prepare)(int what), int what)
{
	int in[2], out[2], err[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)dup2(err[1], 2);
		become(argv, prepare, what);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	(void)close(err[1]);
	r->in = in[1];
	r->out = out[0];
	r->err = err[0];
}

void
say(struct running *r, const char *text)
{
	assert_int_equal(write(r->in, text, strlen(text)), strlen(text));
}

/* What the kernel says of a process in a file of /proc, its first lines. */
static const char *
state_of(pid_t pid, const char *name, char text[256])
{
	char path[64];
	FILE *file;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	if ((file = fopen(path, "r")) != NULL) {
		n = fread(text, 1, 255, file);
		(void)fclose(file);
	}
	text[n] = '\0';
	return text;
}

/* It says nothing: what it does instead. */
static void
fail_silent(const struct running *r, const char *heard)
{
	char status[256], wchan[256], call[256];

	fail_msg("process %d says no more than \"%s\" for %d s\n"
	    "waits in %s, system call %s%s", (int)r->pid, heard,
	    COMMAND_PATIENCE_MS / 1000, state_of(r->pid, "wchan", wchan),
	    state_of(r->pid, "syscall", call),
	    state_of(r->pid, "status", status));
}

void
hear(struct running *r, char *line, size_t size)
{
	struct pollfd p = {r->out, POLLIN, 0};
	size_t n = 0;
	int ready = 1;

	while (n < size - 1 &&
	    (ready = poll(&p, 1, COMMAND_PATIENCE_MS)) > 0 &&
	    read(r->out, &line[n], 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	if (ready == 0)
		fail_silent(r, line);
}

/* Append what a descriptor has; false at its end. */
static bool
drain(int fd, char **text, size_t *len)
{
	char *more = realloc(*text, *len + 65536 + 1);
	ssize_t n;

	assert_non_null(more);
	*text = more;
	n = read(fd, more + *len, 65536);
	*len += n > 0 ? (size_t)n : 0;
	more[*len] = '\0';
	return n > 0;
}

/* Not larger than it has to be, until the test ends. */
static char *
kept_text(char *text, size_t len)
{
	char *smaller = realloc(text, len + 1);

	test_frees(smaller, free);
	return smaller;
}

static void
collect(struct running *r, struct outcome *o)
{
	struct pollfd p[] = {{r->out, POLLIN, 0}, {r->err, POLLIN, 0}};
	size_t nout = 0, nerr = 0;

	o->out = calloc(1, 1);
	o->err = calloc(1, 1);
	while ((p[0].fd >= 0 || p[1].fd >= 0) && poll(p, 2, -1) > 0) {
		if (p[0].revents != 0 && !drain(r->out, &o->out, &nout))
			p[0].fd = -1;
		if (p[1].revents != 0 && !drain(r->err, &o->err, &nerr))
			p[1].fd = -1;
	}
	o->out = kept_text(o->out, nout);
	o->err = kept_text(o->err, nerr);
}

TEST_KEEPS(kept, json_t *, json_decref)

json_t *
json_lines(const char *text)
{
	json_t *lines = kept(json_array());

	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		json_t *line = json_loadb(text, len, 0, NULL);

		if (line == NULL || json_array_append_new(lines, line) != 0)
			return NULL;
		text += len + (text[len] == '\n');
	}
	return lines;
}

static int
reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}

static void
hang_up(struct running *r)
{
	if (r->in >= 0)
		(void)close(r->in);
	r->in = -1;
}

void
finish(struct running *r, struct outcome *o)
{
	hang_up(r);
	collect(r, o);
	(void)close(r->out);
	(void)close(r->err);
	o->status = reap(r->pid);
	o->report = NULL;
	o->lines = json_lines(o->out);
}

bool
status_is(const struct outcome *o, int status)
{
	if (o->status != status)
		print_error("status %d, not %d: %s%s\n", o->status, status,
		    report_of(o), o->err);
	return o->status == status;
}

void
end(struct running *r)
{
	hang_up(r);
	(void)kill(r->pid, SIGKILL);
	(void)reap(r->pid);
	(void)close(r->out);
	(void)close(r->err);
}

void
run(struct outcome *o, const char *const argv[])
{
	struct running r;

	start(&r, argv);
	finish(&r, o);
}

void
outcome_take(struct outcome *o, const char *path)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;

	assert_non_null(file);
	o->report = NULL;
	if (getdelim(&o->report, &size, '\0', file) < 0)
		o->report[0] = '\0';	/* it is empty */
	(void)fclose(file);
	test_frees(o->report, free);
	o->lines = json_lines(o->report);
}

const char *
report_of(const struct outcome *o)
{
	return o->report == NULL ? o->out : o->report;
}

const char *
watchctl(void)
{
	const char *path = getenv("WATCHCTL");

	assert_non_null(path);
	return path;
}

const char *
victim(const char *name)
{
	static char path[8][512];
	static unsigned turn;
	const char *dir = getenv("VICTIMS");
	char *to = path[turn++ % 8];

	assert_non_null(dir);
	(void)snprintf(to, sizeof(path[0]), "%s/%s", dir, name);
	return to;
}

/* Whether execve(2) takes it; none of its code is run. */
static bool
is_executable(const char *path)
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
			(void)execl(path, path, NULL);
		_exit(errno);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFEXITED(status)) {
		print_message("%s: %s\n", path, strerror(WEXITSTATUS(status)));
		return false;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return true;
}

void
skip_unless_narrow_runs(const char *path)
{
	if (access(path, X_OK) != 0)
		print_message("cc -m32 makes no programs here\n");
	else if (is_executable(path))
		return;
	skip();
}

void
hear_address(struct running *r, char address[32])
{
	char line[256];

	hear(r, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %*d %*s %31s", address), 1);
}

json_t *
first_of(const struct outcome *o, const char *type)
{
	size_t i;
	json_t *line;

	assert_non_null(o->lines);
	json_array_foreach(o->lines, i, line) {
		if (strcmp(text_of(line, "type"), type) == 0)
			return line;
	}
	return NULL;
}

size_t
count_of(const struct outcome *o, const char *type)
{
	size_t i, n = 0;
	json_t *line;

	assert_non_null(o->lines);
	json_array_foreach(o->lines, i, line)
		n += strcmp(text_of(line, "type"), type) == 0;
	return n;
}

/* cmocka's messages have no room for a whole hit. */
static void
fail_without(const json_t *object, const char *what, const char *key)
{
	(void)json_dumpf(object, stderr, JSON_ENCODE_ANY);
	fail_msg("no %s \"%s\"", what, key);
}

const char *
text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		fail_without(object, "text", key);
	return json_string_value(value);
}

json_int_t
number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_without(object, "whole number", key);
	return json_integer_value(value);
}

void
await(int fd, const char *text)
{
	struct pollfd p = {fd, POLLIN, 0};
	char seen[65536];
	size_t n = 0;

	while (n < sizeof(seen) - 1 && poll(&p, 1, COMMAND_PATIENCE_MS) > 0 &&
	    read(fd, &seen[n], 1) == 1) {
		seen[++n] = '\0';
		if (seen[n - 1] == '\n' && strstr(seen, text) != NULL)
			return;
	}
	seen[n] = '\0';
	fail_msg("waited for \"%s\", got \"%s\"", text, seen);
}
