/*
 * heap_rerun: the further runs of `watchctl --heap`.
 *
 * In the first of them, a block is identified by its number among the blocks of
 * the same callers and size.  Where threads share work, these numbers differ
 * from run to run, so in later runs all such blocks share the watches.
 */
#include "heap/heap_rerun.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap/heap_channel.h"
#include "heap/heap_findings.h"
#include "helper/preloaded.h"
#include "remote/remote_session.h"
#include "os/clock.h"
#include "report/damage.h"
#include "watch/fire_check.h"

#define SECOND UINT64_C(1000000000)	/* ns */

enum {
	PATIENCE = 10, TIMES = 10,	/* seconds, and times the first run:
					   what is longer is ended */
};

/* --- standard input --- */

/* A file can be read again.  Of anything else, such as a pipe or a terminal,
   the kernel says whether it is read. */
void
heap_input_look(struct heap_input *input)
{
	struct stat stat;

	*input = (struct heap_input){.notify = -1};
	if (fstat(STDIN_FILENO, &stat) != 0)
		return;
	input->is_file = S_ISREG(stat.st_mode);
	input->at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	if (!input->is_file && (input->notify = inotify_init1(IN_NONBLOCK |
	    IN_CLOEXEC)) >= 0)
		(void)inotify_add_watch(input->notify, "/proc/self/fd/0",
		    IN_ACCESS);
}

void
heap_input_close(struct heap_input *input)
{
	if (input->notify >= 0)
		(void)close(input->notify);
	input->notify = -1;
}

static bool
was_read(const struct heap_input *input)
{
	struct pollfd events = {.fd = input->notify, .events = POLLIN};

	return input->notify >= 0 && poll(&events, 1, 0) > 0;
}

/* Open the input of another run: a file, from its former position, or else
   nothing.  A descriptor or -errno. */
static int
open_input(const struct heap_input *input)
{
	int fd;

	if (!input->is_file)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && lseek(fd, input->at, SEEK_SET) == input->at)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* --- what is wanted --- */

static bool
has_label(const struct hg_evidence *e, const char *label)
{
	for (uint32_t i = 0; i < atomic_load(&e->nwanted); i++)
		if (strcmp(e->wanted[i].label, label) == 0)
			return true;
	return false;
}

/* Set the label by which the hits of a finding are recognized; no other has
   it. */
static void
set_label(const struct hg_evidence *e, const struct hg_finding *f,
    char label[HG_LABEL_MAX])
{
	struct buffer b = {0};
	char more[16] = "";

	damage_put_place(&b, f);
	for (unsigned n = 2; ; n++) {
		(void)snprintf(label, HG_LABEL_MAX, "%.*s%s",
		    (int)(HG_LABEL_MAX - sizeof(more)), buffer_text(&b), more);
		if (!has_label(e, label))
			break;
		(void)snprintf(more, sizeof(more), " (%u)", n);
	}
	buffer_free(&b);
}

/* The number of damaged bytes, from the first on, that a debug register covers.
   The others belong to the program no more than these do. */
static uint32_t
watched_length(const struct hg_finding *f)
{
	const uint64_t at = f->addr + (uint64_t)f->offset;
	const bool inside = f->offset >= 0 && (uint64_t)f->offset < f->size;
	uint32_t len = 8;

	while (at % len != 0 || (inside && len > f->nbytes))
		len /= 2;
	return len;
}

static bool
is_damage(const struct hg_finding *f)
{
	return f->kind <= HG_USE_AFTER_FREE && f->nbytes > 0 &&
	    f->identity.callers != 0;
}

/* Whether the same was done to another block of the same callers. */
static bool
is_like(const struct hg_finding *a, const struct hg_finding *b)
{
	return is_damage(a) && is_damage(b) && a->kind == b->kind &&
	    a->identity.callers == b->identity.callers &&
	    a->identity.size == b->identity.size && a->offset == b->offset &&
	    a->image.path == b->image.path;
}

/* Whether the writer is known: by hits, or by the function that had the kernel
   write. */
static bool
has_writer(const struct hg_finding *f)
{
	return f->nhits > 0 || f->when == HG_AT_WRITE;
}

/* Whether the writer of this finding, or of one like it, is known. */
static bool
is_named(const struct heap_findings *found, const struct hg_finding *f)
{
	for (size_t i = 0; i < found->n; i++)
		if (is_like(&found->one[i], f) && has_writer(&found->one[i]))
			return true;
	return false;
}

static size_t
count_like(const struct hg_finding *one, size_t n, const struct hg_finding *f)
{
	size_t like = 0;

	for (size_t i = 0; i < n; i++)
		like += is_like(&one[i], f);
	return like;
}

/* Ask for the writers of all damage whose writer is not known yet.  Returns
   false if there is no such damage. */
static bool
want(struct hg_evidence *e, const struct heap_findings *found, bool any_number)
{
	uint32_t n = 0;

	e->any_number = any_number;
	for (size_t i = 0; i < found->n && n < HG_WANTED_MAX; i++) {
		const struct hg_finding *f = &found->one[i];
		struct hg_wanted *w = &e->wanted[n];

		if (!is_damage(f) || is_named(found, f) ||
		    count_like(found->one, i, f) >= HG_ALIKE_MAX)
			continue;
		*w = (struct hg_wanted){
			.image = f->image, .identity = f->identity,
			.offset = f->offset, .len = watched_length(f),
			.freed = f->kind == HG_USE_AFTER_FREE,
		};
		set_label(e, f, w->label);
		atomic_store(&e->nwanted, ++n);
	}
	return n > 0;
}

/* --- hits --- */

/* The wanted watches of a run, and its hits. */
struct names {
	struct hg_wanted wanted[HG_WANTED_MAX];
	uint32_t n, nhits;
	struct name {
		uint64_t seq, addr;
		uint32_t wanted;
	} hit[HG_WANTED_MAX * HG_HITS_MAX];
};

static void
take_hit(void *arg, const struct remote_hit *at)
{
	const struct ex_watch *watch = at->watch;
	struct names *names = arg;

	for (uint32_t i = 0; watch != NULL && i < names->n &&
	    names->nhits < HG_WANTED_MAX * HG_HITS_MAX; i++)
		if (strcmp(watch->spec, names->wanted[i].label) == 0)
			names->hit[names->nhits++] = (struct name){
				at->seq, watch->addr, i,
			};
}

static bool
is_same(const struct hg_finding *f, const struct hg_identity *identity,
    const struct hg_image *image, int64_t offset)
{
	return is_damage(f) && f->offset == offset &&
	    memcmp(&f->identity, identity, sizeof(*identity)) == 0 &&
	    memcmp(&f->image, image, sizeof(*image)) == 0;
}

/* Note the hits on what was wanted as those that did it; only those at its
   address, if the address is of this run. */
static void
name(struct hg_finding *f, const struct names *names, uint32_t wanted,
    bool anywhere)
{
	const uint64_t addr = f->addr + (uint64_t)f->offset;

	for (uint32_t i = 0; i < names->nhits; i++)
		if (names->hit[i].wanted == wanted && (anywhere ||
		    names->hit[i].addr == addr) && f->nhits < HG_HITS_MAX)
			f->hit[f->nhits++] = names->hit[i].seq;
}

/* The finding of this run that has hits and is the same, or like it; NULL if
   there is none. */
static struct hg_finding *
find_newer(const struct heap_findings *newer, const struct names *names,
    uint32_t wanted, const struct hg_finding *f, bool same)
{
	for (size_t i = 0; i < newer->n; i++) {
		struct hg_finding *other = &newer->one[i];

		if (!is_like(other, f) || (same && !is_same(other,
		    &f->identity, &f->image, f->offset)))
			continue;
		name(other, names, wanted, false);
		if (has_writer(other))
			return other;
	}
	return NULL;
}

/* If this run found the same, that finding replaces it, because its addresses
   are those of the hits, which may be of another block.  Each one replaces one
   finding only. */
static void
name_finding(struct hg_finding *f, const struct heap_findings *newer,
    const struct names *names, uint32_t wanted)
{
	struct hg_finding *other = find_newer(newer, names, wanted, f, true);

	if (other == NULL)
		other = find_newer(newer, names, wanted, f, false);
	if (other != NULL) {
		*f = *other;
		other->nbytes = 0;
	} else if (count_like(newer->one, newer->n, f) == 0) {
		name(f, names, wanted, true);
	}
}

/* Findings of programs that were killed before they examined their heap are
   missing. */
static void
name_all(struct heap_findings *found, const struct names *names,
    const struct heap_evidence *evidence)
{
	struct heap_findings newer;

	if (heap_evidence_take(evidence, &newer) < 0)
		return;
	for (uint32_t i = 0; i < names->n; i++) {
		const struct hg_wanted *w = &names->wanted[i];

		for (size_t k = 0; k < found->n; k++)
			if (!has_writer(&found->one[k]) &&
			    is_same(&found->one[k], &w->identity, &w->image,
			    w->offset))
				name_finding(&found->one[k], &newer, names, i);
	}
	free(newer.one);
}

/* --- one run --- */

static void
end_group(pid_t root)
{
	(void)kill(-root, SIGKILL);
}

/* Processes that the command left behind may have continued to run. */
static void
report_expired(struct serve *serve)
{
	if (wp_clock_ns() >= serve->until && serve->reason != NULL &&
	    strcmp(serve->reason, "time") == 0)
		session_warn(&serve->session, "a further run was ended, since "
		    "it took more than %d seconds and %d times as long as the "
		    "first", PATIENCE, TIMES);
}

/* Start the command, and serve it until it has ended. */
static int
serve_command(const struct heap_rerun *rerun, int input,
    struct wp_channel *channel, int fd)
{
	struct serve *serve = rerun->serve;
	int err;
	pid_t pid;

	if (preloaded_start_quiet(serve->options, input, &pid) != 0)
		return -ECHILD;
	serve->until = wp_clock_ns() + PATIENCE * SECOND + TIMES * rerun->took;
	serve->expire = end_group;
	if ((err = serve_open_program(serve, channel, fd, pid)) < 0)
		end_group(pid);
	else if (!preloaded_is_interrupted())
		serve_channel(serve);
	end_group(pid);
	(void)preloaded_wait(pid);
	report_expired(serve);
	serve_close_program(serve);
	return err;
}

static int
run_on_channel(const struct heap_rerun *rerun, const char *watching,
    const struct heap_evidence *evidence, int input)
{
	const struct options *options = rerun->serve->options;
	struct heap_channel channel;
	int err = heap_channel_open(&channel, options);

	if (err == 0 && (err = heap_channel_set(&channel, rerun->guard,
	    watching)) == 0 && (err = heap_evidence_set(evidence,
	    options)) == 0)
		err = serve_command(rerun, input, channel.at, channel.fd);
	(void)unsetenv(HG_VARIABLE);
	heap_channel_close(&channel);
	return err;
}

/* Whether nothing that appeared could be watched, which would be no different
   in another run. */
static bool
is_refused(const struct hg_evidence *e)
{
	return atomic_load(&e->refusals) > 0 && atomic_load(&e->watched) == 0;
}

/* 0; or -errno: another run would be of no use.  -EACCES: nothing could be
   watched. */
static int
run_once(const struct heap_rerun *rerun, const char *watching,
    struct heap_findings *found, struct coverage *coverage, bool any_number)
{
	struct names names = {0};
	struct heap_evidence evidence;
	int input, err = heap_evidence_make(&evidence);

	if (err == 0 && !want(evidence.at, found, any_number))
		err = -ENOENT;
	if (err < 0) {
		heap_evidence_close(&evidence);
		return err;
	}
	names.n = atomic_load(&evidence.at->nwanted);
	memcpy(names.wanted, evidence.at->wanted, sizeof(names.wanted));
	remote_session_act(rerun->serve->remote, take_hit, &names);
	if ((input = open_input(rerun->input)) < 0)
		err = -EINVAL;
	else
		err = run_on_channel(rerun, watching, &evidence, input);
	(void)session_flush(&rerun->serve->session, UINT64_MAX);
	remote_session_catch_up(rerun->serve->remote, -1);
	remote_session_act(rerun->serve->remote, NULL, NULL);
	if (heap_evidence_in_use(&evidence))
		heap_evidence_end_users(&evidence);
	heap_findings_unwatched(rerun->serve, evidence.at);
	(void)session_flush(&rerun->serve->session, UINT64_MAX);
	heap_evidence_cover(&evidence, coverage);
	name_all(found, &names, &evidence);
	if (err == 0 && is_refused(evidence.at))
		err = -EACCES;
	heap_evidence_close(&evidence);
	if (input >= 0)
		(void)close(input);
	return preloaded_is_interrupted() ? -EINTR : err;
}

static size_t
unnamed(const struct heap_findings *found)
{
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++)
		n += is_damage(&found->one[i]) &&
		    !is_named(found, &found->one[i]);
	return n;
}

static void
report_unnamed(const struct heap_rerun *rerun, size_t n, uint64_t runs,
    bool refused)
{
	if (n > 0 && preloaded_is_interrupted())
		session_warn(&rerun->serve->session, "the writers of %zu of "
		    "the findings are not known: a signal came, so the command "
		    "is not run again", n);
	else if (n > 0 && refused)
		session_warn(&rerun->serve->session, "the writers of %zu of "
		    "the findings are not known: in another run none of their "
		    "blocks could be watched", n);
	else if (n > 0)
		session_warn(&rerun->serve->session, "the writers of %zu of "
		    "the findings were not seen in %llu further run%s, in "
		    "which files, input or the order of threads may have "
		    "differed", n,
		    (unsigned long long)runs, runs == 1 ? "" : "s");
}

void
heap_rerun(const struct heap_rerun *rerun, struct heap_findings *found)
{
	const uint64_t given = rerun->serve->options->heap_runs;
	const uint64_t most = given == HEAP_RUNS_NONE ? HEAP_RUNS_USUAL :
	    given;
	struct coverage coverage = {0};
	struct wp_cause cause;
	char watching[PATH_MAX];
	uint64_t runs = 0;
	int err = 0;

	if (most == 0 || unnamed(found) == 0)
		return;
	if (was_read(rerun->input)) {
		session_warn(&rerun->serve->session, "the command has read "
		    "standard input, which is not a file, so it cannot be run "
		    "again to find the writers");
		return;
	}
	if (fire_check_processors(&cause) < 0) {
		session_warn(&rerun->serve->session, "the command is not run "
		    "again to find the writers: %s", cause.text);
		return;
	}
	if (heap_channel_library(watching) < 0)
		return;
	while (err == 0 && runs < most && unnamed(found) > 0 &&
	    !preloaded_is_interrupted())
		err = run_once(rerun, watching, found, &coverage, runs++ > 0);
	if (coverage.heap)
		(void)session_coverage(&rerun->serve->session, &coverage, 1);
	report_unnamed(rerun, unnamed(found), runs, err == -EACCES);
}
