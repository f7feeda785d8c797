/*
 * on_hit: carries out what --on-hit requests at each hit.
 *
 * Anything that takes long is abandoned when a signal for watchctl arrives; the
 * signal stays pending until the loop takes it.
 */
#include "action/on_hit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/proc.h"
#include "util/complain.h"
#include "action/core.h"
#include "util/interrupt.h"
#include "action/on_hit_exec.h"
#include "session/session.h"

/* most core files of the same process and hit, from earlier runs */
enum { NAMES_MAX = 100 };

/* The hit's name in messages. */
static const char *
name_of(const struct on_hit_at *at)
{
	static char name[64];

	if (at->seq == 0)
		return "a hit that is not explained yet";
	(void)snprintf(name, sizeof(name), "hit #%" PRIu64, at->seq);
	return name;
}

/* --- exec --- */

/* A wait status as in a shell's $?. */
static unsigned
shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + (unsigned)WTERMSIG(status) :
	    (unsigned)WEXITSTATUS(status);
}

static void
report_status(struct on_hit *on_hit, struct session *s,
    const struct on_hit_at *at, unsigned status)
{
	const uint64_t bit = UINT64_C(1) << status % 64;
	uint64_t *reported = &on_hit->reported[status / 64 % 4];

	if (status == 0 || (*reported & bit) != 0)
		return;
	*reported |= bit;
	session_warn(s, "%s: the command of --on-hit ended with "
	    "status %u; this is reported once", name_of(at), status);
}

static void
execute(struct on_hit *on_hit, struct session *s, const struct on_hit_at *at)
{
	int status, err = on_hit_exec(on_hit->command, at, on_hit->ms, &status);
	struct wp_cause cause;

	if (err == -EINTR || err == -ETIMEDOUT)
		session_warn(s, "%s: the command of --on-hit was "
		    "ended %s", name_of(at), err == -EINTR ?
		    "by a signal for watchctl" : "with the time of -t");
	else if (err < 0) {
		(void)wp_cause_errno(&cause, "the command of --on-hit could "
		    "not be started", -err);
		session_warn(s, "%s: %s", name_of(at), cause.text);
	} else
		report_status(on_hit, s, at, shell_status(status));
}

/* --- core --- */

/* Create core.PID.SEQ or, if that exists, core.PID.SEQ.2 and so on.  Returns a
   descriptor or -errno. */
static int
core_open(const struct on_hit_at *at, char *name, size_t size)
{
	int n = snprintf(name, size, "core.%d.%" PRIu64, (int)at->pid,
	    at->seq), fd = -1;

	for (unsigned i = 2; i < NAMES_MAX; i++) {
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			break;
		(void)snprintf(name + n, size - (size_t)n, ".%u", i);
	}
	return fd < 0 ? -errno : fd;
}

static const char *
core_problem(int err)
{
	switch (err) {
	case -EINTR:
		return "a signal for watchctl came in the meantime";
	case -ESRCH:
		return "the process was killed";
	case -ENOTSUP:
		return "the process is not of this processor's 64-bit kind";
	case -EFBIG:
		return "larger than files may be here; see ulimit -f";
	default:
		return strerror(-err);
	}
}

static void
report_core(struct session *s, const struct on_hit_at *at, const char *name,
    const struct core_size *size)
{
	char program[PATH_MAX] = "PROGRAM";

	(void)wp_proc_exe(at->pid, program);
	(void)complain("%s: wrote %s (%.1f MB, %u thread%s).  "
	    "Look: gdb %s %s", name_of(at), name, (double)size->used / 1e6,
	    size->threads, size->threads == 1 ? "" : "s", program, name);
	if (size->missing > 0)
		session_warn(s, "%s lacks %u thread%s that could not be "
		    "stopped: asleep in the kernel, or ending", name,
		    size->missing, size->missing == 1 ? "" : "s");
}

static bool
is_interrupted(void *arg)
{
	(void)arg;
	return interrupt_pending();
}

static void
dump(const struct on_hit_tracer *tracer, struct session *s,
    const struct on_hit_at *at)
{
	const struct core_of of = {
		.pid = at->pid, .tid = at->tid, .why = {
			.si_signo = SIGTRAP, .si_code = TRAP_HWBKPT,
			.si_addr = (void *)(uintptr_t)at->addr,
		}, .give_up = is_interrupted,
	};
	struct core_size size;
	char name[64];
	int fd = core_open(at, name, sizeof(name));
	int err = fd < 0 ? fd : tracer->core != NULL ?
	    tracer->core(tracer->arg, fd, &of, &size) :
	    core_write(fd, &of, &size);

	if (fd >= 0 && close(fd) < 0 && err == 0)
		err = -errno;
	if (err == 0) {
		report_core(s, at, name, &size);
		return;
	}
	session_warn(s, "%s: no core file %s: %s", name_of(at),
	    name, core_problem(err));
	if (fd >= 0)
		(void)unlink(name);
}

/* --- any --- */

void
on_hit_act(struct on_hit *on_hit, const struct on_hit_tracer *tracer,
    struct session *s, const struct on_hit_at *at)
{
	if (on_hit->what == ON_HIT_EXEC) {
		execute(on_hit, s, at);
		return;
	}
	if (tracer->hold(tracer->arg, at->pid) < 0)
		session_warn(s, "process %d cannot be held still at %s",
		    (int)at->pid, name_of(at));
	if (on_hit->what == ON_HIT_CORE)
		dump(tracer, s, at);
	if (on_hit->what != ON_HIT_PAUSE)
		return;
	on_hit->left = at->pid;
	on_hit->left_tid = at->tid;
	on_hit->left_seq = at->seq;
}

void
on_hit_report_paused(const struct on_hit *on_hit)
{
	const struct on_hit_at at = {.seq = on_hit->left_seq};
	const int pid = on_hit->left;

	(void)complain("process %d is stopped at %s (thread %d).  Attach: "
	    "gdb -p %d   Go on: kill -CONT %d", pid, name_of(&at),
	    (int)on_hit->left_tid, pid, pid);
}
