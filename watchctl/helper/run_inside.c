/*
 * run_inside: `watchctl --inside`.
 *
 * Overview: check that the command can load the library; make the channel;
 * start the command as its parent would have, except for variables that the
 * library removes from its environment (preload.c):
 *
 *	LD_PRELOAD		the library, before what is there
 *	WATCHPOINT_CHANNEL	where the channel is
 *	WATCHPOINT_WATCH	the SPECs
 *	WATCHPOINT_PAD		nothing, so that an even number is removed
 *
 * The library asks what the SPECs mean, arms the watches, and lets the program
 * begin.
 */
#include "helper/run_inside.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "watch/aslr.h"
#include "util/buffer.h"
#include "os/cause.h"
#include "util/complain.h"
#include "util/executable.h"
#include "watch/fire_check.h"
#include "helper/serve.h"

#ifndef LIBDIR
#define LIBDIR "/usr/local/lib"
#endif
#define LIBRARY "libwatchpoint.so.0"

/* What the signal handlers need. */
static struct {
	volatile pid_t command;		/* 0: not started yet */
	struct wp_channel *volatile channel;
} handlers;

/* Where the library is: where the user says it is, beside this program as
   installed or as built, or where it is to be installed.  0 or -ENOENT. */
static int
find_library(char path[PATH_MAX])
{
	static const char *const beside[] = {
		"../lib/" LIBRARY, "../lib/watchpoint/" LIBRARY,
	};
	const char *named = getenv("WATCHPOINT_LIBRARY");

	if (named != NULL && *named != '\0')
		return realpath(named, path) == NULL ? -ENOENT : 0;
	return executable_companion(beside, sizeof(beside) / sizeof(beside[0]),
	    LIBDIR "/" LIBRARY, path);
}

static int
check_library(char path[PATH_MAX])
{
	if (find_library(path) < 0)
		return complain("--inside needs " LIBRARY ", which is not "
		    "beside watchctl nor in " LIBDIR ": install it, or name it "
		    "in WATCHPOINT_LIBRARY");
	if (strpbrk(path, " :") != NULL)
		return complain("%s: the dynamic loader takes no library whose "
		    "path has a space or ':' in it", path);
	return 0;
}

/* Whether the command can be started and take the library.  0, or the exit
   status after a line on stderr. */
static int
check_command(const char *command)
{
	char path[PATH_MAX];
	struct wp_cause cause;

	switch (executable_find(command, path)) {
	case -ENOENT:
		(void)wp_cause_set(&cause, WP_CAUSE_NOT_FOUND, command);
		(void)complain("%s", cause.text);
		return STATUS_NOT_FOUND;
	case -EACCES:
		(void)wp_cause_set(&cause, WP_CAUSE_NOT_EXECUTABLE, command,
		    "no permission, or not a program");
		(void)complain("%s", cause.text);
		return STATUS_NOT_EXECUTABLE;
	default:
		return executable_check(path) < 0 ? STATUS_OWN_FAILURE : 0;
	}
}

/* Put the library in front of what the command is to preload anyway. */
static int
set_preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	struct buffer b = {0};
	int err = 0;

	buffer_puts(&b, library);
	if (others != NULL && *others != '\0')
		buffer_printf(&b, ":%s", others);
	else
		err = setenv("WATCHPOINT_PAD", "", 1);
	if (err == 0)
		err = setenv("LD_PRELOAD", buffer_text(&b), 1);
	buffer_free(&b);
	return err;
}

/* A line for each SPEC, as serve_resolve takes them. */
static int
set_watches(const struct options *o)
{
	struct buffer b = {0};
	int err = 0;

	for (size_t i = 0; i < o->nspecs && err == 0; i++) {
		if (strchr(o->spec[i].text, '\n') != NULL)
			err = complain("'%s': no symbol has a newline in its "
			    "name", o->spec[i].text);
		buffer_printf(&b, "%c%s%s:%s\n", o->spec[i].access,
		    o->user_only ? "u" : "", o->follow ? "f" : "",
		    o->spec[i].text);
	}
	if (err == 0 && (b.len >= WP_TEXT_MAX || o->nspecs > WP_REGIONS_MAX))
		err = complain("with --inside at most %d SPECs, of %d bytes "
		    "together", WP_REGIONS_MAX, WP_TEXT_MAX);
	if (err == 0 && setenv("WATCHPOINT_WATCH", buffer_text(&b), 1) != 0)
		err = complain("out of memory");
	buffer_free(&b);
	return err;
}

static int
set_environment(const struct options *o, const char *library, int fd)
{
	char channel[64];

	(void)snprintf(channel, sizeof(channel), "/proc/%d/fd/%d", getpid(),
	    fd);
	if (set_watches(o) < 0)
		return -EINVAL;
	if (set_preload(library) != 0 ||
	    setenv("WATCHPOINT_CHANNEL", channel, 1) != 0)
		return complain("out of memory");
	return 0;
}

/* Signals of the terminal reach the command by themselves; others are meant for
   it.  What else there is, is to be looked at. */
static void
on_signal(int sig)
{
	int saved = errno;
	pid_t command = handlers.command;

	if ((sig == SIGTERM || sig == SIGHUP) && command > 0)
		(void)kill(command, sig);
	if (handlers.channel != NULL)
		wp_channel_ring(handlers.channel);
	errno = saved;
}

/* Handlers, since the command would inherit what is ignored.  What is ignored
   already stays so, for both. */
static void
catch_signals(struct wp_channel *channel)
{
	static const int caught[] = {
		SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGCHLD,
	};
	struct sigaction old, action = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART,
	};

	handlers.channel = channel;
	(void)sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		if (sigaction(caught[i], NULL, &old) == 0 &&
		    (old.sa_handler != SIG_IGN || caught[i] == SIGCHLD))
			(void)sigaction(caught[i], &action, NULL);
}

/* Once the command runs: other children do not get the library.  What the user
   had preloaded is behind it. */
static void
restore_preload(void)
{
	const char *all = getenv("LD_PRELOAD");
	const char *others = all == NULL ? NULL : strchr(all, ':');
	char *copy = others == NULL ? NULL : strdup(others + 1);

	(void)unsetenv("LD_PRELOAD");
	if (copy != NULL)
		(void)setenv("LD_PRELOAD", copy, 1);
	free(copy);
}

/* Start the command.  0, or the exit status after a line on stderr. */
static int
launch(const struct options *o, pid_t *pid)
{
	char *const *argv = o->command;
	struct wp_cause cause;
	int err, before = aslr_begin(o);

	if (before < 0)
		return STATUS_OWN_FAILURE;
	err = posix_spawnp(pid, argv[0], NULL, NULL, argv, environ);
	restore_preload();
	aslr_end(before);
	if (err == 0) {
		handlers.command = *pid;
		return 0;
	}
	if (err == ENOENT)	/* the command itself is there */
		(void)wp_cause_set(&cause, WP_CAUSE_NO_INTERPRETER, argv[0]);
	else
		(void)wp_cause_set(&cause, WP_CAUSE_NOT_EXECUTABLE, argv[0],
		    err == ENOEXEC ? "not in a format that the kernel runs" :
		    strerror(err));
	(void)complain("%s", cause.text);
	return err == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

static int
wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_OWN_FAILURE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}

/* Close the account of a command that has ended.  Result: the exit status. */
static int
finish(struct serve *serve)
{
	struct session *s = &serve->session;
	int status = wait_for(serve->root->pid);

	if (serve->refused)
		return STATUS_OWN_FAILURE;
	if (!serve->root->armed) {
		session_doubt(s, "the command never began to watch itself");
		if (serve->options->error_status == 0)
			return complain("%s: ended with status %d without "
			    "having loaded " LIBRARY ": it was not watched",
			    serve->options->command[0], status),
			    STATUS_OWN_FAILURE;
	}
	session_uptime(s, &serve->uptime);
	return session_end(s, serve->reason == NULL ? "exit" : serve->reason,
	    status, NULL);
}

/* With a session, a channel and an environment: run the command. */
static int
run(struct serve *serve, struct wp_channel *channel, int fd)
{
	pid_t pid;
	int status;

	catch_signals(channel);
	if ((status = launch(serve->options, &pid)) != 0)
		return status;
	if (session_first_process(&serve->session, pid) < 0 ||
	    serve_open(serve, serve->options->argv, channel, fd, pid) < 0) {
		(void)kill(pid, SIGKILL);
		(void)wait_for(pid);
		return STATUS_OWN_FAILURE;
	}
	serve_channel(serve);
	return finish(serve);
}

static int
run_on_channel(struct serve *serve, const char *library)
{
	const struct options *o = serve->options;
	struct wp_channel *channel;
	int err, fd = wp_channel_make(o->stack), status = STATUS_OWN_FAILURE;

	if (fd < 0)
		return complain_errno(-fd, "memory to share with the "
		    "command"), status;
	if ((err = wp_channel_map(fd, &channel)) < 0) {
		(void)complain_errno(-err, "memory to share with the command");
	} else {
		if (set_environment(o, library, fd) == 0 &&
		    session_open(&serve->session, o, stderr) == 0)
			status = run(serve, channel, fd);
		serve_close(serve);
		handlers.channel = NULL;
		wp_channel_unmap(channel);
	}
	(void)close(fd);
	return status;
}

int
run_inside(const struct options *options)
{
	struct serve serve = {.options = options, .ours = true};
	char library[PATH_MAX];
	int status = check_command(options->command[0]);

	if (status != 0)
		return status;
	/* where events are refused, the library has debug registers set */
	if (check_library(library) < 0 || fire_check_try(false) < 0)
		return STATUS_OWN_FAILURE;
	return run_on_channel(&serve, library);
}
