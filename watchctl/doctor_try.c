/*
 * doctor_try: tries each way of watching on a program, by running watchctl
 * itself.
 *
 * What is watched is this program again, which stores once (doctor_fire).  So
 * whatever a user's own run would meet is met here, and named in its words.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };	/* for a run to say something */

/* Its name is in the table of dynamic symbols, which no strip(1) removes. */
__attribute__((visibility("default"))) volatile long doctor_word;

_Noreturn void
doctor_fire(void)
{
	char c;

	(void)!read(STDIN_FILENO, &c, 1);
	doctor_word = 1;
	_exit(EXIT_SUCCESS);
}

/* Start this program, with descriptors as its standard ones.  Its pid or
   -errno. */
static pid_t
start(const char *const argv[], const int fd[3])
{
	posix_spawn_file_actions_t actions;
	int err = 0;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < 3 && err == 0; i++)
		err = posix_spawn_file_actions_adddup2(&actions, fd[i], i);
	if (err == 0)
		err = posix_spawn(&pid, argv[0], &actions, NULL,
		    (char **)(uintptr_t)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return err == 0 ? pid : -err;
}

/* The exit status of the run; it is killed if it has not ended. */
static int
await_end(pid_t pid, bool ended)
{
	int status = -1;

	if (!ended)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Collect a run's output up to its end.  When the run reports that it watches,
   close the descriptor that the target waits for (-1: none).  Result: whether
   the run ended. */
static bool
listen_to(int fd, int *go, struct buffer *said)
{
	struct pollfd p = {fd, POLLIN, 0};
	char text[4096];
	ssize_t n = -1;

	while (poll(&p, 1, PATIENCE_MS) > 0 &&
	    (n = read(fd, text, sizeof(text))) > 0) {
		buffer_put(said, text, (size_t)n);
		n = -1;
		if (*go >= 0 && strstr(buffer_text(said), "watching ") !=
		    NULL) {
			(void)close(*go);
			*go = -1;
		}
	}
	return n == 0;
}

/* The first line that watchctl wrote and that is no warning, into to. */
static bool
copy_refusal(const char *said, char *to, size_t size)
{
	static const char ours[] = "watchctl: ", warns[] = "watchctl: warning";

	for (const char *line = said; line != NULL && *line != '\0';
	    line = strchr(line, '\n'), line += line != NULL) {
		if (strncmp(line, ours, sizeof(ours) - 1) != 0 ||
		    strncmp(line, warns, sizeof(warns) - 1) == 0)
			continue;
		line += sizeof(ours) - 1;
		(void)snprintf(to, size, "%.*s", (int)strcspn(line, "\n"),
		    line);
		return true;
	}
	return false;
}

static void
judge(struct doctor_way *way, bool ended, int status, const char *said)
{
	way->ok = ended && status == 0 &&
	    strstr(said, "watchctl: 1 hit, 1 reported, 0 lost\n") != NULL;
	if (way->ok)
		(void)snprintf(way->detail, sizeof(way->detail), "a store of a "
		    "program that %s: one hit, explained",
		    way->attach ? "runs" : "was started");
	else if (!ended)
		(void)snprintf(way->detail, sizeof(way->detail), "a run to "
		    "try it did not end");
	else if (!copy_refusal(said, way->detail, sizeof(way->detail)))
		(void)snprintf(way->detail, sizeof(way->detail), "a run to "
		    "try it ended with %s %d", WIFSIGNALED(status) ? "signal" :
		    "status", WIFSIGNALED(status) ? WTERMSIG(status) :
		    WEXITSTATUS(status));
}

/* Make the run, with its output in a pipe; go: the descriptor to be closed when
   it watches. */
static void
try_run(struct doctor_way *way, const char *const argv[], int null, int *go)
{
	struct buffer said = {0};
	int out[2], status;
	bool ended;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) != 0) {
		(void)snprintf(way->detail, sizeof(way->detail), "pipe: %s",
		    strerror(errno));
		return;
	}
	pid = start(argv, (const int []){null, out[1], out[1]});
	(void)close(out[1]);
	if (pid > 0) {
		ended = listen_to(out[0], go, &said);
		status = await_end(pid, ended);
		judge(way, ended, status, buffer_text(&said));
	} else {
		(void)snprintf(way->detail, sizeof(way->detail),
		    "%s cannot be started: %s", argv[0], strerror(-pid));
	}
	buffer_free(&said);
	(void)close(out[0]);
}

/* On a program that is started by the run. */
static void
try_command(struct doctor_way *way, const char *program, int null)
{
	const char *const argv[] = {
		program, way->name, "-w", "doctor_word", "--", program,
		"doctor", "--fire", NULL,
	};
	int none = -1;

	try_run(way, argv, null, &none);
}

/* On one that is there, and waits for the end of a pipe. */
static void
try_attach(struct doctor_way *way, const char *program, int null)
{
	const char *const fire[] = {program, "doctor", "--fire", NULL};
	char number[16];
	const char *const argv[] = {
		program, "-w", "doctor_word", "-n", "1", "-p", number, NULL,
	};
	int in[2];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) != 0)
		return;
	pid = start(fire, (const int []){in[0], null, null});
	(void)close(in[0]);
	(void)snprintf(number, sizeof(number), "%d", pid);
	if (pid > 0)
		try_run(way, argv, null, &in[1]);
	if (in[1] >= 0)
		(void)close(in[1]);
	if (pid > 0)
		(void)await_end(pid, false);
}

void
doctor_try(struct doctor_way *way, const char *program)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)snprintf(way->detail, sizeof(way->detail), "it could not be "
	    "tried");
	if (way->attach)
		try_attach(way, program, null);
	else
		try_command(way, program, null);
	(void)close(null);
}
