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
 * When the command has ended, what is in the evidence is explained and
 * reported.  Programs write there: nothing is believed before it is checked.
 */
#include "helper/run_heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "box/kept_session.h"
#include "box/live_box.h"
#include "guard/evidence.h"
#include "helper/preloaded.h"
#include "os/clock.h"
#include "util/buffer.h"
#include "util/complain.h"
#include "util/visible.h"

#ifndef LIBDIR
#define LIBDIR "/usr/local/lib"
#endif
#define LIBRARY "libwatchpoint-heap.so"

enum { ENDING = 500 };		/* ms for what the command leaves behind */

static const struct preloaded_library library = {
	.option = "--heap", .name = LIBRARY,
	.beside = {"../lib/watchctl/" LIBRARY, "../lib/heapguard/" LIBRARY},
	.installed = LIBDIR "/watchctl/" LIBRARY,
};

struct heap_run {
	const struct options *options;
	struct hg_evidence *evidence;
	int fd;				/* its */
	struct session session;
	struct live_box live;		/* who explains */
	struct kept_session *kept;
	pid_t command;
};

/* --- the evidence --- */

static int
make_evidence(struct heap_run *run)
{
	struct hg_evidence *e = MAP_FAILED;

	run->fd = memfd_create("watchpoint-heap",
	    MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (run->fd >= 0 && ftruncate(run->fd, sizeof(*e)) == 0 &&
	    fcntl(run->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED,
		    run->fd, 0);
	if (e == MAP_FAILED)
		return complain_errno(errno, "memory to share with the "
		    "command");
	e->magic = HG_MAGIC;
	e->version = HG_VERSION;
	e->size = sizeof(*e);
	/* the first place is kept for the command */
	e->program[0].pid = (int32_t)getpid();
	e->nprograms = 1;
	run->evidence = e;
	return 0;
}

/* AddressSanitizer's library wants to be the first; the guard leaves its
   programs alone. */
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
set_environment(const struct heap_run *run, const char *path)
{
	char where[96];

	const uint64_t quarantine = run->options->quarantine;

	(void)snprintf(where, sizeof(where), "/proc/%d/fd/%d %" PRIu64,
	    (int)getpid(), run->fd, quarantine == QUARANTINE_NONE ?
	    QUARANTINE_USUAL : quarantine);
	return preloaded_set(path) != 0 || set_sanitizer() != 0 ||
	    setenv(HG_VARIABLE, where, 1) != 0 ? complain("out of memory") : 0;
}

/* A text that a program wrote. */
static void
end_text(char text[HG_PATH_MAX])
{
	text[HG_PATH_MAX - 1] = '\0';
}

/* One that it may still write to. */
static void
take_text(const char from[HG_PATH_MAX], char to[HG_PATH_MAX])
{
	memcpy(to, from, HG_PATH_MAX);
	end_text(to);
}

/* --- what was found --- */

/* A copy that no program changes any more.  False: it makes no sense, or who
   wrote it was killed meanwhile. */
static bool
take_finding(const struct hg_finding *from, struct hg_finding *f)
{
	if (atomic_load(&from->ready) == 0)
		return false;
	*f = *from;
	end_text(f->program);
	if (f->nmaps > HG_MAPS_MAX)
		f->nmaps = HG_MAPS_MAX;
	for (uint32_t i = 0; i < f->nmaps; i++)
		end_text(f->map[i].path);
	return f->kind >= HG_OVERFLOW && f->kind < HG_KINDS && f->pid > 0 &&
	    f->tid > 0 && f->nbytes <= HG_BYTES_MAX;
}

static void
report_findings(struct heap_run *run)
{
	struct session *s = &run->session;
	const uint32_t n = atomic_load(&run->evidence->nfindings);
	struct hg_finding f;
	unsigned bad = 0;

	for (uint32_t i = 0; i < n && i < HG_FINDINGS_MAX; i++) {
		if (!take_finding(&run->evidence->finding[i], &f)) {
			bad++;
			continue;
		}
		/* its files are asked for when it has ended */
		answers_allow_child(&run->live.box.answers, f.pid, getpid());
		session_damage(s, &f);
		(void)session_flush(s, UINT64_MAX);
	}
	if (n > HG_FINDINGS_MAX)
		session_warn(s, "%u findings more are not reported: %d are "
		    "kept", n - HG_FINDINGS_MAX, HG_FINDINGS_MAX);
	if (bad > 0)
		session_warn(s, "%u finding%s not be read: the program was "
		    "killed while it wrote, or has written over it", bad,
		    bad == 1 ? " can" : "s can");
	if (bad > 0)
		session_doubt(s, "a finding cannot be read");
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

/* Whether a process of that number has said hello for what it executed. */
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

/* Programs that were executed, and have not said hello: each with a number; and
   fewer hellos than others without one. */
static void
report_silent(struct heap_run *run)
{
	static const char why[] = "it has not loaded the guard: it is static, "
	    "for another processor, set-user-ID, or was started without "
	    "LD_PRELOAD and " HG_VARIABLE;
	static const char unnamed[HG_PATH_MAX] =
	    "what system(3) or popen(3) executed";
	struct hg_evidence *e = run->evidence;
	unsigned silent = 0, hellos = atomic_load(&e->answers);

	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		struct hg_program *p = &e->program[i];
		const int32_t pid = atomic_load(&p->pid);

		if (pid == 0 || p->balance != 1 || is_settled(e, pid))
			continue;
		if (silent++ == 0)
			doubt_program(&run->session, p->path, why);
	}
	if (silent > 1)
		session_warn(&run->session, "%u programs more were not "
		    "guarded", silent - 1);
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++)
		hellos += atomic_load(&e->program[i].pid) != 0 &&
		    e->program[i].balance == -1;
	if (hellos < atomic_load(&e->unnamed))
		doubt_program(&run->session, unnamed, why);
}

static void
report_unguarded(struct heap_run *run)
{
	struct hg_evidence *e = run->evidence;
	struct session *s = &run->session;
	const uint32_t refused = atomic_load(&e->refused);

	if (refused > 0)
		doubt_program(s, e->refused_path,
		    refusal(atomic_load(&e->refusal)));
	if (refused > 1)
		session_warn(s, "%u programs more were left alone",
		    refused - 1);
	report_silent(run);
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

/* The report's session, kept by explainers.  0, or -errno after a line on
   stderr. */
static int
open_session(struct heap_run *run)
{
	struct session *s = &run->session;
	struct report_start start = {
		.pid = run->command, .mode = "inside", .frozen_ms = -1,
		.time = wp_clock_ns(),
	};

	live_box_make(&run->live, run->options->explain_memory,
	    run->options->argv);
	run->live.box.answers.no_cache = run->options->no_cache;
	if (session_first_process(s, run->command) < 0 ||
	    kept_session_open(&run->kept, s, &run->live.box) < 0)
		return -EINVAL;
	if (session_ready(s) < 0)
		return complain("out of memory");
	start.wall = wp_clock_wall(start.time);
	(void)answers_allow(&run->live.box.answers, getpid());
	session_start(s, &start);
	(void)session_flush(s, 0);
	return 0;
}

/* Whether a process is just executing a program, and will say hello. */
static bool
is_beginning(const struct hg_evidence *e)
{
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		const struct hg_program *p = &e->program[i];
		const int32_t pid = atomic_load(&p->pid);

		if (pid > 0 && p->balance == 1 && kill(pid, 0) == 0)
			return true;
	}
	return false;
}

/* Whether a program still has the evidence, to which nothing can be added when
   none has.  What just begins or ends is waited for. */
static bool
is_in_use(const struct heap_run *run)
{
	for (int ms = 0; ms < ENDING; ms += 5) {
		if (!is_beginning(run->evidence) &&
		    fcntl(run->fd, F_ADD_SEALS, F_SEAL_WRITE) == 0)
			return false;
		(void)usleep(5000);
	}
	return fcntl(run->fd, F_ADD_SEALS, F_SEAL_WRITE) != 0;
}

static void
report_running(struct heap_run *run)
{
	void *copy = mmap(NULL, sizeof(*run->evidence), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE, run->fd, 0);

	if (copy != MAP_FAILED) {
		(void)munmap(run->evidence, sizeof(*run->evidence));
		run->evidence = copy;
	}
	if (!is_in_use(run))
		return;
	session_warn(&run->session, "processes that the command has started "
	    "are still running: what they do to their heaps is not reported");
	session_doubt(&run->session, "processes that the command has started "
	    "are still running");
}

static int
report(struct heap_run *run, int status)
{
	report_running(run);
	report_findings(run);
	report_unguarded(run);
	return session_end(&run->session, "exit", status, NULL);
}

/* The command has been executed, which its guard does not see. */
static void
expect_hello(struct heap_run *run)
{
	struct hg_program *p = &run->evidence->program[0];

	(void)snprintf(p->path, sizeof(p->path), "%s",
	    run->options->command[0]);
	p->balance = 1;
	atomic_store(&p->pid, (int32_t)run->command);
}

static int
run_command(struct heap_run *run)
{
	int status;

	preloaded_catch(NULL);
	if ((status = preloaded_start(run->options, &run->command)) != 0)
		return status;
	(void)unsetenv(HG_VARIABLE);
	expect_hello(run);
	if (open_session(run) < 0) {
		(void)kill(run->command, SIGKILL);
		(void)preloaded_wait(run->command);
		return STATUS_OWN_FAILURE;
	}
	return report(run, preloaded_wait(run->command));
}

int
run_heap(const struct options *options)
{
	struct heap_run run = {.options = options, .fd = -1};
	char file[PATH_MAX], path[PATH_MAX];
	int status = preloaded_check(options->command[0], file);

	if (status != 0)
		return status;
	status = STATUS_OWN_FAILURE;
	if (preloaded_find(&library, path) == 0 && make_evidence(&run) == 0 &&
	    set_environment(&run, path) == 0 &&
	    session_open(&run.session, options, stderr) == 0)
		status = run_command(&run);
	session_close(&run.session);
	kept_session_close(run.kept);
	live_box_close(&run.live);
	if (run.evidence != NULL)
		(void)munmap(run.evidence, sizeof(*run.evidence));
	if (run.fd >= 0)
		(void)close(run.fd);
	return status;
}
