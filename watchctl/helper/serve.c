/*
 * serve: serves programs that watch themselves: the one whose helper this
 * process is, and those of its children that ask for it too.
 */
#include "remote/remote_session.h"
#include "helper/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "os/clock.h"
#include "util/complain.h"
#include "proc/proc.h"
#include "watch/channel_hit.h"

/* ms to sleep when nothing happens, and while an explainer works. */
enum { TICK = 100, SOON = 1 };

/* needed for explainers and one program */
enum { DESCRIPTORS = 12 };

/* The program with this pid, or NULL if it is not served. */
static struct program *
find_program(struct serve *serve, pid_t pid)
{
	struct program *p = serve->first;

	/* with selective watching, the channel of the root belongs to another
	   program */
	if (serve->selective && p != NULL && p->pid == pid) {
		for (p = p->next; p != NULL && p->pid != pid; p = p->next)
			;
		if (p == NULL)
			p = serve->first;
	}
	while (p != NULL && p->pid != pid)
		p = p->next;
	return p;
}

static void
account(void *arg, const void *bytes, const struct broker_channel_hit *found)
{
	const struct channel_hit *hit = bytes;
	struct program *p = find_program(arg, hit->pid);

	if (p != NULL)
		channel_hit_account(p, found);
}

/* Everything that explains runs in a sandbox. */
static int
open_box(struct serve *serve, char **argv)
{
	int err;

	live_broker_make(&serve->live, serve->options->explain_memory, argv);
	serve->live.broker.answers.no_cache = serve->options->no_cache;
	serve->live.broker.answers.sources =
	    serve->options->form == FORM_HTML;
	serve->live.broker.answers.policy = &serve->options->policy;
	if ((err = remote_session_open(&serve->remote, &serve->session,
	    &serve->live.broker)) < 0)
		return err;
	remote_session_observe(serve->remote, account, serve, !serve->ours);
	return 0;
}

/* The sideband can do without descriptors if there are too few; explainers
   cannot. */
static void
open_sideband(struct serve *serve, int fd, pid_t program)
{
	int kept[DESCRIPTORS];

	for (size_t i = 0; i < DESCRIPTORS; i++)
		kept[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	sideband_open(&serve->sideband, program);
	for (size_t i = 0; i < DESCRIPTORS; i++)
		if (kept[i] >= 0)
			(void)close(kept[i]);
}

int
serve_open_session(struct serve *serve, char **argv)
{
	static const struct ex_value_options values = {
		.read = wp_proc_read, .now = wp_clock_ns, .at_once = true,
		.in_order = true,
	};
	struct perf_event_attr attr;

	serve->began = wp_clock_ns();
	if (open_box(serve, argv) < 0)
		return -ENOMEM;
	wp_channel_attr(&attr);
	serve->formats = ex_formats_new();
	session_format(&serve->session, &attr, NULL, 0);
	if (serve->formats == NULL ||
	    ex_formats_add(serve->formats, &attr, NULL, 0) < 0 ||
	    session_ready(&serve->session) < 0)
		return complain("out of memory");
	session_values(&serve->session, &values);
	return 0;
}

int
serve_open_program(struct serve *serve, struct wp_channel *channel, int fd,
    pid_t program)
{
	/* the process that starts a command is there to read; other readers may
	   not read */
	backpressure_open(&serve->backpressure, serve->ours ? -1 :
	    fileno(serve->session.report.out));
	wp_channel_set_root(channel);
	open_sideband(serve, fd, program);
	serve->root = serve->first = program_open(serve, channel, fd, program,
	    NULL);
	return serve->root == NULL ? -EINVAL : 0;
}

int
serve_open(struct serve *serve, char **argv, struct wp_channel *channel,
    int fd, pid_t program)
{
	const int err = serve_open_session(serve, argv);

	return err < 0 ? err : serve_open_program(serve, channel, fd, program);
}

/* The channel of a child was created by the helper. */
static void
drop(struct program **at)
{
	struct program *p = *at;
	struct wp_channel *channel = p->channel;
	const int fd = p->fd;
	const bool root = p == p->serve->root;

	*at = p->next;
	program_close(p);
	if (root)
		return;
	wp_channel_unmap(channel);
	(void)close(fd);
}

void
serve_close_program(struct serve *serve)
{
	while (serve->first != NULL)
		drop(&serve->first);
	wp_channel_set_root(NULL);
	sideband_close(&serve->sideband);
	serve->sideband = (struct sideband){0};
	serve->root = NULL;
	serve->reason = NULL;
}

void
serve_close(struct serve *serve)
{
	serve_close_program(serve);
	watch_registry_free(&serve->registry);
	ex_formats_free(serve->formats);
	session_close(&serve->session);
	remote_session_close(serve->remote);
	live_broker_close(&serve->live);
}

void
serve_start(struct serve *serve)
{
	struct wp_proc_status status = {0};
	struct report_start start = {
		.pid = serve->root->pid, .mode = "inside", .frozen_ms = -1,
		.time = serve->began, .wall = wp_clock_wall(serve->began),
	};

	if (wp_proc_status(serve->root->pid, &status) == 0) {
		start.threads = status.threads;
		start.comm = status.comm;
	}
	session_start(&serve->session, &start);
	(void)session_flush(&serve->session, 0);
	serve->started = true;
}

/* Report it if no program can have events.  A program that has executed another
   one is in doubt already, and has no events any more. */
void
serve_doubt_children(struct serve *serve)
{
	const struct sideband *side = &serve->sideband;

	if (!serve->ours || serve->selective || serve->children_doubted ||
	    !serve->started ||
	    serve->reason != NULL || !options_vouch(serve->options) ||
	    serve->root->exec_reported || sideband_knows_tasks(side))
		return;
	serve->children_doubted = true;
	session_warn(&serve->session, "a child that was not created by fork(2) "
	    "may not have been noticed: %s", side->tasks.rings == NULL ?
	    side->cause.text : "so many threads and processes were created "
	    "that records of them were lost, or a processor has none");
	if (!side->refused)
		session_doubt(&serve->session, "a child that was not watched "
		    "may not have been noticed");
	(void)session_flush(&serve->session, 0);
}

/* It is not known what else may have written to the bytes of a watch.  Hits
   then have only the values that their instructions show. */
static void
report_unmapped(struct serve *serve)
{
	const struct sideband *side = &serve->sideband;

	if (serve->unmapped_reported || !serve->started || side->refused ||
	    serve->reason != NULL || serve->root->exec_reported ||
	    sideband_knows_maps(side))
		return;
	serve->unmapped_reported = true;
	session_warn(&serve->session, "what the program maps is not known: %s; "
	    "so values are shown only where the instruction itself shows them",
	    side->maps.rings == NULL ? side->cause.text : "it mapped so much "
	    "that records of it were lost, or a processor has none");
	(void)session_flush(&serve->session, 0);
}

/* No more hits are wanted, and the programs continue without watches. */
static void
end_watch(struct serve *serve, const char *reason)
{
	for (struct program *p = serve->first; p != NULL; p = p->next)
		program_measure(p);
	serve_doubt_children(serve);
	serve->reason = reason;
	for (struct program *p = serve->first; p != NULL; p = p->next)
		program_disable(p);
}

/* Hits for which there was no room are reported as soon as there is. */
static void
report_unreported(struct serve *serve)
{
	session_lost(&serve->session, serve->unreported);
	serve->unreported = 0;
}

void
serve_take_hit(struct program *p, struct wp_cell *cell)
{
	struct serve *serve = p->serve;
	bool room;

	if (!serve->started)
		serve_start(serve);
	if ((room = backpressure_wait(&serve->backpressure)))
		report_unreported(serve);
	else
		serve->unreported++;
	channel_hit_report(p, cell, room);
}

/* --- what programs do that is no access --- */

static void
take_mapping(void *arg, const struct sideband_mapping *map)
{
	struct serve *serve = arg;
	struct program *p = find_program(serve, map->pid);

	if (p == NULL)
		return;
	watch_registry_mapped(&serve->registry, map->start, map->end,
	    map->shared);
	program_mapped(p, map);
}

static void
take_loan(void *arg, pid_t pid)
{
	struct program *p = find_program(arg, pid);

	if (p != NULL)
		program_forget(p, wp_clock_ns());
}

/* A child that no watch follows into might not report itself before its parent
   ends and everything served ends with that. */
static void
take_child(void *arg, const struct sideband_child *child)
{
	struct program *p = find_program(arg, child->parent);
	uint32_t how;

	if (p == NULL)
		return;
	how = wp_creation_claim(p->channel, child->tid, child->time,
	    child->pid);
	if (how == 0)
		(void)atomic_fetch_add(&p->channel->strangers, 1);
	else if (how == WP_MAKES_FORK)
		(void)atomic_fetch_add(&p->channel->children, 1);
}

static void
take_thread(void *arg, pid_t pid, uint64_t time)
{
	struct program *p = find_program(arg, pid);

	if (p != NULL)
		inside_uptime_thread(&p->presence, time);
}

static void
take_worker(void *arg, pid_t pid)
{
	struct program *p = find_program(arg, pid);

	if (p != NULL)
		program_worker(p);
}

bool
serve_read_sideband(struct serve *serve)
{
	static const struct sideband_calls calls = {
		.thread = take_thread, .mapped = take_mapping,
		.made = take_child, .lent = take_loan, .worker = take_worker,
	};

	return sideband_look(&serve->sideband, &calls, serve);
}

static void
check_limits(struct serve *serve)
{
	const struct session *s = &serve->session;

	if (!serve->ours || serve->reason != NULL)
		return;
	if (s->err < 0)
		end_watch(serve, "detached");
	else if (s->full)
		end_watch(serve, session_full_reason(s));
	else if (s->options->seconds > 0 && serve->started &&
	    (double)(wp_clock_ns() - serve->began) >= s->options->seconds * 1e9)
		end_watch(serve, "time");
	else if (serve->until != 0 && wp_clock_ns() >= serve->until) {
		end_watch(serve, "time");
		serve->expire(serve->root->pid);
	}
}

/* The time to sleep, in ms. */
static int
nap(const struct serve *serve)
{
	double left = serve->session.options->seconds * 1e3 -
	    (double)(wp_clock_ns() - serve->began) / 1e6;

	return serve->session.options->seconds <= 0 || left >= TICK ||
	    left < 0 ? TICK : (int)left + 1;
}

/* --- children --- */

/* Take the channel of a process: its descriptor becomes one of ours.  Returns 0
   or -errno. */
static int
take_channel(pid_t pid, int theirs, struct wp_channel **channel, int *fd)
{
	const int pidfd = pidfd_open(pid, 0);
	int err;

	if (pidfd < 0)
		return -errno;
	*fd = pidfd_getfd(pidfd, theirs, 0);
	err = *fd < 0 ? -errno : wp_channel_map(*fd, channel);
	(void)close(pidfd);
	if (err == 0 && atomic_load(&(*channel)->program) != pid) {
		wp_channel_unmap(*channel);
		err = -EPROTO;
	}
	if (err < 0 && *fd >= 0)
		(void)close(*fd);
	return err;
}

/* The entries are in memory that the program can write to. */
static int
adopt(struct serve *serve, pid_t pid, int theirs, pid_t parent)
{
	struct wp_channel *channel = NULL;
	struct program *p;
	int err, fd = -1;

	if (serve->ours && !serve->options->follow && !serve->selective)
		return -EBUSY;	/* does not matter here */
	if ((err = take_channel(pid, theirs, &channel, &fd)) < 0)
		return err;
	p = program_open(serve, channel, fd, pid, find_program(serve, parent));
	if (p == NULL) {
		wp_channel_unmap(channel);
		(void)close(fd);
		return -ENOMEM;
	}
	p->next = serve->root->next;
	serve->root->next = p;
	if (serve->reason != NULL)
		program_disable(p);
	program_begin(p, true);
	wp_channel_serve_too(channel);
	return 0;
}

static void
adopt_children(struct serve *serve)
{
	struct wp_adoption *a;

	while ((a = wp_channel_adoption(serve->root->channel)) != NULL)
		wp_channel_adopted(a, adopt(serve, atomic_load(&a->pid), a->fd,
		    a->parent));
}

/* Programs that have ended are forgotten, except the root, whose channel the
   others use. */
static void
step_all(struct serve *serve, unsigned idle)
{
	for (struct program **at = &serve->first; *at != NULL;) {
		struct program *p = *at;

		if (!p->ended)
			program_step(p, idle);
		if (p->ended && p != serve->root)
			drop(at);
		else
			at = &p->next;
	}
}

/* With -n or -t, children are not waited for. */
static bool
all_ended(const struct serve *serve)
{
	return serve->root->ended &&
	    (serve->root->next == NULL || serve->reason != NULL);
}

/* There will be no explainer any more, so programs do better without this
   helper. */
static bool
is_useless(const struct serve *serve)
{
	return !serve->ours && remote_session_has_failed(serve->remote);
}

void
serve_channel(struct serve *serve)
{
	struct wp_channel *root = serve->root->channel;
	uint32_t heard = 0, before;
	unsigned idle = 0;
	bool behind;

	wp_channel_serve(root);
	if (!serve->ours)
		serve_start(serve);
	program_begin(serve->root, !serve->ours);
	while (!all_ended(serve) && !is_useless(serve)) {
		remote_session_round(serve->remote, true);
		step_all(serve, idle);
		adopt_children(serve);
		(void)serve_read_sideband(serve);
		report_unmapped(serve);
		check_limits(serve);
		if (all_ended(serve))
			break;
		before = heard;
		remote_session_catch_up(serve->remote, SOON);
		behind = remote_session_is_behind(serve->remote);
		if (!behind && serve->round != NULL)
			serve->round(serve->round_arg);
		wp_channel_sleep(root, &heard, behind ? 0 : nap(serve));
		idle = heard == before && !behind ? idle + 1 : 0;
	}
	report_unreported(serve);
	wp_channel_leave(root);
}
