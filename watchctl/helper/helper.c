/*
 * helper: the process that explains the hits of a program that watches itself.
 * The program's library starts it, with the channel as descriptor 3 and the
 * program's standard error; it ends with the program.
 */
#include "helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/complain.h"
#include "helper/serve.h"

enum { CHANNEL = 3 };

/* The helper ends with its program and not before: signals to a process group
   or to the whole system reach the program too. */
static void
ignore_signals(void)
{
	static const int ignored[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP, SIGTTIN,
		SIGTTOU, SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM,
	};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN);
}

static enum form
form_wanted(void)
{
	const char *form = getenv("WATCHPOINT_FORM");

	if (form == NULL || *form == '\0' || strcmp(form, "text") == 0)
		return FORM_TEXT;
	if (strcmp(form, "json") != 0)
		(void)complain("WATCHPOINT_FORM '%s': there are text and json; "
		    "text is used", form);
	return strcmp(form, "json") == 0 ? FORM_JSON : FORM_TEXT;
}

/* The stream for reports. */
static FILE *
output_wanted(void)
{
	const char *path = getenv("WATCHPOINT_OUTPUT");
	FILE *out = NULL;
	int fd;

	if (path == NULL || *path == '\0')
		return stderr;
	/* do not block on a FIFO that has no reader */
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY |
	    O_NONBLOCK, 0666);
	if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0)
		out = fdopen(fd, "a");
	if (fd >= 0 && out == NULL)
		(void)close(fd);
	if (out == NULL)
		(void)complain("WATCHPOINT_OUTPUT %s: %s; reports come here",
		    path, strerror(errno));
	return out == NULL ? stderr : out;
}

/* Set options as if they were given on a command line. */
static int
open_as_asked(struct serve *in, struct wp_channel *channel)
{
	static char name[] = "watchctl", inside[] = "--inside", what[] = "-w",
	    spec[] = "0", o[] = "-o", json[] = "json", text[] = "text";
	char *argv[] = {
		name, inside, what, spec, o,
		in->options->form == FORM_JSON ? json : text, name, NULL,
	};

	return serve_open(in, argv, channel, CHANNEL,
	    atomic_load(&channel->program));
}

static int
serve(const struct options *options, struct wp_channel *channel, FILE *out)
{
	struct serve in = {.options = options};
	int err = session_open(&in.session, options, out);

	in.session.quiet = true;
	if (err == 0)
		err = open_as_asked(&in, channel);
	if (err == 0) {
		serve_channel(&in);
		(void)session_end(&in.session, "exit", 0, NULL);
	}
	serve_close(&in);
	return err == 0 ? 0 : STATUS_OWN_FAILURE;
}

int
helper(void)
{
	struct options options = {.form = form_wanted()};
	struct wp_channel *channel;
	FILE *out;
	int status;

	if (wp_channel_map(CHANNEL, &channel) < 0) {
		(void)complain("libwatchpoint starts the helper; on its own "
		    "it does nothing");
		return STATUS_OWN_FAILURE;
	}
	ignore_signals();
	out = output_wanted();
	status = serve(&options, channel, out);
	if (out != stderr)
		(void)fclose(out);
	wp_channel_unmap(channel);
	return status;
}
