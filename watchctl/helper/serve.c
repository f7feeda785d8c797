/*
 * serve: serving programs that watch themselves: the one that this process is
 * the helper of, and children of it that ask for the same.
 */
#include "helper/serve.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "os/clock.h"
#include "util/complain.h"
#include "os/proc.h"

/* How long to sleep when nothing happens, ms. */
enum { TICK = 100 };

int
serve_open(struct serve *in, struct wp_channel *channel, int fd,
    pid_t program)
{
	static const struct ex_value_options values = {
		.read = wp_proc_read, .now = wp_clock_ns, .at_once = true,
		.in_order = true,
	};
	struct perf_event_attr attr;

	in->began = wp_clock_ns();
	/* the process that starts a command is there to read; others may have
	   forgotten */
	backpressure_open(&in->room, in->ours ? -1 : fileno(in->session.report.out));
	wp_channel_set_root(channel);
	sideband_open(&in->sideband, program);
	wp_channel_attr(&attr);
	in->formats = ex_formats_new();
	if (in->formats == NULL ||
	    ex_formats_add(in->formats, &attr, NULL, 0) < 0 ||
	    session_ready(&in->session) < 0 ||
	    ex_explainer_values(in->session.explainer, &values) < 0)
		return complain("out of memory");
	in->root = in->first = program_open(in, channel, fd, program, NULL);
	return in->root == NULL ? -EINVAL : 0;
}

struct program *
inside_find(struct serve *in, pid_t pid)
{
	struct program *p = in->first;

	while (p != NULL && p->pid != pid)
		p = p->next;
	return p;
}

/* Of a child the channel is ours. */
static void
drop(struct program **at)
{
	struct program *p = *at;
	struct wp_channel *channel = p->channel;
	const int fd = p->fd;
	const bool root = p == p->in->root;

	*at = p->next;
	program_close(p);
	if (root)
		return;
	wp_channel_unmap(channel);
	(void)close(fd);
}

void
serve_close(struct serve *in)
{
	while (in->first != NULL)
		drop(&in->first);
	wp_channel_set_root(NULL);
	sideband_close(&in->sideband);
	watch_registry_free(&in->known);
	ex_formats_free(in->formats);
	session_close(&in->session);
}

void
serve_start(struct serve *in)
{
	struct wp_proc_status status = {0};
	struct report_start start = {
		.pid = in->root->pid, .mode = "inside", .frozen_ms = -1,
		.time = in->began, .wall = wp_clock_wall(in->began),
	};

	if (wp_proc_status(in->root->pid, &status) == 0) {
		start.threads = status.threads;
		start.comm = status.comm;
	}
	session_start(&in->session, &start);
	(void)session_flush(&in->session, 0);
	in->started = true;
}

void
inside_measure(struct serve *in)
{
	const struct wp_channel_watch *watch;
	int slot;

	if (in->root->left || in->measured)
		return;
	in->measured = true;
	(void)inside_look_aside(in);
	presence_end(&in->presence, &in->uptime);
	if (in->uptime.worst == 0)
		return;
	watch = &in->root->channel->watch[in->uptime.watch];
	slot = watch_registry_slot(&in->known, &in->session, in->root->pid,
	    &watch->what, -1);
	in->uptime.watch = slot < 0 ? UINT_MAX :
	    in->session.slots[slot].watch->id - 1;
}

/* Where no program can have events, that is how it is, and is said.  One that
   has executed another is doubted already, and has no events any more. */
void
inside_doubt_children(struct serve *in)
{
	const struct sideband *side = &in->sideband;

	if (!in->ours || in->unheard || !in->started || in->reason != NULL ||
	    in->options->error_status == 0 || in->root->left ||
	    sideband_knows_tasks(side))
		return;
	in->unheard = true;
	session_warn(&in->session, "a child that was not created by fork(2) "
	    "was perhaps not noticed: %s", side->tasks.rings == NULL ?
	    side->cause.text : "so many threads and processes were created that "
	    "records of them were lost, or a processor has none");
	if (!side->refused)
		session_doubt(&in->session, "a child that was not watched was "
		    "perhaps not noticed");
	(void)session_flush(&in->session, 0);
}

/* No more hits are wanted: the programs go on without. */
static void
end_watch(struct serve *in, const char *reason)
{
	inside_measure(in);
	inside_doubt_children(in);
	in->reason = reason;
	for (struct program *p = in->first; p != NULL; p = p->next)
		program_silence(p);
}

/* Hits for which there was no room are reported when there is. */
static void
tell_unreported(struct serve *in)
{
	session_lost(&in->session, in->unreported);
	in->unreported = 0;
}

void
inside_take(struct program *p, struct wp_cell *cell)
{
	struct serve *in = p->in;
	bool room;

	if (!in->started)
		serve_start(in);
	if ((room = backpressure_wait(&in->room)))
		tell_unreported(in);
	else
		in->unreported++;
	channel_hit_report(p, cell, room);
}

/* --- what programs do that is no access --- */

static void
take_mapping(void *arg, const struct sideband_mapping *map)
{
	struct serve *in = arg;
	struct program *p = inside_find(in, map->pid);

	if (p == NULL)
		return;
	watch_registry_mapped(&in->known, map->start, map->end, map->shared);
	program_mapped(p, map->start, map->end, map->time);
}

static void
take_loan(void *arg, pid_t pid)
{
	struct program *p = inside_find(arg, pid);

	if (p != NULL)
		program_forget(p, wp_clock_ns());
}

static void
take_child(void *arg, const struct sideband_child *child)
{
	struct program *p = inside_find(arg, child->parent);

	if (p != NULL && wp_making_claim(p->channel, child->tid, child->time,
	    child->pid) == 0)
		(void)atomic_fetch_add(&p->channel->strangers, 1);
}

bool
inside_look_aside(struct serve *in)
{
	static const struct sideband_calls calls = {
		take_mapping, take_child, take_loan,
	};

	return sideband_look(&in->sideband, &calls, in);
}

static void
check_limits(struct serve *in)
{
	const struct session *s = &in->session;

	if (!in->ours || in->reason != NULL)
		return;
	if (s->err < 0)
		end_watch(in, "detached");
	else if (s->full)
		end_watch(in, "count");
	else if (s->options->seconds > 0 && in->started &&
	    (double)(wp_clock_ns() - in->began) >= s->options->seconds * 1e9)
		end_watch(in, "time");
}

/* How long to sleep, ms. */
static int
nap(const struct serve *in)
{
	double left = in->session.options->seconds * 1e3 -
	    (double)(wp_clock_ns() - in->began) / 1e6;

	return in->session.options->seconds <= 0 || left >= TICK ||
	    left < 0 ? TICK : (int)left + 1;
}

/* --- children --- */

/* The channel that a process has behind a descriptor, and ours.  0 or -errno. */
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

/* The places of the root are the program's memory. */
static int
adopt(struct serve *in, pid_t pid, int theirs, pid_t parent)
{
	struct wp_channel *channel = NULL;
	struct program *p;
	int err, fd = -1;

	if (in->ours && !in->options->follow)
		return -EBUSY;	/* it does not matter here */
	if ((err = take_channel(pid, theirs, &channel, &fd)) < 0)
		return err;
	p = program_open(in, channel, fd, pid, inside_find(in, parent));
	if (p == NULL) {
		wp_channel_unmap(channel);
		(void)close(fd);
		return -ENOMEM;
	}
	p->next = in->root->next;
	in->root->next = p;
	if (in->reason != NULL)
		program_silence(p);
	program_begin(p, true);
	wp_channel_serve_too(channel);
	return 0;
}

static void
adopt_children(struct serve *in)
{
	struct wp_adoption *a;

	while ((a = wp_channel_adoption(in->root->channel)) != NULL)
		wp_channel_adopted(a, adopt(in, atomic_load(&a->pid), a->fd,
		    a->parent));
}

/* A program that has ended is forgotten; but not the root, whose channel is the
   others' too. */
static void
step_all(struct serve *in, unsigned idle)
{
	for (struct program **at = &in->first; *at != NULL;) {
		struct program *p = *at;

		if (!p->ended)
			program_step(p, idle);
		if (p->ended && p != in->root)
			drop(at);
		else
			at = &p->next;
	}
}

/* With -n or -t the children are not waited for. */
static bool
all_ended(const struct serve *in)
{
	return in->root->ended &&
	    (in->root->next == NULL || in->reason != NULL);
}

void
serve_channel(struct serve *in)
{
	struct wp_channel *root = in->root->channel;
	uint32_t heard = 0, before;
	unsigned idle = 0;

	wp_channel_serve(root);
	program_begin(in->root, !in->ours);
	while (!all_ended(in)) {
		step_all(in, idle);
		adopt_children(in);
		(void)inside_look_aside(in);
		check_limits(in);
		if (all_ended(in))
			break;
		before = heard;
		wp_channel_sleep(root, &heard, nap(in));
		idle = heard == before ? idle + 1 : 0;
	}
	tell_unreported(in);
	wp_channel_leave(root);
}
