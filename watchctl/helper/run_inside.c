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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/buffer.h"
#include "util/complain.h"
#include "util/executable.h"
#include "watch/fire_check.h"
#include "helper/preloaded.h"
#include "helper/serve.h"

#define LIBRARY "libwatchpoint.so.0"

#ifndef LIBDIR
#define LIBDIR "/usr/local/lib"
#endif
#ifndef LIBDIR_NARROW
#define LIBDIR_NARROW "/usr/local/lib/i386-linux-gnu"
#endif

static const struct preloaded_library library = {
	.option = "--inside", .name = LIBRARY,
	.beside = {"../lib/" LIBRARY, "../lib/watchpoint/" LIBRARY},
	.installed = LIBDIR "/" LIBRARY, .variable = "WATCHPOINT_LIBRARY",
};

static const struct preloaded_library narrow_library = {
	.option = "--inside", .name = LIBRARY " for 32-bit programs",
	.beside = {"../lib/i386-linux-gnu/" LIBRARY, "../lib/narrow/" LIBRARY},
	.installed = LIBDIR_NARROW "/" LIBRARY,
	.variable = "WATCHPOINT_LIBRARY",
};

/* One line for each SPEC, as serve_resolve expects them. */
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

/* Makes the number of variables that will be removed even. */
static int
set_pad(void)
{
	const char *others = getenv("LD_PRELOAD");

	return others != NULL && *others != '\0' ? 0 :
	    setenv("WATCHPOINT_PAD", "", 1);
}

static int
set_environment(const struct options *o, const char *path, int fd)
{
	char channel[64];

	(void)snprintf(channel, sizeof(channel), "/proc/%d/fd/%d", getpid(),
	    fd);
	if (set_watches(o) < 0)
		return -EINVAL;
	if (set_pad() != 0 || preloaded_set(path) != 0 ||
	    setenv("WATCHPOINT_CHANNEL", channel, 1) != 0)
		return complain("out of memory");
	return 0;
}

/* Complete the account of a command that has ended.  Returns the exit
   status. */
static int
finish(struct serve *serve)
{
	struct session *s = &serve->session;
	int status = preloaded_wait(serve->root->pid);

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

/* Run the command, with the session, channel and environment ready. */
static int
run(struct serve *serve, struct wp_channel *channel, int fd)
{
	pid_t pid;
	int status;

	preloaded_catch(channel);
	if ((status = preloaded_start(serve->options, &pid)) != 0)
		return status;
	if (session_first_process(&serve->session, pid) < 0 ||
	    serve_open(serve, serve->options->argv, channel, fd, pid) < 0) {
		(void)kill(pid, SIGKILL);
		(void)preloaded_wait(pid);
		return STATUS_OWN_FAILURE;
	}
	serve_channel(serve);
	return finish(serve);
}

static int
run_on_channel(struct serve *serve, const char *path)
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
		if (set_environment(o, path, fd) == 0 &&
		    session_open(&serve->session, o, stderr) == 0)
			status = run(serve, channel, fd);
		serve_close(serve);
		preloaded_forget_channel();
		wp_channel_unmap(channel);
	}
	(void)close(fd);
	return status;
}

/* Check that the command can be started, and takes the library. */
static int
check_command(const char *command, bool *narrow)
{
	char path[PATH_MAX];
	int status = preloaded_check(command, path);

	return status != 0 ? status :
	    executable_check(path, narrow) < 0 ? STATUS_OWN_FAILURE : 0;
}

int
run_inside(const struct options *options)
{
	struct serve serve = {.options = options, .ours = true};
	char path[PATH_MAX];
	bool narrow;
	int status = check_command(options->command[0], &narrow);

	if (status != 0)
		return status;
	if (preloaded_find(narrow ? &narrow_library : &library, path) < 0 ||
	    fire_check_inside() < 0)
		return STATUS_OWN_FAILURE;
	return run_on_channel(&serve, path);
}
