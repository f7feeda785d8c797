/*
 * journal_reader: repeats, for each entry of a journal, the call of a session.h
 * function that the entry stands for.
 */
#include "explainer/journal_reader.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "broker/shared_memory.h"
#include "explainer/ask.h"
#include "explainer/inside_hits.h"
#include "explainer/questions.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "proc/sharers.h"
#include "session/environment.h"
#include "session/explained_session.h"
#include "report/summary.h"
#include "space/space.h"
#include "spec/spec.h"
#include "processes/live_maps.h"

/* A process whose mappings have to be read. */
struct unreported {
	struct live_maps maps;
	struct hit_order order;	/* of the hits of its channel */
	uint64_t mapped;	/* as in struct channel_hit */
};

struct reader {
	struct session *session;
	struct broker_shared *shared;
	uint8_t *journal;	/* size bytes, or NULL */
	size_t size;
	bool mapped;
	struct ex_formats *formats;	/* of the records, or NULL */
	struct ex_formats *any;	/* for records without an event, or NULL */
	void *unreported;	/* of search.h: struct unreported */
	uint64_t began;		/* of the report, ns */
	uint64_t number;	/* of the sample being explained, or 0 */
	struct journal_start start;	/* of the report */
	bool ended;
	int status;
};

__attribute__((noreturn))
static void
out_of_memory(void)
{
	_exit(BROKER_NO_MEMORY);
}

/* --- results for watchctl --- */

/* Publish what has become of the sample, as far as known. */
static void
publish_sample(struct reader *r)
{
	if (r->number != 0)
		r->shared->sample[r->number % BROKER_SAMPLES_MAX] =
		    (struct broker_sample){
			r->number, ex_explain_begun(r->session->explainer),
		    };
}

/* Send the variables of a hit for the command that is run at it. */
static void
give_details(const struct reader *r, const struct ex_hit *hit)
{
	const struct session *s = r->session;
	struct buffer environment = {0};

	if (s->options->on_hit.what == ON_HIT_REPORT || s->recall != NULL ||
	    (s->policy != NULL && !hit->stray))
		return;
	if (s->options->on_hit.what == ON_HIT_EXEC)
		environment_put(&environment, &s->report.begin, hit,
		    sizeof(r->shared->report));
	ask_details(hit->begun, hit->addr, environment.bytes, environment.len);
	buffer_free(&environment);
}

/* Called before the hit is written, because then it counts. */
static void
publish_hit(void *arg, const struct ex_hit *hit, enum session_fate fate)
{
	static const uint32_t outcome[] = {
		[SESSION_REPORTED] = BROKER_REPORTED,
		[SESSION_REJECTED] = BROKER_REJECTED,
		[SESSION_UNCHANGED] = BROKER_UNCHANGED,
		[SESSION_SKIPPED] = BROKER_SKIPPED,
		[SESSION_BEYOND] = 0,
	};
	struct reader *r = arg;

	if (fate == SESSION_REPORTED)
		give_details(r, hit);
	publish_sample(r);
	r->shared->hit[hit->begun % BROKER_SAMPLES_MAX] = (struct broker_hit){
		.begun = hit->begun, .seq = hit->seq,
		.outcome = outcome[fate] | (hit->stray ? BROKER_STRAY : 0) |
		    (hit->unjudged ? BROKER_UNJUDGED : 0) |
		    (hit->begun == r->session->ended ? BROKER_UNTIL : 0),
		.watch = ex_hit_place(hit)->id - 1,
		.stack = hit->stack == NULL ? UINT32_MAX : hit->stack->index,
	};
}

/* --- entries --- */

static void
read_format(struct reader *r, const struct journal_entry *e)
{
	const struct perf_event_attr *attr = (const void *)e->bytes;
	const uint64_t *ids = (const void *)(e->bytes + sizeof(*attr));

	if (r->formats == NULL && (r->formats = ex_formats_new()) == NULL)
		out_of_memory();
	(void)ex_formats_add(r->formats, attr, ids,
	    (e->len - sizeof(*attr)) / sizeof(*ids));
	if (r->any == NULL && (r->any = ex_formats_new()) != NULL)
		(void)ex_formats_add(r->any, attr, NULL, 0);
}

static void
read_ids(struct reader *r, const struct journal_entry *e)
{
	if (r->formats != NULL)
		(void)ex_formats_ids(r->formats, (int)e->value[0],
		    (const void *)e->bytes, e->len / sizeof(uint64_t));
}

static bool
decode(const struct reader *r, const void *bytes, size_t len,
    struct ex_record *record)
{
	return r->formats != NULL &&
	    ex_record_decode(r->formats, bytes, len, record) > 0;
}

static void
read_learn(struct reader *r, const struct journal_entry *e)
{
	struct ex_record record;

	if (e->value[0] != 0)
		questions_learn(r->session->space, e->bytes, e->len);
	else if (decode(r, e->bytes, e->len, &record))
		(void)ex_explain(r->session->explainer, &record);
}

/* The name of what is at an address, allocated; NULL if it has none. */
static char *
symbol_of(const struct reader *r, pid_t pid, const struct journal_watch *w)
{
	struct ex_process *process = ex_space_process(r->session->space, pid);
	struct spec_place place = {.symbol = NULL};
	char text[] = "";
	const struct spec spec = {
		.addr = w->addr, .len = w->len,
		.access = (enum wp_access)w->access, .text = text,
	};

	if (process == NULL || spec_resolve(&spec, process, &place, NULL) < 0)
		return NULL;
	return place.symbol;
}

static void
read_watch(struct reader *r, const struct journal_entry *e)
{
	const struct journal_watch *w = (const void *)e->bytes;
	char *found = e->tid == 0 ? NULL : symbol_of(r, e->tid, w);

	session_of_process(r->session, w->number, w->pid, w->comm);
	session_pending(r->session, w->pending);
	session_local(r->session, w->local, w->block);
	session_part(r->session, w->whole);
	if (w->whole == 0)
		session_moves(r->session, w->moves, w->since);
	else if (w->object != 0)
		session_instance(r->session, w->object, w->since);
	if (session_add_watch(r->session, w->text, w->symbol == 0 ? found :
	    w->text + w->symbol, w->addr, w->len, (enum wp_access)w->access,
	    w->slots) < 0)
		out_of_memory();
	r->session->watches[r->session->nwatches - 1]->freed = w->freed;
	r->session->watches[r->session->nwatches - 1]->freed_by = w->freed_by;
	free(found);
}

static void
read_slot(struct reader *r, const struct journal_entry *e)
{
	const struct journal_slot *slot = (const void *)e->bytes;

	if (session_add_slot(r->session, slot->watch, slot->addr,
	    slot->len) < 0)
		out_of_memory();
}

static void
read_object(struct reader *r, const struct journal_entry *e)
{
	const char *text = (const char *)e->bytes;
	struct spec spec = {.text = NULL};
	const bool good = e->len > 0 && text[e->len - 1] == '\0' &&
	    spec_parse(text, WP_WRITE, &spec, NULL) == 0;

	(void)explained_session_object(r->session, e->tid, good ? &spec : NULL,
	    e->value[0], e->value[1]);
	if (good)
		spec_free(&spec);
}

static void
read_values(struct reader *r, const struct journal_entry *e)
{
	const uint64_t flags = e->value[0];
	const struct ex_value_options values = {
		.read = (flags & JOURNAL_READS) != 0 ? wp_proc_read : NULL,
		.now = wp_clock_ns, .shares = wp_sharers_has,
		.follows = (flags & JOURNAL_FOLLOWS) != 0,
		.at_once = (flags & JOURNAL_AT_ONCE) != 0,
		.crowds = (flags & JOURNAL_CROWDS) != 0,
		.in_order = (flags & JOURNAL_IN_ORDER) != 0,
	};

	if (values.in_order)	/* the hits of a program that watches itself */
		ask_quickly();
	if (ex_explainer_values(r->session->explainer, &values) < 0)
		out_of_memory();
}

static void
read_hints(struct reader *r, const struct journal_entry *e)
{
	const struct ex_hints hints = {.tid = e->tid, .stopped = true};

	ex_explain_hints(r->session->explainer, e->tid != 0 ? &hints : NULL);
}

static const struct ex_watch *
watch_of(const struct reader *r, const struct journal_entry *e)
{
	return r->session->watches[e->value[0]];
}

static void
read_start(struct reader *r, const struct journal_entry *e)
{
	const struct journal_start *it = &r->start;
	struct report_start start;

	memcpy(&r->start, e->bytes, sizeof(r->start));
	r->start.origin.host[sizeof(r->start.origin.host) - 1] = '\0';
	start = (struct report_start){
		.pid = it->pid, .mode = it->mode,
		.comm = it->comm[0] != '\0' ? it->comm : NULL,
		.delivery = it->delivery[0] != '\0' ? it->delivery : NULL,
		.threads = it->threads, .frozen_ms = it->frozen_ms,
		.time = it->time, .wall = it->wall, .origin = it->origin,
	};

	r->began = it->time;
	session_start(r->session, &start);
	if (strncmp(it->delivery, "bpf", sizeof(it->delivery)) == 0 &&
	    r->session->explainer != NULL)
		ex_explain_listen(r->session->explainer,
		    options_tally(r->session->options) ?
		    &ask_counting_listener : &ask_listener);
}

static int
compare_unreported(const void *a, const void *b)
{
	const struct unreported *x = a, *y = b;

	return ex_compare((uint64_t)x->maps.pid, (uint64_t)y->maps.pid);
}

/* NULL if the process's mappings are reported by records. */
static struct unreported *
find_unreported(struct reader *r, pid_t pid)
{
	const struct unreported key = {.maps.pid = pid};
	struct unreported **found = tfind(&key, &r->unreported,
	    compare_unreported);

	return found == NULL ? NULL : *found;
}

static void
inherit_maps(const struct reader *r, pid_t pid, pid_t parent)
{
	const struct ex_record record = {
		.type = PERF_RECORD_FORK,
		.task = {pid, parent, pid, parent, 0},
	};

	ex_space_learn(r->session->space, &record);
}

static void
read_mapped(struct reader *r, const struct journal_entry *e)
{
	const struct journal_mapped *it = (const void *)e->bytes;
	const struct live_maps_origin origin = {
		.program = it->program, .known = it->known, .code = it->code,
	};
	struct unreported *known = find_unreported(r, e->tid);
	struct unreported *process = known != NULL ? known :
	    malloc(sizeof(*process));

	if (it->parent != 0)
		inherit_maps(r, e->tid, it->parent);
	if (process == NULL)
		out_of_memory();
	memset(process, 0, sizeof(*process));
	live_maps_begin(&process->maps, r->session->space, e->tid, &origin);
	process->mapped = UINT64_MAX;
	if (known == NULL && tsearch(process, &r->unreported,
	    compare_unreported) == NULL)
		out_of_memory();
}

static void
read_record(struct reader *r, const struct journal_entry *e)
{
	struct unreported *process;
	struct ex_record record;

	if (!decode(r, e->bytes, e->len, &record))
		return;
	if (record.type == PERF_RECORD_SAMPLE &&
	    (process = find_unreported(r, record.pid)) != NULL)
		live_maps_check(&process->maps, &record.sample);
	r->number = e->value[0];
	if (session_record(r->session, &record))
		publish_sample(r);
	r->number = 0;
}

/* Read what happened to an object. */
static void
read_instance(struct reader *r, const struct journal_entry *e)
{
	struct session *s = r->session;
	struct object_event event;
	struct ex_record record;

	memcpy(&event, e->bytes, sizeof(event));
	event.stack = NULL;
	if (e->len > sizeof(event) && r->any != NULL && s->explainer != NULL &&
	    ex_record_decode(r->any, e->bytes + sizeof(event), e->len -
	    sizeof(event), &record) > 0)
		event.stack = ex_explain_sample(s->explainer, &record,
		    event.what != OBJECT_FREED);
	if (s->started)
		session_object_event(s, &event, NULL, 0);
}

/* Not needed if the mappings at the hit are known: the process may have mapped
   other code since. */
static void
check_maps(struct unreported *process, const struct channel_hit *hit,
    const struct ex_sample *sample)
{
	if (!hit->code_known && process->mapped == hit->mapped)
		live_maps_check_again(&process->maps, sample);
	else if (!hit->code_known)
		live_maps_check(&process->maps, sample);
	process->mapped = hit->mapped;
}

static void
publish_channel_hit(struct reader *r, const struct broker_channel_hit *found)
{
	r->shared->channel_hit[found->number % BROKER_CHANNEL_HITS_MAX] =
	    *found;
}

static void
send_reply(const struct journal_entry *e, const char *text)
{
	struct broker_message reply = {
		.what = BROKER_REPLY, .value = {e->value[0]},
	};

	(void)snprintf(reply.text, sizeof(reply.text), "%s", text);
	ask_send(&reply);
}

static void
read_channel_hit(struct reader *r, const struct journal_entry *e)
{
	const struct channel_hit *hit = (const void *)e->bytes;
	const size_t at = channel_hit_size(hit->nwatches);
	struct unreported *process = find_unreported(r, hit->pid);
	struct broker_channel_hit found = {.unknown = 1};
	char reply[BROKER_BYTES_MAX] = "";
	struct ex_record record;

	found.begun = ex_explain_done(r->session->explainer);
	if (process != NULL && decode(r, e->bytes + at, e->len - at, &record)) {
		check_maps(process, hit, &record.sample);
		inside_hits_report(r->session, &process->order, hit, &record,
		    r->began, &found, reply);
	}
	found.number = e->value[0];
	publish_channel_hit(r, &found);
	if ((hit->flags & WP_CELL_REPLY) != 0)
		send_reply(e, reply);
}

/* It is not known what accesses have left in the meantime. */
static void
doubt_all(struct session *s)
{
	for (size_t i = 0; i < s->nwatches && s->explainer != NULL; i++)
		ex_explain_doubt(s->explainer, s->watches[i], EX_MISSED);
}

static void
read_resume(struct reader *r, const struct journal_entry *e)
{
	const struct journal_resume *it = (const void *)e->bytes;
	struct session *s = r->session;

	s->resuming = true;
	s->reported = s->written = s->report.written = it->reported;
	s->before = it->reported + it->rejected + it->unchanged + it->thinned;
	s->rejected = it->rejected;
	s->unchanged = it->unchanged;
	s->thinned = it->thinned;
	s->released_unknown = true;
	if (!hit_filter_resume(s->filter, &it->place, it->count, it->ncounts))
		out_of_memory();
	s->full = session_is_full(s);
	s->stray = it->stray;
	s->unjudged = it->unjudged;
	s->dropped = it->dropped;
}

/* This is the end of what another explainer had explained; its values are
   lost. */
static void
read_missed(struct reader *r, const struct journal_entry *e)
{
	(void)e;
	explained_session_resumed(r->session);
	doubt_all(r->session);
}

static void
read_foresee(struct reader *r, const struct journal_entry *e)
{
	struct ex_record record;

	if (decode(r, e->bytes, e->len, &record))
		ex_space_foresee(r->session->space, &record);
}

static void
read_left_out(struct reader *r, const struct journal_entry *e)
{
	r->session->thinned += e->value[0];
	doubt_all(r->session);
}

/* By what is known now, the hit may not be of this watch any more. */
static void
recall_channel_hit(struct reader *r, const struct channel_hit *hit,
    const struct ex_record *record, uint64_t watch)
{
	const struct ex_tally *tally = ex_explain_tally(r->session->explainer);
	const uint64_t before = tally->samples;

	inside_hits_recall(r->session, hit, record, watch);
	if (tally->samples > before)
		publish_sample(r);
}

static void
read_recall(struct reader *r, const struct journal_entry *e)
{
	const struct journal_recall *it = (const void *)e->bytes;
	const struct summary_row row = {
		.count = it->count, .first_seq = it->first_seq,
		.first = it->first, .last = it->last,
		.nthreads = it->nthreads, .threads = it->thread,
	};
	const size_t at = journal_padded(sizeof(*it) +
	    it->nthreads * sizeof(*it->thread));
	const struct channel_hit *hit = e->value[1] == 0 ? NULL :
	    (const void *)(e->bytes + at);
	const size_t from = at + (hit == NULL ? 0 :
	    channel_hit_size(hit->nwatches));
	struct ex_record record;

	if (!decode(r, e->bytes + from, e->len - from, &record))
		return;
	r->session->recall = &row;
	r->number = e->value[0];
	if (hit == NULL) {
		(void)ex_explain(r->session->explainer, &record);
		publish_sample(r);
	} else {
		recall_channel_hit(r, hit, &record, e->value[1] - 1);
	}
	(void)ex_explain_flush(r->session->explainer, UINT64_MAX);
	r->number = 0;
	r->session->recall = NULL;
}

static void
read_threads(struct reader *r, const struct journal_entry *e)
{
	const struct wp_thread_count *counts = (const void *)e->bytes;

	if (session_thread_counts(r->session, counts,
	    e->len / sizeof(*counts)) < 0)
		out_of_memory();
}

static void
read_end(struct reader *r, const struct journal_entry *e)
{
	const struct journal_end *it = (const void *)e->bytes;
	struct session *s = r->session;

	s->lost = it->lost;
	s->handled = it->handled;
	s->merged = it->merged;
	s->late_unknown = it->late_unknown;
	s->skipped = it->skipped;
	s->uptime = it->uptime;
	s->quiet = it->quiet;
	session_note(s, it->err);
	memcpy(s->doubt, it->doubt, sizeof(s->doubt));
	r->status = session_end(s, it->reason[0] == '\0' ? NULL : it->reason,
	    it->status, it->ncounts == 0 ? NULL : it->count);
	r->ended = true;
}

static void
read_damage(struct reader *r, const struct journal_entry *e)
{
	if (e->len == sizeof(struct hg_finding))
		session_damage(r->session, (const void *)e->bytes);
}

static void
read_ready(struct reader *r, const struct journal_entry *e)
{
	(void)e;
	if (session_ready(r->session) < 0)
		out_of_memory();
	r->session->given = publish_hit;
	r->session->given_arg = r;
}

static void
read_unseen(struct reader *r, const struct journal_entry *e)
{
	ex_explain_doubt(r->session->explainer, watch_of(r, e), EX_UNSEEN);
}

static void
read_missed_part(struct reader *r, const struct journal_entry *e)
{
	ex_explain_doubt(r->session->explainer, watch_of(r, e), EX_MISSED);
}

static void
read_known(struct reader *r, const struct journal_entry *e)
{
	ex_explain_known(r->session->explainer, watch_of(r, e), e->tid,
	    e->bytes, e->len, e->value[1]);
}

static void
read_flush(struct reader *r, const struct journal_entry *e)
{
	(void)session_flush(r->session, e->value[0]);
}

static void
read_last(struct reader *r, const struct journal_entry *e)
{
	session_last(r->session, (const char *)e->bytes);
}

static void
read_lost(struct reader *r, const struct journal_entry *e)
{
	session_lost(r->session, e->value[0]);
}

static void
read_warning(struct reader *r, const struct journal_entry *e)
{
	if (r->session->started)
		session_report_warning(r->session, (const char *)e->bytes);
}

static void
read_event(struct reader *r, const struct journal_entry *e)
{
	if (r->session->started)
		session_event(r->session, (const void *)e->bytes);
}

static void
read_tally(struct reader *r, const struct journal_entry *e)
{
	session_tally(r->session, (const void *)e->bytes);
}

static void
read_coverage(struct reader *r, const struct journal_entry *e)
{
	if (session_coverage(r->session, (const void *)e->bytes,
	    e->len / sizeof(struct coverage)) < 0)
		out_of_memory();
}

static void (*const readers[])(struct reader *,
    const struct journal_entry *) = {
	[JOURNAL_FORMAT] = read_format,
	[JOURNAL_IDS] = read_ids,
	[JOURNAL_LEARN] = read_learn,
	[JOURNAL_WATCH] = read_watch,
	[JOURNAL_SLOT] = read_slot,
	[JOURNAL_READY] = read_ready,
	[JOURNAL_VALUES] = read_values,
	[JOURNAL_UNSEEN] = read_unseen,
	[JOURNAL_MISSED_PART] = read_missed_part,
	[JOURNAL_KNOWN] = read_known,
	[JOURNAL_MAPPED] = read_mapped,
	[JOURNAL_OBJECT] = read_object,
	[JOURNAL_DAMAGE] = read_damage,
	[JOURNAL_START] = read_start,
	[JOURNAL_RECORD] = read_record,
	[JOURNAL_CHANNEL_HIT] = read_channel_hit,
	[JOURNAL_HINTS] = read_hints,
	[JOURNAL_FLUSH] = read_flush,
	[JOURNAL_FORESEE] = read_foresee,
	[JOURNAL_LEFT_OUT] = read_left_out,
	[JOURNAL_LAST] = read_last,
	[JOURNAL_LOST] = read_lost,
	[JOURNAL_WARNING] = read_warning,
	[JOURNAL_EVENT] = read_event,
	[JOURNAL_INSTANCE] = read_instance,
	[JOURNAL_TALLY] = read_tally,
	[JOURNAL_RESUME] = read_resume,
	[JOURNAL_RECALL] = read_recall,
	[JOURNAL_MISSED] = read_missed,
	[JOURNAL_THREADS] = read_threads,
	[JOURNAL_COVERAGE] = read_coverage,
	[JOURNAL_END] = read_end,
};

static void
read_entry(struct reader *r, const struct journal_entry *e)
{
	if (e->what <= JOURNAL_END && readers[e->what] != NULL)
		readers[e->what](r, e);
	ask_progress();
}

/* --- the loop --- */

static void
forget_journal(struct reader *r)
{
	if (r->mapped)
		(void)munmap(r->journal, r->size);
	else
		free(r->journal);
	r->journal = NULL;
}

static void
map_journal(struct reader *r, int fd, size_t size)
{
	forget_journal(r);
	r->journal = shared_memory_map(fd, -1, size, false);
	(void)close(fd);
	if (r->journal == NULL)
		out_of_memory();
	r->mapped = true;
	r->size = size;
}

/* A part of a journal that is not in shared memory. */
static void
take_bytes(struct reader *r, const struct broker_message *message)
{
	const size_t size = message->value[1], at = message->value[0];

	if (r->journal == NULL || r->mapped || r->size != size) {
		forget_journal(r);
		if ((r->journal = malloc(size)) == NULL)
			out_of_memory();
		r->mapped = false;
		r->size = size;
	}
	if (at > size || message->len > size - at)
		_exit(EXIT_FAILURE);
	memcpy(r->journal + at, message->text, message->len);
}

static void
read_part(struct reader *r, size_t from, size_t to)
{
	while (from < to && to <= r->size && !r->ended) {
		const struct journal_entry *e =
		    (const void *)(r->journal + from);

		if (e->size < sizeof(*e) || e->size > to - from)
			_exit(EXIT_FAILURE);
		read_entry(r, e);
		from += e->size;
	}
	if (r->session->explainer != NULL)
		r->shared->given_up = explained_session_done(r->session);
}

/* The number of hits whose samples are not needed any more: they have been
   written, or are only counted at the end. */
static uint64_t
hits_done(const struct session *s)
{
	return options_sum(s->options) ? s->reported : s->report.written;
}

bool
journal_read(struct session *session, struct broker_shared *shared,
    const struct broker_message *message, int fd)
{
	static struct reader r;

	r.session = session;
	r.shared = shared;
	if (message->what == BROKER_BYTES) {
		take_bytes(&r, message);
		return true;
	}
	if (message->what != BROKER_TAKE)
		return false;
	if (fd >= 0)
		map_journal(&r, fd, message->value[2]);
	read_part(&r, message->value[0], message->value[1]);
	if (r.ended) {
		session_close(session);
		ask_end(r.status);
	}
	ask_taken(hits_done(session), session->full || session->err < 0,
	    session->last_hit, session->err);
	return true;
}
