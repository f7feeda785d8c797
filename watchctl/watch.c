/*
 * watch: the main job.
 *
 * Overview: begin (setup/setup.c); report hits until there is a reason to end;
 * disarm; close the account, which must come out even; wait for the command.
 */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deliver/deliver.h"
#include "follow/follow.h"
#include "follow/rotate.h"
#include "pending/held_modules.h"
#include "pending/instances.h"
#include "run/run.h"
#include "setup/arrivals.h"
#include "setup/mappers.h"
#include "setup/objects.h"
#include "setup/setup.h"
#include "top/top.h"
#include "util/complain.h"

/* Wait for the command, also for one that was left stopped (--on-hit pause):
   without us the kernel would end it, as a stopped job without a shell.
   Signals that are meant for it are passed on. */
static int
command_status(struct run *run)
{
	struct pollfd wait[] = {
		run->poll[0],
		{.fd = pidfd_open(run->command, 0), .events = POLLIN},
	};
	const int ms = wait[1].fd < 0 ? RUN_LOOK_MS : -1;
	int status = run->command_status;

	while (status < 0 &&
	    waitpid(run->command, &status, WNOHANG) == 0) {
		status = -1;
		(void)poll(wait, 2, ms);
		run_take_signals(run);
	}
	(void)close(wait[1].fd);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}

/* The program may have ended before its last hit that was wanted was taken. */
static const char *
end_reason(const struct run *run)
{
	const struct session *s = &run->session;

	return s->until || (s->full && run->on_hit.left == 0) ?
	    session_full_reason(s) : run->reason;
}

static int
finish(struct run *run)
{
	struct wp_uptime uptime = {0};
	int status = run->failed ? STATUS_OWN_FAILURE : 0;

	if (run->ops->account != NULL && run->ops->account(run) < 0)
		return complain("out of memory"), STATUS_OWN_FAILURE;
	run_settle_children(run);
	if (run->waits && !run->found) {
		session_warn(&run->session, "no %s that has what is to be "
		    "watched: nothing was ever watched",
		    run->options->command != NULL ? "program was executed" :
		    "module was mapped");
		session_doubt(&run->session, "nothing was ever watched");
	}
	if (run->mappers != NULL)
		run_settle_mappers(run);
	else if (run->arrivals != NULL && run->session.nwatches == 0)
		session_doubt(&run->session, "nothing was ever watched");
	if (run->missed_module) {
		session_warn(&run->session, "a library may have been opened "
		    "unseen: a thread blocked SIGURG and SIGWINCH then, or "
		    "had no debug register left for its loader's hook");
		session_doubt(&run->session, "a library may have been opened "
		    "unseen");
	}
	if (run->missed_child != 0) {
		session_warn(&run->session, "process %d, which was made by "
		    "fork(2) and executed no other program, opened or closed a "
		    "module that is waited for: it is not watched there",
		    run->missed_child);
		session_doubt(&run->session, "process %d opened or closed a "
		    "module where it is not watched", run->missed_child);
	}
	if (run->ops->uptime != NULL)
		run->ops->uptime(run, &uptime);
	session_uptime(&run->session, &uptime);
	if (run->rotate != NULL && rotate_account(run->rotate) < 0)
		session_note(&run->session, -ENOMEM);
	if (run->objects != NULL && objects_account(run->objects) < 0)
		session_note(&run->session, -ENOMEM);
	if (run->session.recording != NULL)
		perf_output_build_ids(run);
	if (run->options->command != NULL)
		status = command_status(run);
	return session_end(&run->session, end_reason(run), status,
	    run->counts);
}

static void
run_free(struct run *run)
{
	while (run->process != NULL && run->nprocesses > 0)
		run_leave_out(run, run->nprocesses - 1);
	free(run->process);
	free(run->chosen.pid);
	if (run->poll != NULL && run->poll->fd >= 0)
		(void)close(run->poll->fd);
	free(run->poll);
	synthetic_records_free(&run->synthetic);
	children_close(&run->children);
	descendants_close(&run->descendants);
	arrivals_close(run->arrivals);
	mappers_close(run->mappers);
	follow_close(run->follow);
	held_modules_close(run->held_modules);
	rotate_close(run->rotate);
	objects_close(run->objects);
	instances_free(run);
	free(run->described);
	session_close(&run->session);
	remote_session_close(run->remote);
	live_broker_close(&run->live);
	ex_formats_free(run->formats);
	if (run->own != NULL)
		run->ops->close(run);
	free(run->counts);
	search_misses_free(&run->absent);
	if (run->target != NULL)
		wp_target_abandon(run->target);
	wp_target_free(run->target);
}

int
watch(const struct options *options)
{
	struct run run = {
		.options = options, .command_status = -1,
		.ops = options->stop ? &run_by_stop : &run_by_ring,
	};
	int status;

	if (top_check(options) < 0)
		return STATUS_OWN_FAILURE;
	(void)pthread_mutex_init(&run.instances.lock, NULL);
	run_expect_signals(options);
	if ((status = run_begin(&run)) == 0) {
		run_take_over_signals(options);
		/* a reader that sees it begin may send a signal */
		run_announce(&run);
		if (run.follow != NULL && follow_begin(run.follow) < 0) {
			session_warn(&run.session, "the thread that follows "
			    "pointers cannot be created: watches do not move");
			session_doubt(&run.session, "watches did not move");
		}
		if (run.mappers != NULL)
			run_start_mappers(&run);
		rotate_begin(run.rotate);
		top_begin(options);
		run.ops->loop(&run);
		top_end();
		status = finish(&run);
	}
	run_free(&run);
	return status;
}
