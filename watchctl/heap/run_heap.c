/*
 * run_heap: `watchctl --heap`.
 *
 * Overview: make the evidence; start the command with the guard in front of its
 * allocator (lib/heapguard), and variables that its children inherit:
 *
 *	LD_PRELOAD		the guard, before what is there
 *	WATCHPOINT_HEAP		where the evidence is, and how large the
 *				quarantine is to be
 *	ASAN_OPTIONS		what lets a sanitized program run behind it
 *
 * When the command has ended, it may run again to see who did what is in the
 * evidence (heap_rerun.c); then that is explained and reported.
 */
#include "heap/run_heap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/heap_evidence.h"
#include "heap/heap_findings.h"
#include "heap/heap_rerun.h"
#include "heap/heap_sample.h"
#include "helper/preloaded.h"
#include "helper/serve.h"
#include "os/clock.h"
#include "util/buffer.h"
#include "util/complain.h"
#include "util/visible.h"

#ifndef LIBDIR
#define LIBDIR "/usr/local/lib"
#endif
#define LIBRARY "libwatchpoint-heap.so"

static const struct preloaded_library library = {
	.option = "--heap", .name = LIBRARY,
	.beside = {"../lib/watchctl/" LIBRARY, "../lib/heapguard/" LIBRARY},
	.installed = LIBDIR "/watchctl/" LIBRARY,
};

struct heap_run {
	struct serve serve;		/* with the session, of all runs */
	struct heap_evidence evidence;	/* of the first */
	struct heap_sample sample;	/* if there is only one */
	struct heap_input input;
	pid_t command;
	char library[PATH_MAX];
};

/* --- the environment --- */

/* AddressSanitizer's library insists on being the first; the guard does nothing
   in its programs. */
static int
set_sanitizer(void)
{
	const char *others = getenv("ASAN_OPTIONS");
	struct buffer b = {0};
	int err;

	buffer_printf(&b, "%s%sverify_asan_link_order=0", others == NULL ? "" :
	    others, others == NULL || *others == '\0' ? "" : ":");
	err = setenv("ASAN_OPTIONS", buffer_text(&b), 1);
	buffer_free(&b);
	return err;
}

static int
set_environment(struct heap_run *run)
{
	const struct options *options = run->serve.options;
	int err = 0;

	if (options->heap == HEAP_SAMPLE)
		err = heap_sample_open(&run->sample, run->library);
	else if (preloaded_set(run->library) != 0)
		err = complain("out of memory");
	if (err == 0 && set_sanitizer() != 0)
		err = complain("out of memory");
	return err < 0 ? err : heap_evidence_set(&run->evidence, options);
}

/* Terminate a text that a program wrote. */
static void
end_text(char text[HG_PATH_MAX])
{
	text[HG_PATH_MAX - 1] = '\0';
}

/* Copy a text that a program may still change. */
static void
take_text(const char from[HG_PATH_MAX], char to[HG_PATH_MAX])
{
	memcpy(to, from, HG_PATH_MAX);
	end_text(to);
}

/* --- what was found --- */

static void
report_findings(struct heap_run *run, const struct heap_findings *found)
{
	for (size_t i = 0; i < found->n; i++)
		heap_findings_report(&run->serve, &found->one[i]);
	heap_findings_unread(&run->serve, found->more, found->bad);
	heap_findings_repeated(&run->serve, run->evidence.at);
}

/* --- what was not guarded --- */

static void
doubt_program(struct session *s, const char path[HG_PATH_MAX],
    const char *why)
{
	struct buffer name = {0};
	char text[HG_PATH_MAX];

	take_text(path, text);
	visible_put(&name, text);
	session_warn(s, "%.200s was not guarded: %s", buffer_text(&name), why);
	session_doubt(s, "%.100s was not guarded", buffer_text(&name));
	buffer_free(&name);
}

static const char *
refusal(uint32_t how)
{
	switch (how) {
	case HG_OWN_MALLOC:
		return "it has a malloc of its own";
	case HG_SANITIZED:
		return "it is built with AddressSanitizer, which guards it "
		    "itself";
	default:
		return "there is no memory for what the guard keeps";
	}
}

/* Whether a process with that id has announced itself for the program that it
   executed. */
static bool
is_settled(struct hg_evidence *e, int32_t pid)
{
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		struct hg_program *p = &e->program[i];

		if (atomic_load(&p->pid) != pid || p->balance != -1)
			continue;
		p->balance = 0;
		return true;
	}
	return false;
}

/* Report programs that were executed and have not announced themselves.  Those
   whose process id is known are looked up one by one; of the others, only the
   numbers are compared. */
static void
report_silent(struct heap_run *run)
{
	static const char why[] = "it has not loaded the guard: it is static, "
	    "for another processor, set-user-ID, or was started without "
	    "LD_PRELOAD and " HG_VARIABLE;
	static const char unnamed[HG_PATH_MAX] =
	    "what system(3) or popen(3) executed";
	struct hg_evidence *e = run->evidence.at;
	unsigned silent = 0, hellos = atomic_load(&e->answers);

	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		struct hg_program *p = &e->program[i];
		const int32_t pid = atomic_load(&p->pid);

		if (pid == 0 || p->balance != 1 || is_settled(e, pid))
			continue;
		if (silent++ == 0)
			doubt_program(&run->serve.session, p->path, why);
	}
	if (silent > 1)
		session_warn(&run->serve.session, "%u programs more were not "
		    "guarded", silent - 1);
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++)
		hellos += atomic_load(&e->program[i].pid) != 0 &&
		    e->program[i].balance == -1;
	if (hellos < atomic_load(&e->unnamed))
		doubt_program(&run->serve.session, unnamed, why);
}

/* If it crashed in the middle of that, the guard itself may be the cause. */
static void
report_opening(struct session *s, const struct hg_evidence *e)
{
	struct buffer name = {0};
	char text[HG_PATH_MAX];

	take_text(e->opening, text);
	visible_put(&name, text);
	session_warn(s, "a process ended while it opened %.200s with "
	    "RTLD_DEEPBIND: if a function that runs then frees what the C "
	    "library has allocated, the guard makes it crash",
	    buffer_text(&name));
	session_doubt(s, "a process ended while it opened a library with "
	    "RTLD_DEEPBIND");
	buffer_free(&name);
}

static void
report_unguarded(struct heap_run *run)
{
	struct hg_evidence *e = run->evidence.at;
	struct session *s = &run->serve.session;
	const uint32_t refused = atomic_load(&e->refused);

	if (refused > 0)
		doubt_program(s, e->refused_path,
		    refusal(atomic_load(&e->refusal)));
	if (refused > 1)
		session_warn(s, "%u programs more were left alone",
		    refused - 1);
	report_silent(run);
	if (atomic_load(&e->nopening) != 0)
		report_opening(s, e);
	if (atomic_load(&e->overflowed) != 0)
		session_doubt(s, "so many programs were executed at a time "
		    "that it is not known whether all were guarded");
	if (atomic_load(&e->unswept) != 0) {
		session_warn(s, "a process ended while other threads were in "
		    "the middle of free, and so not all of its blocks were "
		    "looked at");
		session_doubt(s, "not all blocks were looked at");
	}
	if (atomic_load(&e->hellos) == 0 && refused == 0)
		session_doubt(s, "nothing was guarded");
}

/* --- the run --- */

/* Open the report's session, which explainers keep.  0, or -errno after a line
   on stderr. */
static int
open_session(struct heap_run *run)
{
	struct serve *serve = &run->serve;
	struct report_start start = {
		.pid = run->command, .mode = "inside", .frozen_ms = -1,
	};

	if (session_first_process(&serve->session, run->command) < 0 ||
	    serve_open_session(serve, serve->options->argv) < 0)
		return -EINVAL;
	start.time = serve->began;
	start.wall = wp_clock_wall(start.time);
	(void)answers_allow(&serve->live.broker.answers, getpid());
	session_start(&serve->session, &start);
	(void)session_flush(&serve->session, 0);
	serve->started = true;
	return 0;
}

static void
report_running(struct heap_run *run)
{
	if (!heap_evidence_in_use(&run->evidence))
		return;
	session_warn(&run->serve.session, "processes that the command has "
	    "started are still running: what they do to their heaps is not "
	    "reported");
	session_doubt(&run->serve.session, "processes that the command has "
	    "started are still running");
}

/* Report the findings, after further runs have shown who did what. */
static void
report_all(struct heap_run *run)
{
	const struct heap_rerun again = {
		.serve = &run->serve, .guard = run->library,
		.input = &run->input,
		.took = wp_clock_ns() - run->serve.began,
	};
	struct heap_findings found;

	if (heap_evidence_take(&run->evidence, &found) < 0)
		return;
	heap_rerun(&again, &found);
	report_findings(run, &found);
	free(found.one);
}

static int
report(struct heap_run *run, int status)
{
	report_running(run);
	if (run->serve.options->heap == HEAP_SAMPLE)
		heap_sample_report(&run->sample);
	else
		report_all(run);
	report_unguarded(run);
	return session_end(&run->serve.session, "exit", status, NULL);
}

/* Note that the command was executed, which its guard does not see. */
static void
expect_hello(struct heap_run *run)
{
	struct hg_program *p = &run->evidence.at->program[0];

	(void)snprintf(p->path, sizeof(p->path), "%s",
	    run->serve.options->command[0]);
	p->balance = 1;
	atomic_store(&p->pid, (int32_t)run->command);
}

static int
run_command(struct heap_run *run)
{
	int status;

	preloaded_catch(run->sample.channel.at);
	if ((status = preloaded_start(run->serve.options, &run->command)) != 0)
		return status;
	(void)unsetenv(HG_VARIABLE);
	expect_hello(run);
	if (open_session(run) < 0) {
		(void)kill(run->command, SIGKILL);
		(void)preloaded_wait(run->command);
		return STATUS_OWN_FAILURE;
	}
	if (run->serve.options->heap == HEAP_SAMPLE)
		heap_sample_serve(&run->sample, run->command);
	return report(run, preloaded_wait(run->command));
}

int
run_heap(const struct options *options)
{
	struct heap_run run = {
		.serve = {.options = options, .ours = true, .selective = true},
		.evidence = {.fd = -1},
		.sample = {
			.serve = &run.serve, .evidence = &run.evidence,
			.channel = {.fd = -1},
		},
	};
	char file[PATH_MAX];
	int status = preloaded_check(options->command[0], file);

	if (status != 0)
		return status;
	status = STATUS_OWN_FAILURE;
	heap_input_look(&run.input);
	if (preloaded_find(&library, run.library) == 0 &&
	    heap_evidence_make(&run.evidence) == 0 &&
	    set_environment(&run) == 0 &&
	    session_open(&run.serve.session, options, stderr) == 0)
		status = run_command(&run);
	heap_input_close(&run.input);
	serve_close(&run.serve);
	heap_sample_close(&run.sample);
	heap_evidence_close(&run.evidence);
	return status;
}
