/* session: one run from its records to its report. */
#include "session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/complain.h"
#include "session/last_words.h"

void
session_note(struct session *s, int err)
{
	if (err < 0 && s->err == 0)
		s->err = err;
}

/* Whether there is a report, and it can still be written. */
static bool
reporting(const struct session *s)
{
	return s->report.ops != NULL && s->err == 0;
}

/* Whether what is written there is read with what standard error has. */
static bool
is_stderr(FILE *out)
{
	struct stat report, standard;

	return out == stderr || (out != NULL &&
	    fstat(fileno(out), &report) == 0 &&
	    fstat(STDERR_FILENO, &standard) == 0 &&
	    report.st_dev == standard.st_dev &&
	    report.st_ino == standard.st_ino);
}

int
session_open(struct session *s, const struct options *options, FILE *out)
{
	int err;

	*s = (struct session){.options = options};
	if ((err = output_open(&s->output, options, out)) < 0)
		return err;
	if ((s->report.out = s->output.stream) != NULL)
		s->report.screen = output_screen(s->report.out);
	s->on_stderr = options_text(options) && is_stderr(s->report.out);
	if ((s->sieve = sieve_new(options)) == NULL)
		return complain("out of memory");
	last_words_begin(s);
	return 0;
}

int
session_first_process(struct session *s, pid_t pid)
{
	const int err = output_open_of(&s->output, s->options, pid);

	s->report.out = s->output.stream;
	return err;
}

static void
free_watch(struct ex_watch *watch)
{
	if (watch == NULL)
		return;
	free((char *)(uintptr_t)watch->spec);
	free((char *)(uintptr_t)watch->symbol);
	free(watch);
}

/* Zero but for its strings; NULL: out of memory. */
static struct ex_watch *
new_watch(const char *spec, const char *symbol)
{
	struct ex_watch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->spec = strdup(spec);
	watch->symbol = symbol == NULL ? NULL : strdup(symbol);
	if (watch->spec != NULL && (symbol == NULL || watch->symbol != NULL))
		return watch;
	free_watch(watch);
	return NULL;
}

/* The report keeps what it was given; when that has moved, it gets the new
   one. */
static void
report_watch(struct session *s)
{
	if (s->of.silent) {
		s->report.begin.watches =
		    (const struct ex_watch *const *)s->watches;
		s->report.begin.nwatches = (unsigned)s->nwatches;
	} else if (reporting(s) && s->report.ops->watch != NULL)
		session_note(s, s->report.ops->watch(&s->report,
		    (const struct ex_watch *const *)s->watches,
		    (unsigned)s->nwatches));
}

static void put_watch(struct session *, const struct ex_watch *, pid_t);
static void put_slot(struct session *, const struct ex_slot *);

/* What is there when all watches are asked for is put into the journal then. */
static bool
is_put(const struct session *s)
{
	return s->journal != NULL && s->ready;
}

static int
add_watch(struct session *s, pid_t in, const char *spec, const char *symbol,
    uint64_t addr, uint64_t len, enum wp_access access, unsigned slots)
{
	struct ex_watch *watch = new_watch(spec, symbol), **more;

	if (watch == NULL)
		return -ENOMEM;
	more = reallocarray(s->watches, s->nwatches + 1, sizeof(*more));
	if (more == NULL) {
		free_watch(watch);
		return -ENOMEM;
	}
	watch->id = (unsigned)s->nwatches + 1;
	watch->addr = addr;
	watch->len = len;
	watch->access = access;
	watch->slots = slots;
	watch->number = s->of.number;
	watch->pid = s->of.pid;
	memcpy(watch->comm, s->of.comm, sizeof(watch->comm));
	watch->pending = s->of.pending;
	watch->local = s->of.local;
	watch->moves = s->of.moves;
	watch->since = s->of.since;
	watch->whole = s->of.whole == 0 || s->of.whole > s->nwatches ? NULL :
	    more[s->of.whole - 1];
	s->watches = more;
	s->watches[s->nwatches++] = watch;
	if (is_put(s))
		put_watch(s, watch, in);
	else if (s->started)
		report_watch(s);
	return 0;
}

void
session_of_process(struct session *s, unsigned number, pid_t pid,
    const char *comm)
{
	s->of.number = number;
	s->of.pid = pid;
	(void)snprintf(s->of.comm, sizeof(s->of.comm), "%.*s",
	    (int)sizeof(s->of.comm) - 1, comm);
}

void
session_pending(struct session *s, bool pending)
{
	s->of.pending = pending;
}

void
session_local(struct session *s, bool local)
{
	s->of.local = local;
}

void
session_moves(struct session *s, bool moves, uint64_t since)
{
	s->of.moves = moves;
	s->of.since = since;
	s->of.silent = since != 0;
}

void
session_part(struct session *s, unsigned whole)
{
	session_moves(s, whole != 0, 0);
	s->of.silent = whole != 0;
	s->of.whole = whole;
}

int
session_add_watch(struct session *s, const char *spec, const char *symbol,
    uint64_t addr, uint64_t len, enum wp_access access, unsigned slots)
{
	return add_watch(s, 0, spec, symbol, addr, len, access, slots);
}

int
session_add_place(struct session *s, pid_t pid, const char *spec, uint64_t addr,
    uint64_t len, enum wp_access access, unsigned slots)
{
	return add_watch(s, pid, spec, NULL, addr, len, access, slots);
}

int
session_add_slot(struct session *s, int watch, uint64_t addr, uint64_t len)
{
	struct ex_slot *slots = reallocarray(s->slots, s->nslots + 1,
	    sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	s->slots = slots;
	s->slots[s->nslots++] = (struct ex_slot){
		watch < 0 ? NULL : s->watches[watch], addr, len,
	};
	if (is_put(s))
		put_slot(s, &s->slots[s->nslots - 1]);
	else if (s->ops != NULL)
		s->ops->slot(s);
	return 0;
}

void
session_format(struct session *s, const struct perf_event_attr *attr,
    const uint64_t *ids, size_t n)
{
	const struct journal_entry entry = {.what = JOURNAL_FORMAT};

	if (s->journal != NULL)
		s->journal->put(s->journal, &entry, attr, sizeof(*attr), ids,
		    n * sizeof(*ids));
}

/* Nothing but what it is, and a number. */
static void
put(struct session *s, enum journal_what what, uint64_t value)
{
	const struct journal_entry entry = {.what = what, .value = {value}};

	s->journal->put(s->journal, &entry, NULL, 0, NULL, 0);
}

static void
put_watch(struct session *s, const struct ex_watch *watch, pid_t in)
{
	const struct journal_entry entry = {
		.what = JOURNAL_WATCH, .tid = in,
	};
	const size_t len = strlen(watch->spec) + 1;
	const size_t symbol = watch->symbol == NULL ? 0 :
	    strlen(watch->symbol) + 1;
	const size_t size = offsetof(struct journal_watch, text) + len;
	struct journal_watch *w = calloc(1, sizeof(*w) + len);

	if (w == NULL) {
		session_note(s, -ENOMEM);
		return;
	}
	*w = (struct journal_watch){
		.addr = watch->addr, .len = watch->len,
		.number = watch->number, .slots = watch->slots,
		.pid = watch->pid, .access = (int)watch->access,
		.pending = watch->pending, .local = watch->local, .moves = watch->moves,
		.since = watch->since,
		.whole = watch->whole != NULL ? watch->whole->id : 0,
		.symbol = symbol != 0 ? (uint32_t)len : 0,
	};
	memcpy(w->comm, watch->comm, sizeof(w->comm));
	memcpy(w->text, watch->spec, len);
	s->journal->put(s->journal, &entry, w, size, watch->symbol, symbol);
	free(w);
}

static void
put_slot(struct session *s, const struct ex_slot *slot)
{
	const struct journal_entry entry = {.what = JOURNAL_SLOT};
	const struct journal_slot it = {
		.addr = slot->addr, .len = slot->len,
		.watch = slot->watch == NULL ? -1 : (int)slot->watch->id - 1,
	};

	s->journal->put(s->journal, &entry, &it, sizeof(it), NULL, 0);
}

void
session_place(struct session *s, pid_t pid, const struct spec *spec,
    uint64_t addr, uint64_t len)
{
	const struct journal_entry entry = {
		.what = JOURNAL_OBJECT, .tid = pid, .value = {addr, len},
	};

	s->journal->put(s->journal, &entry, spec->text, strlen(spec->text) + 1,
	    NULL, 0);
}

int
session_object(struct session *s, pid_t pid, const struct spec *spec,
    uint64_t addr, uint64_t len)
{
	session_place(s, pid, spec, addr, len);
	(void)s->journal->flush(s->journal, UINT64_MAX);
	return s->err == -EINVAL ? s->err : 0;
}

void
session_mapped(struct session *s, pid_t pid, const struct journal_mapped *it)
{
	const struct journal_entry entry = {
		.what = JOURNAL_MAPPED, .tid = pid,
	};

	s->journal->put(s->journal, &entry, it, sizeof(*it), NULL, 0);
}

void
session_values(struct session *s, const struct ex_value_options *values)
{
	put(s, JOURNAL_VALUES, (values->read != NULL ? JOURNAL_READS : 0) |
	    (values->follows ? JOURNAL_FOLLOWS : 0) |
	    (values->at_once ? JOURNAL_AT_ONCE : 0) |
	    (values->crowds ? JOURNAL_CROWDS : 0) |
	    (values->in_order ? JOURNAL_IN_ORDER : 0));
}

void
session_unseen(struct session *s, const struct ex_watch *watch)
{
	put(s, JOURNAL_UNSEEN, watch->id - 1);
}

void
session_missed(struct session *s, const struct ex_watch *watch)
{
	put(s, JOURNAL_MISSED_PART, watch->id - 1);
}

void
session_known(struct session *s, const struct ex_watch *watch, pid_t pid,
    const uint8_t *bytes, size_t len, uint64_t time)
{
	const struct journal_entry entry = {
		.what = JOURNAL_KNOWN, .tid = pid,
		.value = {watch->id - 1, time},
	};

	s->journal->put(s->journal, &entry, bytes, len, NULL, 0);
}

void
session_stopped(struct session *s, pid_t tid)
{
	const struct journal_entry entry = {.what = JOURNAL_HINTS, .tid = tid};

	s->journal->put(s->journal, &entry, NULL, 0, NULL, 0);
}

int
session_ready(struct session *s)
{
	s->ready = true;
	if (s->journal != NULL) {
		for (size_t i = 0; i < s->nwatches; i++)
			put_watch(s, s->watches[i], 0);
		for (size_t i = 0; i < s->nslots; i++)
			put_slot(s, &s->slots[i]);
		put(s, JOURNAL_READY, 0);
		return s->err;
	}
	return s->ops == NULL ? 0 : s->ops->ready(s);
}

int
session_record_to_file(struct session *s, const struct ex_perf_event *events,
    size_t n)
{
	int err = output_begin(&s->output);
	struct origin origin;

	if (err == 0) {
		err = ex_perfwriter_open(s->output.file, events, n,
		    &s->recording);
		s->output.own = err < 0;	/* else the writer's now */
	}
	if (err == 0) {
		origin_here(&origin);
		ex_perfwriter_origin(s->recording, origin.host, origin.ranked ?
		    &origin.rank : NULL);
	}
	return err < 0 ? complain("-O %s: %s", s->output.path,
	    strerror(-err)) : 0;
}

static void
put_start(struct session *s, const struct report_start *start)
{
	const struct journal_entry entry = {.what = JOURNAL_START};
	struct journal_start it = {
		.origin = start->origin, .time = start->time, .wall = start->wall,
		.frozen_ms = start->frozen_ms, .pid = start->pid,
		.threads = start->threads,
	};

	(void)snprintf(it.mode, sizeof(it.mode), "%s", start->mode);
	(void)snprintf(it.delivery, sizeof(it.delivery), "%s",
	    start->delivery == NULL ? "" : start->delivery);
	(void)snprintf(it.comm, sizeof(it.comm), "%s", start->comm == NULL ?
	    "" : start->comm);
	s->journal->put(s->journal, &entry, &it, sizeof(it), NULL, 0);
}

void
session_start(struct session *s, struct report_start *start)
{
	start->watches = (const struct ex_watch *const *)s->watches;
	start->nwatches = (unsigned)s->nwatches;
	if (s->journal != NULL)
		origin_here(&start->origin);
	session_note(s, output_begin(&s->output));
	s->started = true;
	if (s->journal != NULL)
		put_start(s, start);
	else if (s->ops != NULL)
		s->ops->start(s, start);
}

void
session_lost(struct session *s, uint64_t count)
{
	if (count == 0)
		return;
	s->lost += count;
	sieve_lost(s->sieve);
	if (s->journal != NULL)
		put(s, JOURNAL_LOST, count);
	else if (reporting(s))
		session_note(s, s->report.ops->lost(&s->report, count));
}

/* The last hit is not told by it: that is for -n, which has no such hits. */
void
session_tally(struct session *s, const struct wp_target_tally *tally)
{
	const struct journal_entry entry = {.what = JOURNAL_TALLY};

	s->reported += tally->count;
	s->samples += tally->count;
	if (s->journal != NULL)
		s->journal->put(s->journal, &entry, tally, sizeof(*tally),
		    NULL, 0);
	else
		s->ops->tally(s, tally);
}

void
session_event(struct session *s, const struct watch_event *event)
{
	const struct journal_entry entry = {.what = JOURNAL_EVENT};

	if (s->journal != NULL)
		s->journal->put(s->journal, &entry, event, sizeof(*event),
		    NULL, 0);
	else if (reporting(s) && s->report.ops->event != NULL &&
	    event->watch < s->nwatches)
		session_note(s, s->report.ops->event(&s->report, event));
}

void
session_damage(struct session *s, const struct hg_finding *finding)
{
	const struct journal_entry entry = {.what = JOURNAL_DAMAGE};

	s->damage++;
	if (s->journal != NULL)
		s->journal->put(s->journal, &entry, finding, sizeof(*finding),
		    NULL, 0);
	else if (reporting(s))
		s->ops->damage(s, finding);
}

void
session_counted(struct session *s, uint64_t counts)
{
	if (counts > s->samples + s->lost)
		session_lost(s, counts - s->samples - s->lost);
	else if (counts >= s->samples)
		s->lost = counts - s->samples;
}

void
session_report_warning(struct session *s, const char *text)
{
	const struct journal_entry entry = {.what = JOURNAL_WARNING};

	if (s->journal != NULL)
		s->journal->put(s->journal, &entry, text, strlen(text) + 1,
		    NULL, 0);
	else if (reporting(s))
		session_note(s, s->report.ops->warning(&s->report, text));
}

void
session_warn(struct session *s, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (!s->on_stderr || !s->started)
		(void)complain("warning: %s", text);
	session_report_warning(s, text);
}

static void
thread_event(struct session *s, const struct ex_record *r)
{
	bool exited = r->type == PERF_RECORD_EXIT;

	if (!reporting(s) || s->report.ops->thread == NULL)
		return;
	if (options_everywhere(s->options))
		return;		/* all that run */
	if (!exited && r->task.pid != r->task.ppid &&
	    s->options->file == NULL && !s->options->follow)
		return;
	session_note(s, s->report.ops->thread(&s->report, exited, r->task.tid));
}

/* Report what a record that is not a hit means to the reader. */
static void
report_event(struct session *s, const struct ex_record *r)
{
	switch (r->type) {
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		session_lost(s, r->lost.count);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		thread_event(s, r);
		break;
	default:
		break;
	}
}

bool
session_is_sample(const struct session *s, const struct ex_record *r)
{
	return r->type == PERF_RECORD_SAMPLE && r->attr >= 0 &&
	    (size_t)r->attr < s->nslots && s->slots[r->attr].watch != NULL;
}

/* Without memory, what is delivered of a watch counts as lost. */
static void
count_sample(struct session *s, const struct ex_record *r)
{
	const size_t watch = s->slots[r->attr].watch->id - 1;
	uint64_t *more;

	s->samples++;
	if (s->options->each == 0)
		return;
	if (watch >= s->nwatch_samples) {
		more = reallocarray(s->watch_samples, s->nwatches,
		    sizeof(*more));
		if (more == NULL)
			return;
		s->watch_samples = more;
		while (s->nwatch_samples < s->nwatches)
			more[s->nwatch_samples++] = 0;
	}
	s->watch_samples[watch]++;
}

uint64_t
session_samples(const struct session *s, size_t watch)
{
	return watch < s->nwatch_samples ? s->watch_samples[watch] : 0;
}

/* Processes of --exe may come that have watches of their own. */
bool
session_is_full(const struct session *s)
{
	bool any = false;

	if (s->options->limit != 0 && s->reported >= s->options->limit)
		return true;
	if (s->options->each == 0 || s->options->exe != NULL)
		return false;
	for (size_t i = 0; i < s->nwatches; i++) {
		if (s->watches[i]->pending)
			continue;
		if (!sieve_is_full(s->sieve, i))
			return false;
		any = true;
	}
	return any;
}

static bool
wants_more(const struct session *s)
{
	return !s->full && s->err == 0;
}

static void
put_record(struct session *s, const struct ex_record *r, bool sample)
{
	const struct journal_entry entry = {
		.what = JOURNAL_RECORD, .tid = r->tid, .pid = r->pid,
		.value = {sample ? s->samples : 0, r->time},
	};

	if (r->type == PERF_RECORD_LOST ||
	    r->type == PERF_RECORD_LOST_SAMPLES) {
		s->lost += r->lost.count;
		sieve_lost(s->sieve);
	}
	s->journal->put(s->journal, &entry, r->bytes, r->size, NULL, 0);
}

bool
session_record(struct session *s, const struct ex_record *r)
{
	bool sample = session_is_sample(s, r);

	if (!wants_more(s))
		return false;
	if (sample)
		count_sample(s, r);
	if (s->journal != NULL) {
		put_record(s, r, sample);
		return wants_more(s);
	}
	if (!sample)
		report_event(s, r);
	if (s->recording != NULL) {
		session_note(s, ex_perfwriter_record(s->recording, r->bytes));
		s->reported += sample;
		s->full = s->reported == s->options->limit && sample;
	} else {
		s->ops->record(s, r);
	}
	return wants_more(s);
}

void
session_foresee(struct session *s, const struct ex_record *r)
{
	const struct journal_entry entry = {.what = JOURNAL_FORESEE};

	s->journal->put(s->journal, &entry, r->bytes, r->size, NULL, 0);
}

/* Samples of a hit that was left out may come when that is known already. */
void
session_left_out(struct session *s, uint64_t hits, uint64_t samples)
{
	s->samples += samples;
	s->joined += samples - hits;
	s->thinned += hits;
	if (hits > 0)
		put(s, JOURNAL_LEFT_OUT, hits);
}

void
session_told(struct session *s, const char *reason)
{
	const uint64_t count = s->told_unknown ? UINT64_MAX :
	    s->reported - s->told;

	s->told = s->reported;
	s->told_unknown = false;
	if (reporting(s) && s->report.ops->last != NULL &&
	    !s->report.summary_only)
		session_note(s, s->report.ops->last(&s->report, count,
		    reason));
}

void
session_last(struct session *s, const char *reason)
{
	const struct journal_entry entry = {.what = JOURNAL_LAST};

	if (s->journal != NULL) {
		s->journal->put(s->journal, &entry, reason, strlen(reason) + 1,
		    NULL, 0);
		return;
	}
	(void)session_flush(s, UINT64_MAX);
	s->ops->tell(s);
	session_told(s, reason);
}

void
session_channel_hit(struct session *s, const struct channel_hit *hit,
    size_t size, const struct ex_record *r)
{
	const struct journal_entry entry = {
		.what = JOURNAL_CHANNEL_HIT, .tid = r->tid,
		.value = {++s->channel_hits, r->time},
	};

	s->samples++;
	s->journal->put(s->journal, &entry, hit, size, r->bytes, r->size);
}

bool
session_flush(struct session *s, uint64_t now)
{
	if (s->journal != NULL) {
		put(s, JOURNAL_FLUSH, now);
		return s->journal->flush(s->journal, now);
	}
	if (s->ops != NULL)
		s->ops->flush(s, now);
	if (reporting(s))
		session_note(s, s->report.ops->flush(&s->report));
	if (s->recording != NULL)
		session_note(s, ex_perfwriter_flush(s->recording));
	if (s->recording == NULL)
		s->written = s->report.written;
	else if (s->err == 0)
		s->written = s->reported;
	return wants_more(s);
}

int
session_thread_counts(struct session *s, const struct wp_thread_count *counts,
    size_t n)
{
	const struct journal_entry entry = {.what = JOURNAL_THREADS};

	if (n == 0)
		return 0;
	if (s->journal != NULL) {
		s->journal->put(s->journal, &entry, counts,
		    n * sizeof(*counts), NULL, 0);
		return 0;
	}
	free(s->threads);
	s->nthreads = 0;
	if ((s->threads = reallocarray(NULL, n, sizeof(*counts))) == NULL)
		return -ENOMEM;
	memcpy(s->threads, counts, n * sizeof(*counts));
	s->nthreads = n;
	return 0;
}

int
session_coverage(struct session *s, const struct coverage *coverage, size_t n)
{
	const struct journal_entry entry = {.what = JOURNAL_COVERAGE};

	if (s->journal != NULL) {
		s->journal->put(s->journal, &entry, coverage,
		    n * sizeof(*coverage), NULL, 0);
		return 0;
	}
	free(s->coverage);
	s->ncoverage = 0;
	if ((s->coverage = reallocarray(NULL, n, sizeof(*coverage))) == NULL)
		return -ENOMEM;
	memcpy(s->coverage, coverage, n * sizeof(*coverage));
	s->ncoverage = n;
	return 0;
}

void
session_doubt(struct session *s, const char *format, ...)
{
	va_list ap;

	if (s->doubt[0] != '\0')
		return;
	va_start(ap, format);
	(void)vsnprintf(s->doubt, sizeof(s->doubt), format, ap);
	va_end(ap);
}

void
session_uptime(struct session *s, const struct wp_uptime *uptime)
{
	const char *spec;
	char where[64];

	s->uptime = *uptime;
	if (uptime->unknown > uptime->executed)
		session_doubt(s, "for how long it was watched is not known%s",
		    uptime->known ? " of all processes" : "");
	if (uptime->worst == 0)
		return;
	spec = uptime->watch < s->nwatches ? s->watches[uptime->watch]->spec :
	    "?";
	if (uptime->processors > 0)
		(void)snprintf(where, sizeof(where), "on its processors");
	else
		(void)snprintf(where, sizeof(where), "in thread %d, or those "
		    "that it made", uptime->tid);
	session_warn(s, "%s was not watched for %.6f s %s: events or debug "
	    "registers were switched off by "
	    "another process, or there are no events for a processor; what was "
	    "accessed then was neither seen nor counted", spec,
	    (double)uptime->worst / 1e9, where);
	session_doubt(s, "%s was not watched for %.6f s %s", spec,
	    (double)uptime->worst / 1e9, where);
}

/* Whether the account is not needed. */
static bool
is_quiet(const struct session *s, const struct report_end *end)
{
	return s->quiet && (options_json(s->options) ||
	    (end->hits == 0 && s->doubt[0] == '\0'));
}

/* Add to a text of this size. */
__attribute__((format(printf, 3, 4)))
static void
add(char *text, size_t size, const char *format, ...)
{
	const size_t len = strlen(text);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text + len, size - len, format, ap);
	va_end(ap);
}

static void
say_uptime(const struct wp_uptime *uptime)
{
	char text[160] = "the watches were on for ";

	if (!uptime->known && uptime->unknown > uptime->executed)
		(void)complain("for how long the watches were on is not known");
	if (!uptime->known)
		return;
	if (uptime->off > 0)
		add(text, sizeof(text), "%.3f of ",
		    (double)(uptime->ran - uptime->off) / 1e9);
	add(text, sizeof(text), "the %.3f s that ", (double)uptime->ran / 1e9);
	if (uptime->processors > 0)
		add(text, sizeof(text), "%u processor%s ran",
		    uptime->processors, uptime->processors == 1 ? "" : "s");
	else if (uptime->threads > 0)
		add(text, sizeof(text), "%u thread%s ran", uptime->threads,
		    uptime->threads == 1 ? "" : "s");
	else
		add(text, sizeof(text), "the threads ran");
	if (uptime->unknown > 0)
		add(text, sizeof(text), "; of %u process%s that is not known",
		    uptime->unknown, uptime->unknown == 1 ? "" : "es");
	(void)complain("%s", text);
}

/* The account, on stderr; also where there is no memory. */
static void
say_account(const struct session *s, const struct report_end *end)
{
	char text[512] = "";

	add(text, sizeof(text), "%" PRIu64 " hit%s, %" PRIu64 " reported, %"
	    PRIu64 " lost", end->hits, end->hits == 1 ? "" : "s",
	    end->reported, end->lost);
	if (end->conditional)
		add(text, sizeof(text), ", %" PRIu64 " rejected",
		    end->rejected);
	if (end->changed)
		add(text, sizeof(text), ", %" PRIu64 " unchanged",
		    end->unchanged);
	if (end->thinned)
		add(text, sizeof(text), ", %" PRIu64 " skipped",
		    end->skipped);
	if (end->judged)
		add(text, sizeof(text), ", %" PRIu64 " stray", end->stray);
	if (end->nfindings > 0)
		add(text, sizeof(text), " by %zu %s", end->nfindings,
		    policy_word(end->findings, end->nfindings));
	if (end->unjudged > 0)
		add(text, sizeof(text), ", %" PRIu64 " not judged",
		    end->unjudged);
	if (s->options->heap)
		add(text, sizeof(text), ", %" PRIu64 " finding%s in heaps",
		    s->damage, s->damage == 1 ? "" : "s");
	if (end->dropped > 0)
		add(text, sizeof(text), "; %" PRIu64 " %s not wanted",
		    end->dropped, end->dropped == 1 ?
		    "access was a write and" : "accesses were writes and");
	if (s->skipped > 0)
		add(text, sizeof(text), "; %" PRIu64 " %s skipped", s->skipped,
		    s->skipped == 1 ? "record of an unknown type was" :
		    "records of unknown types were");
	(void)complain("%s", text);
	say_uptime(&s->uptime);
}

/* What the explainer of this process did; NULL: there is none. */
static const struct ex_tally *
tally_of(const struct session *s)
{
	return s->ops == NULL ? NULL : s->ops->explained(s);
}

/* Where the report could not be written to its end: what is not in it, is
   lost. */
static void
correct_end(struct session *s, struct report_end *end)
{
	const struct ex_tally *tally = tally_of(s);
	uint64_t taken = tally == NULL ? s->samples - s->joined - s->dropped :
	    s->before + tally->samples - tally->joined - tally->dropped;

	if (s->err == 0)
		return;
	if (s->options->form != FORM_PERF && s->journal == NULL)
		s->written = s->report.written;
	if (end->counts != NULL)
		taken = end->reported;
	end->hits = taken + s->lost;
	end->reported = s->written;
	end->lost = end->hits - end->reported - end->rejected -
	    end->unchanged - end->skipped - end->handled;
}

/* What was lost in all, as perf record reports it: LOST records, which are
   there already, report only what was lost before another record. */
static void
record_lost(struct session *s)
{
	const struct {
		struct perf_event_header header;
		uint64_t lost;
		uint64_t id[4];	/* pid and tid, time, cpu, identifier */
	} record = {
		.header = {PERF_RECORD_LOST_SAMPLES, 0, sizeof(record)},
		.lost = s->lost,
	};

	if (s->recording != NULL && s->lost > 0)
		session_note(s, ex_perfwriter_record(s->recording, &record));
}

static int
end_recording(struct session *s)
{
	int err = s->recording == NULL ? 0 :
	    ex_perfwriter_close(s->recording);

	s->recording = NULL;
	return err;
}

/* What there is to report at the end. */
static void
fill_end(struct session *s, struct report_end *end)
{
	const struct ex_tally *tally = tally_of(s);

	for (size_t i = 0; end->counts != NULL && i < s->nwatches; i++)
		s->reported += end->counts[i];
	end->threads = s->threads;
	end->nthreads = s->nthreads;
	for (size_t i = 0; i < s->ncoverage; i++)
		s->coverage[i].hits = s->coverage[i].place < 0 ? 0 :
		    sieve_hits(s->sieve, (size_t)s->coverage[i].place);
	end->coverage = s->coverage;
	end->ncoverage = s->ncoverage;
	end->reported = s->reported;
	end->lost = s->lost;
	end->hits = s->reported + s->rejected + s->unchanged + s->thinned +
	    s->handled + s->lost;
	end->handled = s->handled;
	end->uptime = s->uptime;
	end->changed = s->options->changed;
	end->unchanged = s->unchanged;
	end->conditional = s->options->condition.root != NULL;
	end->rejected = s->rejected;
	end->thinned = options_thin(s->options);
	end->skipped = s->thinned;
	end->dropped = s->dropped;
	if (tally != NULL)
		end->dropped += tally->dropped;
	if (!options_judge(s->options))
		return;
	/* no code may touch what is only counted */
	if (end->counts != NULL)
		s->stray = s->reported;
	end->judged = true;
	end->stray = s->stray;
	end->unjudged = s->unjudged;
	if (s->ops != NULL)
		s->ops->findings(s, end);
}

/* Hits are not judged for one reason, the other, or some for each. */
static void
doubt_unjudged(struct session *s)
{
	const uint64_t late = s->unjudged_late, missing = s->unjudged - late;
	char why[256] = "";

	if (s->unjudged == 0)
		return;
	if (late > 0 && missing > 0)
		add(why, sizeof(why), "%" PRIu64 " ", late);
	if (late > 0)
		add(why, sizeof(why), "came late, and what %s backtrace%s "
		    "show%s is where the signal was unblocked",
		    late == 1 ? "its" : "their", late == 1 ? "" : "s",
		    late == 1 ? "s" : "");
	if (late > 0 && missing > 0)
		add(why, sizeof(why), "; of the other%s ",
		    missing == 1 ? "" : "s");
	if (missing > 0)
		add(why, sizeof(why), "a caller that is allowed may be missing "
		    "in %s backtrace%s", late > 0 ? "the" :
		    missing == 1 ? "its" : "their", missing == 1 ? "" : "s");
	session_doubt(s, "%" PRIu64 " hit%s cannot be judged: %s%s",
	    s->unjudged, s->unjudged == 1 ? "" : "s",
	    late == s->unjudged ? late == 1 ? "it " : "they " : "", why);
}

/* Whether something stray may have been missed, where that matters. */
static bool
find_doubt(struct session *s)
{
	if (!options_vouch(s->options))
		return false;
	if (s->lost > 0)
		session_doubt(s, "%" PRIu64 " hit%s lost", s->lost,
		    s->lost == 1 ? " was" : "s were");
	doubt_unjudged(s);
	if (s->err == -EPIPE)
		session_doubt(s, "the report's reader has gone, which ended "
		    "the watch");
	return s->doubt[0] != '\0';
}

/* Have it ended by who keeps it.  The exit status, or -errno: nobody does. */
static int
put_end(struct session *s, const char *reason, int status,
    const uint64_t *counts)
{
	const struct journal_entry entry = {.what = JOURNAL_END};
	struct journal_end it = {
		.lost = s->lost, .handled = s->handled, .skipped = s->skipped,
		.uptime = s->uptime, .status = status, .err = s->err,
		.quiet = s->quiet,
		.ncounts = counts == NULL ? 0 : (uint32_t)s->nwatches,
	};

	(void)snprintf(it.reason, sizeof(it.reason), "%s", reason);
	(void)snprintf(it.doubt, sizeof(it.doubt), "%s", s->doubt);
	s->journal->put(s->journal, &entry, &it, sizeof(it), counts,
	    it.ncounts * sizeof(*counts));
	if ((status = s->journal->end(s->journal)) >= 0)
		last_words_end();
	return status;
}

int
session_end(struct session *s, const char *reason, int status,
    const uint64_t *counts)
{
	struct report_end end = {
		.reason = reason, .status = status, .counts = counts,
	};
	bool doubtful;

	if (s->journal != NULL &&
	    (status = put_end(s, reason, status, counts)) >= 0)
		return complain_failed() ? STATUS_OWN_FAILURE : status;
	fill_end(s, &end);
	doubtful = find_doubt(s) && s->options->error_status != 0 &&
	    s->stray == 0 && s->damage == 0;
	if (s->ops != NULL)
		s->ops->sides(s, &end);
	if (doubtful)
		end.status = STATUS_NOT_VOUCHED;
	else if (s->options->error_status != 0 &&
	    (s->stray > 0 || s->damage > 0))
		end.status = s->options->error_status;
	s->report.ending = true;
	if (reporting(s))
		session_note(s, s->report.ops->end(&s->report, &end));
	else if (s->report.ops != NULL)
		(void)s->report.ops->end(&s->report, NULL);
	s->report.ops = NULL;
	record_lost(s);
	session_note(s, end_recording(s));
	correct_end(s, &end);
	if (!is_quiet(s, &end))
		say_account(s, &end);
	last_words_end();
	if (s->err != 0 && s->err != -EPIPE) {
		(void)complain("the report is incomplete: %s: %s",
		    s->output.path != NULL ? s->output.path : "output",
		    s->err == -EINTR ? "it was not being read when a "
		    "signal for watchctl came" : s->err == -ECONNRESET ?
		    "there is no process any more that explains" :
		    strerror(-s->err));
		return STATUS_OWN_FAILURE;
	}
	if (s->skipping && s->skip != UINT64_MAX) {
		(void)complain("the report is incomplete: what it is made of "
		    "has changed meanwhile");
		return STATUS_OWN_FAILURE;
	}
	if (doubtful)
		(void)complain("exit status %d: nothing stray was seen, but "
		    "%s", end.status, s->doubt);
	return complain_failed() ? STATUS_OWN_FAILURE : end.status;
}

void
session_close(struct session *s)
{
	last_words_end();
	if (s->report.ops != NULL)
		(void)s->report.ops->end(&s->report, NULL);
	(void)end_recording(s);
	sieve_free(s->sieve);
	if (s->ops != NULL)
		s->ops->close(s);
	for (size_t i = 0; i < s->nwatches; i++)
		free_watch(s->watches[i]);
	free(s->watches);
	free(s->watch_samples);
	free(s->slots);
	free(s->threads);
	free(s->coverage);
	output_close(&s->output);
	*s = (struct session){0};
}
