/* program: one program that the helper serves.  See program.h. */
#include "helper/program.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "remote/remote_session.h"
#include "os/clock.h"
#include "util/complain.h"
#include "helper/serve.h"
#include "watch/aslr.h"
#include "watch/io_workers.h"
#include "processes/live_maps.h"
#include "processes/synthetic_records.h"
#include "watch/signal_check.h"
#include "proc/proc.h"
#include "proc/sharers.h"

/* ms for a child to report itself after its program has ended */
enum { APPEAR = 5000 };

/* Record the present mappings for the explainer, as the program may have ended
   when its first hit is explained.  A child that has ended already had its
   parent's. */
static void
learn(struct program *p, const struct program *parent)
{
	struct live_maps_origin origin;
	struct journal_mapped mapped;

	live_maps_origin(p->pid, &origin);
	mapped = (struct journal_mapped){
		.program = origin.program, .known = origin.known,
	};
	if (wp_proc_code(p->pid, &mapped.code) < 0 || serve_learn(p) < 0)
		mapped.code = 0;
	p->code_mapped = mapped.code == 0;
	if (mapped.code == 0 && parent != NULL)
		mapped.parent = parent->pid;
	session_mapped(&p->serve->session, p->pid, &mapped);
}

/* Whether other processes share its memory already; later ones are recorded.
   The process that starts a helper shares it until it ends, but writes to
   nothing of the program's; the helper is its child. */
static bool
is_lent(pid_t pid)
{
	const pid_t starter = getppid();
	struct wp_sharer *found;
	const int n = wp_sharers(&pid, 1, &found);
	const bool lent = n < 0 || n > 1 || (n == 1 && found[0].pid != starter);

	free(found);
	return lent;
}

struct program *
program_open(struct serve *serve, struct wp_channel *channel, int fd, pid_t pid,
    const struct program *parent)
{
	struct program *p = calloc(1, sizeof(*p));

	if (p == NULL || tracer_process_open(&p->tracer, pid) < 0) {
		free(p);
		return complain("out of memory"), NULL;
	}
	p->serve = serve;
	p->pid = pid;
	p->channel = channel;
	p->fd = fd;
	if ((p->pidfd = pidfd_open(pid, 0)) < 0) {
		(void)complain_errno(errno, "following process %d", pid);
		program_close(p);
		return NULL;
	}
	learn(p, parent);
	p->lent = parent == NULL && is_lent(pid);
	return p;
}

void
program_close(struct program *p)
{
	exec_monitor_end(&p->exec_monitor);
	tracer_process_close(p->tracer);
	inside_uptime_close(&p->presence);
	event_dups_close(&p->dups);
	if (p->pidfd >= 0)
		(void)close(p->pidfd);
	live_broker_forget(&p->serve->live, p->pid);
	free(p);
}

void
program_begin(struct program *p, bool at_once)
{
	exec_monitor_begin(&p->exec_monitor, p->channel, p->pid, p->pidfd);
	if (at_once)
		exec_monitor_enable(&p->exec_monitor);
}

void
program_disable(struct program *p)
{
	atomic_store(&p->channel->off, 1);
	event_dups_disable(&p->dups);
}

static void
forget(struct program *p, unsigned index, uint64_t time)
{
	if (p->gap[index] < time)
		p->gap[index] = time;
}

void
program_forget(struct program *p, uint64_t time)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		forget(p, i, time);
}

void
program_mapped(struct program *p, const struct sideband_mapping *map)
{
	p->mapped++;
	if (map->code) {
		p->code_mapped = true;
		p->code_time = map->time;
	}
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_cell_watch *w = &p->channel->watch[i].what;

		if (w->addr < map->end && map->start < w->addr + w->len)
			forget(p, i, map->time);
	}
}

static void
learn_record(void *arg, const struct ex_record *record)
{
	const struct program *p = arg;

	session_learn(&p->serve->session, record, p->code_time);
}

bool
program_learn_code(struct program *p)
{
	struct synthetic_records records = {0};

	if (p->code_mapped && synthetic_records_take(&records, p->pid) == 0) {
		synthetic_records_each(&records, learn_record, p);
		p->code_mapped = false;
	}
	synthetic_records_free(&records);
	return !p->code_mapped;
}

/* Warnings are kept until the report has begun. */
static void
report_warning(struct program *p)
{
	uint32_t warned = atomic_load(&p->channel->warned);
	char text[sizeof(p->channel->warning)];

	if (warned == p->warned || !p->serve->started)
		return;
	p->warned = warned;
	memcpy(text, p->channel->warning, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	session_warn(&p->serve->session, "%s", text);
	(void)session_flush(&p->serve->session, 0);
}

/* Hits without a waiting thread are explained together.  There is room for one
   warning only, and the next one may come as the hit is reported. */
static void
take_cells(struct program *p)
{
	struct wp_cell *cell;
	unsigned n = 0;

	while (n < WP_CELLS && (cell = wp_channel_next(p->channel)) != NULL) {
		report_warning(p);
		serve_take_hit(p, cell);
		wp_channel_done(p->channel, cell);
		n++;
	}
	if (n > 0)
		(void)session_flush(&p->serve->session, UINT64_MAX);
}

static void
doubt_unwatched(struct program *p)
{
	if (p->serve->started && !p->serve->selective &&
	    atomic_load(&p->channel->unwatched) != 0)
		session_doubt(&p->serve->session, "in process %d a watch was "
		    "not on in all threads, all the time", p->pid);
}

/* Report that some hits may not have been counted. */
static void
report_gaps(struct program *p)
{
	uint32_t gaps = atomic_load(&p->channel->gaps);

	if (gaps == p->gaps || !p->serve->started)
		return;
	p->gaps = gaps;
	session_warn(&p->serve->session, "the process that traces the "
	    "program's threads was killed, and replaced: accesses in between "
	    "may be neither reported nor counted as lost");
	session_doubt(&p->serve->session, "the process that traces the "
	    "program's threads was killed");
	(void)session_flush(&p->serve->session, 0);
}

void
program_worker(struct program *p)
{
	struct session *s = &p->serve->session;
	bool unseen = false;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		unseen |= atomic_load(&p->channel->watch[i].serial) != 0 &&
		    p->channel->watch[i].signal != SIGTRAP;
	if (!unseen || p->worker_reported)
		return;
	p->worker_reported = true;
	io_workers_report(s, p->pid, "which get no signals, so their accesses "
	    "are not reported", "--inside");
	(void)session_flush(s, 0);
}

/* Report the first child that was not watched.  Such children matter only if
   the run has to be vouched for. */
static void
report_child(struct program *p)
{
	const bool forked = atomic_load(&p->channel->children) != 0;
	struct serve *serve = p->serve;

	if (!serve->ours || serve->selective || serve->child_reported ||
	    !serve->started ||
	    serve->reason != NULL || (!forked &&
	    atomic_load(&p->channel->strangers) == 0))
		return;
	serve->child_reported = true;
	session_warn(&serve->session, "process %d created a child by %s",
	    p->pid, !forked ? "vfork(2), clone(2) or the like, which is not "
	    "watched" : serve->options->follow ? "fork(2), in which not all of "
	    "its watches are open" : "fork(2), which is not watched; -f "
	    "watches it too");
	session_doubt(&serve->session, "a child that process %d created%s was "
	    "not watched%s", p->pid, forked ? " by fork(2)" : "",
	    forked && serve->options->follow ? " by all of its watches" : "");
	(void)session_flush(&serve->session, 0);
}

/* Report that more children existed at a time than the table holds. */
static void
report_forgotten(struct program *p)
{
	struct serve *serve = p->serve;

	if (p->forgotten_reported || !serve->ours || serve->selective ||
	    !serve->started ||
	    serve->reason != NULL || atomic_load(&p->channel->forgotten) == 0)
		return;
	p->forgotten_reported = true;
	session_warn(&serve->session, "process %d created so many children "
	    "that some may not be watched: more than %d at a time were waiting "
	    "for it", p->pid, WP_MAKINGS_MAX);
	session_doubt(&serve->session, "some of the children of process %d may "
	    "not have been watched", p->pid);
	(void)session_flush(&serve->session, 0);
}

/* Warn if the kernel's accesses are not seen. */
static void
report_unseen(struct program *p)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_channel_watch *w = &p->channel->watch[i];

		if (atomic_load(&w->serial) == 0 || w->kernel != 0 ||
		    w->what.access == WP_EXEC)
			continue;
		session_warn(&p->serve->session, "the kernel's accesses on the "
		    "program's behalf are not watched: not permitted, or not "
		    "seen this way; --user-only accepts that");
		(void)session_flush(&p->serve->session, 0);
		return;
	}
}

/* Warn of addresses that are not mapped yet. */
static void
report_unmapped(struct program *p)
{
	const struct options *o = p->serve->options;

	for (size_t i = 0; i < o->nspecs; i++) {
		const struct spec *spec = &o->spec[i];
		uint64_t at = spec->addr;

		if (spec->symbol == NULL && wp_proc_covers(p->pid, &at,
		    spec->len > 0 ? spec->len : 1) == 0)
			aslr_warn_unmapped(&p->serve->session, o, i);
	}
	(void)session_flush(&p->serve->session, 0);
}

/* The program of the command cannot be watched as requested. */
static void
refuse(struct program *p, const struct wp_request *request)
{
	char text[sizeof(request->text)];

	memcpy(text, request->text, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	p->serve->refused = true;
	(void)complain("%s", text);
}

/* A preloaded library has opened its watches, or failed to.  Those that are
   open are kept.  Returns 1 if they stay even if the program closes them. */
static int
take_armed(struct program *p, const struct wp_request *request)
{
	bool kept;

	if (request->text[0] != '\0' && p == p->serve->root) {
		refuse(p, request);
		return 0;
	}
	if (p->armed)
		return 0;
	p->armed = true;
	exec_monitor_enable(&p->exec_monitor);
	kept = event_dups_take(&p->dups, p->channel, p->pidfd);
	if (kept && p->serve->ours)
		inside_uptime_begin(&p->presence, &p->dups, p->pid,
		    p != p->serve->root);
	if (p->serve->reason != NULL)
		program_disable(p);
	if (!p->serve->started)
		serve_start(p->serve);
	if (!p->serve->ours || p != p->serve->root)
		return kept;
	if (!p->serve->options->user_only)
		report_unseen(p);
	report_unmapped(p);
	return kept;
}

/* Other requests are handled by the process that traces the program. */
static void
answer(struct program *p)
{
	struct wp_request *request = &p->channel->request;

	if (!wp_channel_asked(p->channel))
		return;
	switch (request->what) {
	case WP_ASK_RESOLVE:
		wp_channel_answer(p->channel, serve_resolve(p, request));
		break;
	case WP_ASK_ARMED:
		wp_channel_answer(p->channel, take_armed(p, request));
		break;
	default:
		break;
	}
}

/* The signal that reports hits, or 0 if nothing is watched. */
static int
signal_of_hits(const struct wp_channel *channel)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		uint32_t sig = channel->watch[i].signal;

		if (atomic_load(&channel->watch[i].serial) != 0 &&
		    sig > 0 && sig <= (uint32_t)SIGRTMAX)
			return (int)sig;
	}
	return 0;
}

static void
report_suspicion(struct program *p)
{
	p->suspicion_reported = true;
	session_warn(&p->serve->session, "%s", p->suspicion);
	(void)session_flush(&p->serve->session, 0);
}

/* Called when nothing has happened for this many ticks.  Something suspicious
   is reported once, if two checks in a row find it.  Whether the signal is
   caught is checked each time, since the next access may end the program. */
static void
look(struct program *p, unsigned idle)
{
	const bool far = idle <= 2 || idle % 20 == 0;
	char why[sizeof(p->suspicion)] = "";
	int sig;

	if (idle == 0 || p->exec_reported || (p->serve->ours && !p->armed))
		return;
	if (far && !signal_check_has(p->pid, p->fd)) {
		atomic_store(&p->exec_monitor.executed, true);
		return;
	}
	if (p->suspicion_reported || (sig = signal_of_hits(p->channel)) == 0)
		return;
	if (!signal_check_blocked(p->channel, sig, far, why, sizeof(why)) &&
	    !far)
		return;
	if (why[0] != '\0' && strcmp(why, p->suspicion) == 0)
		report_suspicion(p);
	memcpy(p->suspicion, why, sizeof(why));
}

static void
report_missed(struct program *p, uint64_t missed)
{
	session_lost(&p->serve->session, missed);
	session_warn(&p->serve->session, "%llu access%s counted, but the "
	    "program got no signal of %s: it was blocked, ignored, taken by "
	    "another or reset to its default action, or the program ended "
	    "before it came", (unsigned long long)missed, missed == 1 ? " was" :
	    "es were", missed == 1 ? "it" : "them");
}

/* The number of accesses that did not reach the program: according to the
   instructions if all are known, else to the program, or to the events' counts
   if it has not got to that. */
static uint64_t
count_missed(const struct program *p)
{
	const struct wp_channel *channel = p->channel;
	uint64_t sum = atomic_load(&channel->undelivered);

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_channel_watch *w = &channel->watch[i];
		const uint64_t reported = atomic_load(&w->hits) - w->before;
		uint64_t counted, missed;

		if (!event_dups_counted(&p->dups, i, &counted))
			continue;
		if (access_tally_missed(&p->tally, channel, i, counted,
		    &missed))
			sum += missed - atomic_load(&w->undelivered);
		else if (atomic_load(&channel->goodbye) == 0)
			sum += counted > reported ? counted - reported : 0;
	}
	return sum;
}

static bool
is_last(const struct program *p)
{
	const struct program *other = p->serve->first;

	while (other != NULL && (other == p || other->ended))
		other = other->next;
	return other == NULL;
}

unsigned
program_watch_nth(const struct program *p, unsigned index)
{
	const struct wp_channel_watch *all = p->channel->watch;
	unsigned nth = 0;

	for (unsigned i = 0; i < index; i++)
		nth += atomic_load(&all[i].serial) != 0 &&
		    watch_registry_is_like(&all[i].what, &all[index].what);
	return nth;
}

/* The report's number of the watch with this index in the channel. */
static unsigned
watch_number(struct program *p, unsigned index)
{
	struct serve *serve = p->serve;
	unsigned n;
	const int slot = watch_registry_slots(&serve->registry,
	    &serve->session, p->pid, &p->channel->watch[index].what,
	    program_watch_nth(p, index), &n);

	return slot < 0 ? UINT_MAX : serve->session.slots[slot].watch->id - 1;
}

static bool
has_executed(struct program *p)
{
	return atomic_load(&p->exec_monitor.executed) ||
	    atomic_load(&p->channel->executed) != 0;
}

/* Report why it is not known for how long its watches were on. */
static void
report_unmeasured(struct program *p)
{
	const int err = p->dups.err != 0 ? p->dups.err :
	    p->presence.clock < 0 ? -p->presence.clock : 0;
	struct wp_cause cause;

	if (err == 0)
		return;
	(void)wp_cause_errno(&cause, "looking at its events", err);
	if (err == EBUSY)
		(void)snprintf(cause.text, sizeof(cause.text),
		    "it had several threads when it began");
	session_warn(&p->serve->session, "for how long the watches of process "
	    "%d were on is not known: %s", p->pid, cause.text);
}

/* It is not known when a program executed another one. */
void
program_measure(struct program *p)
{
	struct wp_uptime uptime = {0};

	if (p->measured || !p->armed || !p->serve->ours ||
	    p->serve->reason != NULL)
		return;
	p->measured = true;
	(void)serve_read_sideband(p->serve);
	if (!has_executed(p)) {
		inside_uptime_end(&p->presence, &uptime);
		if (!sideband_knows_tasks(&p->serve->sideband))
			uptime.threads = 0;
		if (!uptime.known)
			tracer_process_uptime(p->tracer, &uptime);
		if (!uptime.known)
			report_unmeasured(p);
	}
	uptime.executed = has_executed(p);
	if (uptime.worst > 0)
		uptime.watch = watch_number(p, uptime.watch);
	wp_uptime_join(&p->serve->uptime, &uptime);
}

/* Take what the program left, and count what did not reach it.  Returns false
   if that is not known yet; other programs are not made to wait for it. */
static bool
take_rest(struct program *p)
{
	struct wp_channel *channel = p->channel;
	uint64_t missed;

	if (is_last(p))
		p->serve->backpressure.fd = -1;	/* no thread waits any more */
	tracer_process_await_end(p->tracer);
	while (wp_channel_next(channel) != NULL || wp_channel_skip(channel))
		take_cells(p);
	if (remote_session_is_behind(p->serve->remote))
		return false;
	program_measure(p);
	p->serve->session.handled += atomic_load(&channel->handled);
	report_warning(p);
	report_gaps(p);
	doubt_unwatched(p);
	report_child(p);
	report_forgotten(p);
	serve_doubt_children(p->serve);
	if (p->suspicion[0] != '\0' && !p->suspicion_reported &&
	    p->serve->started && atomic_load(&channel->goodbye) == 0)
		report_suspicion(p);
	missed = count_missed(p);
	if (missed != 0 && p->serve->started && p->serve->reason == NULL)
		report_missed(p, missed);
	return true;
}

/* Whether the program has executed another one, and nothing is left to do.  A
   command of our own is served to its end in any case. */
static bool
has_left(struct program *p)
{
	if (!has_executed(p))
		return false;
	if (!p->serve->ours || p != p->serve->root)
		return true;
	if (!p->exec_reported && p->serve->started &&
	    p->serve->reason == NULL) {
		session_warn(&p->serve->session, "process %d executed another "
		    "program, where addresses mean something else: its "
		    "watches have ended", p->pid);
		session_doubt(&p->serve->session, "process %d executed another "
		    "program, which was not watched", p->pid);
		(void)session_flush(&p->serve->session, 0);
	}
	p->exec_reported = true;
	return false;
}

/* If the kernel does not report new processes, wait some time for a child that
   has not reported itself yet. */
static bool
awaits_unheard(struct program *p)
{
	struct serve *serve = p->serve;

	if (serve->sideband.tasks.rings != NULL || serve->selective ||
	    p->child_unheard_reported ||
	    !serve->started || !wp_creation_unheard(p->channel, serve->ours))
		return false;
	if (p->ended_at == 0)
		p->ended_at = wp_clock_ns();
	if (wp_clock_ns() - p->ended_at < APPEAR * 1000000ull)
		return true;
	p->child_unheard_reported = true;
	session_warn(&serve->session, "process %d was about to create a child "
	    "by fork(2) that has not been heard of since: if there is one, it "
	    "is not watched", p->pid);
	session_doubt(&serve->session, "a child of process %d may not have "
	    "been watched", p->pid);
	return false;
}

/* Whether a child that is to be watched has not asked for it yet. */
static bool
awaits_child(struct program *p)
{
	(void)serve_read_sideband(p->serve);
	return p->serve->reason == NULL && (wp_creation_pending(p->channel) ||
	    awaits_unheard(p));
}

void
program_step(struct program *p, unsigned idle)
{
	const bool ended = exec_monitor_ended(&p->exec_monitor),
	    left = has_left(p);

	/* until then a child may need something of it */
	if ((ended || left) && !awaits_child(p)) {
		p->ended = take_rest(p);
		return;
	}
	take_cells(p);
	report_warning(p);
	answer(p);
	tracer_process_request(p->tracer, p->channel);
	report_gaps(p);
	doubt_unwatched(p);
	report_child(p);
	report_forgotten(p);
	if (!ended)
		look(p, idle);
}
