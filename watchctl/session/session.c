/* session: one run from its records to its report. */
#include "session/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/crash_account.h"
#include "session/session_private.h"
#include "util/complain.h"

void
session_note(struct session *s, int err)
{
	if (err < 0 && s->err == 0)
		s->err = err;
}

/* Whether the output is the same file as standard error. */
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
	if ((s->filter = hit_filter_new(options)) == NULL)
		return complain("out of memory");
	crash_account_begin(s);
	return 0;
}

int
session_first_process(struct session *s, pid_t pid)
{
	const int err = output_open_of(&s->output, s->options, pid);

	s->report.out = s->output.stream;
	return err;
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

void
session_ids(struct session *s, size_t format, const uint64_t *ids, size_t n)
{
	const struct journal_entry entry = {
		.what = JOURNAL_IDS, .value = {format},
	};

	if (s->journal != NULL)
		s->journal->put(s->journal, &entry, ids, n * sizeof(*ids),
		    NULL, 0);
}

void
session_put(struct session *s, enum journal_what what, const void *bytes,
    size_t len)
{
	const struct journal_entry entry = {.what = what};

	s->journal->put(s->journal, &entry, bytes, len, NULL, 0);
}

/* Put an entry that has only a number. */
static void
put(struct session *s, enum journal_what what, uint64_t value)
{
	const struct journal_entry entry = {.what = what, .value = {value}};

	s->journal->put(s->journal, &entry, NULL, 0, NULL, 0);
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
session_learn(struct session *s, const struct ex_record *record, uint64_t time)
{
	const struct journal_entry entry = {
		.what = JOURNAL_LEARN, .value = {1, time},
	};

	s->journal->put(s->journal, &entry, record->bytes, record->size, NULL,
	    0);
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
	if (s->journal == NULL)
		return s->ops == NULL ? 0 : s->ops->ready(s);
	session_put_watches(s);
	put(s, JOURNAL_READY, 0);
	return s->err;
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
		s->output.own = err < 0;	/* now the writer's */
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
	struct journal_start it = {
		.origin = start->origin, .time = start->time,
		.wall = start->wall,
		.frozen_ms = start->frozen_ms, .pid = start->pid,
		.threads = start->threads,
	};

	(void)snprintf(it.mode, sizeof(it.mode), "%s", start->mode);
	(void)snprintf(it.delivery, sizeof(it.delivery), "%s",
	    start->delivery == NULL ? "" : start->delivery);
	(void)snprintf(it.comm, sizeof(it.comm), "%s", start->comm == NULL ?
	    "" : start->comm);
	session_put(s, JOURNAL_START, &it, sizeof(it));
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
	hit_filter_lost(s->filter);
	if (s->journal != NULL)
		put(s, JOURNAL_LOST, count);
	else if (session_reports(s) && s->report.ops->lost != NULL)
		session_note(s, s->report.ops->lost(&s->report, count));
}

/* The last hit is not reported by this, as that is for -n, which does not count
   hits. */
void
session_tally(struct session *s, const struct wp_target_tally *tally)
{
	s->reported += tally->count;
	s->samples += tally->count;
	if (s->journal != NULL)
		session_put(s, JOURNAL_TALLY, tally, sizeof(*tally));
	else
		s->ops->tally(s, tally);
}

void
session_event(struct session *s, const struct watch_event *event)
{
	if (s->journal != NULL)
		session_put(s, JOURNAL_EVENT, event, sizeof(*event));
	else if (session_reports(s) && s->report.ops->event != NULL &&
	    event->watch < s->nwatches)
		session_note(s, s->report.ops->event(&s->report, event));
}

/* Hits of these bytes are from now on hits of freed memory. */
static void
note_freed(struct session *s, const struct object_event *event)
{
	struct ex_watch *part = event->what == OBJECT_FREED &&
	    event->part < s->nwatches ? s->watches[event->part] : NULL;

	if (part == NULL || part->object != event->object || part->freed != 0)
		return;
	part->freed = event->time;
	part->freed_by = event->tid;
	part->freed_at = event->stack;
	ex_stack_hold(event->stack);
}

void
session_object_event(struct session *s, const struct object_event *event,
    const void *sample, size_t len)
{
	const struct journal_entry entry = {.what = JOURNAL_INSTANCE};

	note_freed(s, event);
	if (s->journal != NULL)
		s->journal->put(s->journal, &entry, event, sizeof(*event),
		    sample, len);
	else if (session_reports(s) && s->report.ops->object != NULL &&
	    event->watch < s->nwatches)
		session_note(s, s->report.ops->object(&s->report, event));
}

void
session_damage(struct session *s, const struct hg_finding *finding)
{
	s->damage++;
	if (s->journal != NULL)
		session_put(s, JOURNAL_DAMAGE, finding, sizeof(*finding));
	else if (session_reports(s))
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
	if (s->journal != NULL)
		session_put(s, JOURNAL_WARNING, text, strlen(text) + 1);
	else if (session_reports(s) && s->report.ops->warning != NULL)
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

	if (!session_reports(s) || s->report.ops->thread == NULL)
		return;
	if (options_everywhere(s->options))
		return;		/* everything that runs */
	if (!exited && r->task.pid != r->task.ppid &&
	    s->options->file == NULL && !s->options->follow)
		return;
	session_note(s, s->report.ops->thread(&s->report, exited, r->task.tid));
}

/* Report a record that is not a sample if it matters to the reader. */
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

/* If there is no memory to count them, the watch's samples count as lost. */
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

/* Even then, processes with watches of their own may still come. */
bool
session_is_full(const struct session *s)
{
	bool any = false;

	if (s->options->limit != 0 && s->reported >= s->options->limit)
		return true;
	if (s->options->each == 0 || options_scope(s->options) != NULL)
		return false;
	for (size_t i = 0; i < s->nwatches; i++) {
		if (s->watches[i]->pending)
			continue;
		if (!hit_filter_is_full(s->filter, i))
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
		hit_filter_lost(s->filter);
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
	session_put(s, JOURNAL_FORESEE, r->bytes, r->size);
}

/* A hit that was left out may get more samples later. */
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
session_released(struct session *s, const char *reason)
{
	const uint64_t count = s->released_unknown ? UINT64_MAX :
	    s->reported - s->released;

	s->released = s->reported;
	s->released_unknown = false;
	if (session_reports(s) && s->report.ops->last != NULL &&
	    !s->report.summary_only)
		session_note(s, s->report.ops->last(&s->report, count,
		    reason));
}

void
session_last(struct session *s, const char *reason)
{
	if (s->journal != NULL) {
		session_put(s, JOURNAL_LAST, reason, strlen(reason) + 1);
		return;
	}
	(void)session_flush(s, UINT64_MAX);
	s->ops->release(s);
	session_released(s, reason);
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
	if (session_reports(s))
		session_note(s, report_flush(&s->report));
	if (s->recording != NULL)
		session_note(s, ex_perfwriter_flush(s->recording));
	if (s->recording == NULL)
		s->written = s->report.written;
	else if (s->err == 0)
		s->written = s->reported;
	return wants_more(s);
}

/* A copy of an array, in place of one that is freed; NULL: no memory. */
static void *
copy_in_place_of(void *old, const void *array, size_t n, size_t size)
{
	void *copy = reallocarray(NULL, n, size);

	free(old);
	return copy == NULL ? NULL : memcpy(copy, array, n * size);
}

int
session_thread_counts(struct session *s, const struct wp_thread_count *counts,
    size_t n)
{
	if (n == 0)
		return 0;
	if (s->journal != NULL) {
		session_put(s, JOURNAL_THREADS, counts, n * sizeof(*counts));
		return 0;
	}
	s->threads = copy_in_place_of(s->threads, counts, n, sizeof(*counts));
	s->nthreads = s->threads == NULL ? 0 : n;
	return s->threads == NULL ? -ENOMEM : 0;
}

int
session_coverage(struct session *s, const struct coverage *coverage, size_t n)
{
	if (s->journal != NULL) {
		session_put(s, JOURNAL_COVERAGE, coverage,
		    n * sizeof(*coverage));
		return 0;
	}
	s->coverage = copy_in_place_of(s->coverage, coverage, n,
	    sizeof(*coverage));
	s->ncoverage = s->coverage == NULL ? 0 : n;
	return s->coverage == NULL ? -ENOMEM : 0;
}

int
session_end_recording(struct session *s)
{
	int err = s->recording == NULL ? 0 :
	    ex_perfwriter_close(s->recording);

	s->recording = NULL;
	return err;
}

void
session_close(struct session *s)
{
	crash_account_end();
	if (s->report.ops != NULL)
		(void)s->report.ops->end(&s->report, NULL);
	(void)session_end_recording(s);
	hit_filter_free(s->filter);
	if (s->ops != NULL)
		s->ops->close(s);
	session_free_watches(s);
	free(s->watch_samples);
	free(s->threads);
	free(s->coverage);
	output_close(&s->output);
	*s = (struct session){0};
}
