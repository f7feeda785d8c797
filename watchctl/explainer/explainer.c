/*
 * explainer: the program that reads data which others control, in a sandbox.
 *
 * watchctl starts it with these arguments: the limit of its private memory in
 * bytes; the id of the memory to share (-1: it is descriptor BROKER_SHARED);
 * and its task.
 *
 *	live [ARG...]	answer questions about running processes; with the
 *			arguments of watchctl, keep the session of that watch
 *	log		answer questions about a log
 *	report ARG...	report on a recording: the arguments of watchctl report
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/shared_memory.h"
#include "explainer/ask.h"
#include "explainer/journal_reader.h"
#include "explainer/log_frames.h"
#include "explainer/questions.h"
#include "explainer/sandbox.h"
#include "space/space.h"
#include "stack/stack.h"
#include "module/module.h"
#include "session/explained_session.h"
#include "session/replay.h"
#include "util/complain.h"

static struct broker_shared *shared;

/* How to start a report, or to continue that of an earlier explainer. */
static struct session_resume
take_begin(const struct broker_message *message, struct output_screen *screen)
{
	*screen = (struct output_screen){
		.colour = message->value[1] != 0,
		.columns = (unsigned)message->value[2],
	};
	return (struct session_resume){
		.begun = message->err != 0, .hits = message->value[0],
	};
}

static void
take_orders(struct session_resume *resume, struct output_screen *screen)
{
	struct broker_message message;
	int fd;

	for (;;) {
		ask_receive(&message, &fd);
		switch (message.what) {
		case BROKER_BEGIN:
			*resume = take_begin(&message, screen);
			break;
		case BROKER_ASIDE:
			if (!ex_module_leave_aside(message.text))
				_exit(BROKER_NO_MEMORY);
			break;
		case BROKER_GO:
			return;
		default:
			_exit(EXIT_FAILURE);
		}
	}
}

/* The stream of the report; what the reader has already is not written
   again. */
static ssize_t
write_report(void *cookie, const char *text, size_t len)
{
	const struct session *session = cookie;

	return session->skipping ? (ssize_t)len :
	    ask_report(text, len, explained_session_writing(session));
}

static FILE *
open_report(struct session *session)
{
	static const cookie_io_functions_t functions = {.write = write_report};
	FILE *out = fopencookie(session, "w", functions);

	/* writes are whole lines */
	if (out != NULL)
		(void)setvbuf(out, NULL, _IONBF, 0);
	return out;
}

static void
read_module(const char *path)
{
	(void)snprintf(shared->module, sizeof(shared->module), "%s", path);
	ask_progress();
}

static __attribute__((noreturn)) void
out_of_memory(void)
{
	_exit(BROKER_NO_MEMORY);
}

static int
explain(const struct options *options)
{
	struct session_resume resume = {0};
	struct session session;
	struct output_screen screen = {0};
	FILE *out = open_report(&session);
	int status = STATUS_OWN_FAILURE;

	take_orders(&resume, &screen);
	if (out == NULL)
		out_of_memory();
	if (explained_session_open(&session, options, EX_RECORDED, NULL,
	    out, &screen, &resume) == 0) {
		session.progress = ask_progress;
		session.report.open_source = ask_source;
		session.put_side = ask_side;
		status = replay(&session);
	}
	session_close(&session);
	(void)fclose(out);
	return status;
}

/* Start a session for running processes, where an earlier explainer left its
   report. */
static void
begin(struct session *session, const struct options *options,
    struct ex_space *space, const struct broker_message *message)
{
	struct output_screen screen;
	const struct session_resume resume = take_begin(message, &screen);
	FILE *out = open_report(session);

	if (out == NULL || explained_session_open(session, options,
	    EX_LIVE, space, out, &screen, &resume) < 0)
		out_of_memory();
	session->report.open_source = ask_source;
	session->on_stderr = message->value[3] != 0;
	session->put_side = ask_side;
}

/* Answer questions until watchctl ends: about running processes, whose session
   may be explained here too, or about a log. */
static __attribute__((noreturn)) void
serve(const struct options *options)
{
	struct log_frames log = {
		.space = ex_space_new(options != NULL ? EX_LIVE : EX_RECORDED),
	};
	static struct session session;
	struct broker_message message;
	int fd;

	if (log.space == NULL)
		out_of_memory();
	for (;;) {
		atomic_store(&shared->idle, 1);
		ask_receive(&message, &fd);
		atomic_store(&shared->idle, 0);
		if (message.what == BROKER_ASIDE) {
			if (!ex_module_leave_aside(message.text))
				out_of_memory();
		} else if (message.what == BROKER_LEAVE) {
			ex_space_free(log.space);
			ask_end(EXIT_SUCCESS);
		} else if (options == NULL) {
			if (!log_frames_take(&log, &message))
				_exit(EXIT_FAILURE);
		} else if (message.what == BROKER_BEGIN) {
			begin(&session, options, log.space, &message);
		} else if (!questions_take(log.space, &message) &&
		    !journal_read(&session, shared, &message, fd)) {
			_exit(EXIT_FAILURE);
		}
	}
}

int
main(int argc, char **argv)
{
	struct options options;
	size_t memory = argc > 3 ? strtoull(argv[1], NULL, 10) : 0;
	int err;

	if (memory != 0)
		shared = shared_memory_map(BROKER_SHARED, atoi(argv[2]),
		    sizeof(*shared), true);
	if (shared == NULL) {
		(void)complain("watchctl starts the explainer; on its own it "
		    "does nothing");
		return STATUS_OWN_FAILURE;
	}
	ask_begin(shared);
	complain_to(ask_say);
	ex_module_memory_handler(out_of_memory);
	ex_stacks_limit(memory / 8);
	ex_module_observe(read_module);
	ex_module_fetcher(ask_fetch);
	err = sandbox_enter(BROKER_SHARED + 1, memory);
	if (err == -ENOSYS)
		(void)complain("warning: this kernel does not filter system "
		    "calls (seccomp): what reads executables and debug "
		    "information has no privilege, but is not confined to "
		    "computing");
	else if (err < 0)
		ask_end(complain("the explainer cannot give up its "
		    "privileges: %s", strerror(-err)) < 0 ?
		    STATUS_OWN_FAILURE : 0);
	ex_index_store(&ask_index_store);
	if (strcmp(argv[3], "live") == 0) {
		if (argc > 4 &&
		    options_parse(argc - 3, argv + 3, &options) != 0)
			ask_end(STATUS_OWN_FAILURE);
		serve(&options);
	}
	if (strcmp(argv[3], "report") != 0)
		serve(NULL);
	if (options_parse_report(argc - 3, argv + 3, &options) != 0)
		ask_end(STATUS_OWN_FAILURE);
	ask_end(explain(&options));
}
