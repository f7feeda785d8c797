/* counted_hits: hits that are only counted. */
#include "run/counted_hits.h"

#include <sys/mman.h>

#include "os/clock.h"

enum {
	EACH_MS = 50,
	SHOW_EACH = 8,		/* show totals after this many readings */
};

void
counted_hits_learn(const struct run *run, const struct ex_record *r)
{
	const bool mapped = r->type == PERF_RECORD_MMAP ||
	    r->type == PERF_RECORD_MMAP2;
	const bool born = r->type == PERF_RECORD_FORK &&
	    r->task.pid != r->task.ppid;

	if (mapped && (r->mmap.prot & PROT_EXEC) != 0)
		wp_target_remapped(run->target, r->pid, r->mmap.start,
		    r->mmap.start + r->mmap.len, r->time);
	else if (born)	/* the pid may have belonged to another process */
		wp_target_remapped(run->target, r->task.pid, 0, UINT64_MAX,
		    r->task.time);
}

/* The same, with the session's index of the watch. */
static struct wp_target_tally
access_tally_of_session(const struct run *run,
    const struct wp_target_tally *tally)
{
	struct wp_target_tally it = *tally;

	it.watch = (uint32_t)run_session_index(run, it.watch - 1);
	return it;
}

static void
take(void *arg, const struct wp_target_tally *tally)
{
	struct run *run = arg;
	const struct wp_target_tally it = access_tally_of_session(run, tally);

	remote_session_tally(run->remote, &it, false);
}

static void
save(void *arg, const struct wp_target_tally *tally)
{
	struct run *run = arg;
	const struct wp_target_tally it = access_tally_of_session(run, tally);

	remote_session_tally(run->remote, &it, true);
}

void
counted_hits_look(struct run *run, uint64_t horizon)
{
	const long now = wp_clock_ms();

	if (!options_tally(run->options) || now < run->counted_hits_due)
		return;
	run->counted_hits_due = now + EACH_MS;
	if (wp_target_look_at_tallies(run->target, horizon))
		counted_hits_take(run);
	if (run->options->top && ++run->counted_hits_looks % SHOW_EACH == 0)
		wp_target_show_tallies(run->target, take, run);
}

void
counted_hits_take(struct run *run)
{
	if (options_tally(run->options))
		wp_target_take_tallies(run->target, take, run);
}

void
counted_hits_save(struct run *run)
{
	if (options_tally(run->options))
		wp_target_take_tallies(run->target, save, run);
}
