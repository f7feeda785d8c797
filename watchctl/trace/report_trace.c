/*
 * report_trace: Trace Event JSON, for Perfetto, speedscope and
 * chrome://tracing.
 *
 *	{"traceEvents":[
 *	{"ph":"M","name":"thread_name",...}
 *	,{"ph":"C","name":"counter",...,"args":{"value":42}}
 *	,{"ph":"i","s":"t","name":"bump",...,"sf":3,"args":{...,"new":42}}
 *	],"stackFrames":{...},"samples":[...],"otherData":{...}}
 *
 * Events are written as they come, in whole lines.  The members after them are
 * kept until the end.  Times are in microseconds since the run began, and never
 * go back: a hit that is ordered after another gets the other's time if its own
 * is earlier.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "report/change.h"
#include "report/report.h"
#include "report/summary.h"
#include "report/value_range.h"
#include "trace/trace_samples.h"
#include "trace/trace_stacks.h"
#include "util/field.h"

enum { THREADS_MAX = 1 << 16, WARNINGS_MAX = 100 };

struct trace {
	struct buffer out;	/* what is to be written */
	struct buffer scratch;	/* a value, before it is quoted */
	struct buffer place;	/* when the hit was, and in which thread */
	struct buffer spec;	/* the SPEC of the last hit's watch, as a JSON
				   string */
	const struct ex_watch *watch;	/* that one */
	struct trace_stacks stacks;
	struct trace_samples samples;
	struct ex_table threads;	/* struct named_thread by pid and tid */
	struct buffer warnings;	/* JSON strings, with commas */
	unsigned nwarnings;
	uint64_t now;		/* the time of the last event, ns since the run
				   began */
	bool begun;		/* a hit was taken */
	uint64_t before;	/* hits that another one has written, whose
				   samples are not known */
	uint64_t unstacked;	/* hits whose backtrace had no room */
};

/* A thread whose name has been written. */
struct named_thread {
	char comm[sizeof(((struct ex_hit *)NULL)->comm)];
};

static void
trace_free(struct report *r)
{
	struct trace *t = r->own;

	report_done(r);
	if (t == NULL)
		return;
	buffer_free(&t->out);
	buffer_free(&t->scratch);
	buffer_free(&t->place);
	buffer_free(&t->spec);
	buffer_free(&t->warnings);
	buffer_free(&t->samples.packed);
	trace_stacks_free(&t->stacks);
	ex_table_free(&t->threads, free);
	free(t);
}

/* End the event that was begun at start, and write the buffer if it is full
   enough, or always. */
static int
write_out(struct report *r, size_t start, bool always)
{
	struct buffer *b = &((struct trace *)r->own)->out;
	const int rc = buffer_commit(b, start);

	return rc != 0 ? rc : always ? report_write(r, b) :
	    report_write_full(r, b);
}

static int
trace_start(struct report *r, const struct report_start *start)
{
	struct trace *t = calloc(1, sizeof(*t));

	r->begin = *start;
	r->summary = NULL;
	r->own = t;
	if (t == NULL)
		return -ENOMEM;
	buffer_puts(&t->out, "{\"traceEvents\":[\n");
	return write_out(r, 0, true);
}

/* --- events --- */

static void
put_time(struct buffer *b, uint64_t ns)
{
	field_dec(b, "ts", ns / 1000);
	if (ns % 1000 != 0) {
		buffer_put(b, ".", 1);
		buffer_digits(b, ns % 1000, 3);
	}
}

static void
find_place(struct trace *t, const struct ex_hit *hit)
{
	t->place.len = 0;
	put_time(&t->place, t->now);
	field_dec(&t->place, "pid", (uint64_t)hit->pid);
	field_dec(&t->place, "tid", (uint64_t)hit->tid);
}

static void
put_event(struct report *r, const char *kind)
{
	struct trace *t = r->own;

	buffer_puts(&t->out, t->begun ? ",{" : "{");
	t->begun = true;
	buffer_puts(&t->out, kind);
	buffer_put(&t->out, t->place.bytes, t->place.len);
	t->out.failed |= t->place.failed;
}

/* Write the name of a thread if it is new or has changed. */
static void
put_thread(struct report *r, const struct ex_hit *hit)
{
	struct trace *t = r->own;
	const uint64_t key = (uint64_t)hit->pid << 32 | (uint32_t)hit->tid;
	struct named_thread *named = ex_table_get(&t->threads, key);

	if (*hit->comm == '\0' ||
	    (named != NULL && strcmp(named->comm, hit->comm) == 0))
		return;
	if (t->threads.n >= THREADS_MAX) {
		ex_table_free(&t->threads, free);
		named = NULL;
	}
	if (named == NULL && ex_table_reserve(&t->threads, 1) &&
	    (named = calloc(1, sizeof(*named))) != NULL)
		ex_table_put(&t->threads, key, named);
	if (named != NULL)
		memcpy(named->comm, hit->comm, sizeof(named->comm));
	put_event(r, "\"ph\":\"M\",\"name\":\"thread_name\"");
	buffer_puts(&t->out, ",\"args\":{");
	field_text(&t->out, "name", hit->comm);
	buffer_puts(&t->out, "}}\n");
}

static const char *
spec_of(const struct ex_watch *watch, char address[24])
{
	if (watch->spec != NULL)
		return watch->spec;
	(void)snprintf(address, 24, "%#llx", (unsigned long long)watch->addr);
	return watch->symbol != NULL ? watch->symbol : address;
}

static void
find_spec(struct trace *t, const struct ex_watch *watch)
{
	char address[24];

	if (t->watch == watch)
		return;
	t->watch = watch;
	t->spec.len = 0;
	visible_put_json(&t->spec, spec_of(watch, address));
}

static void
put_spec(struct trace *t, const char *name)
{
	field(&t->out, name);
	buffer_put(&t->out, t->spec.bytes, t->spec.len);
	t->out.failed |= t->spec.failed;
}

/* The SPEC, or the part of it whose value it is: conn.state, table+8. */
static void
put_track(struct trace *t, const struct ex_hit *hit,
    const struct range_value *value)
{
	const struct ex_watch *watch = hit->watch;
	char address[24];

	if (value->len >= watch->len) {
		put_spec(t, "name");
		return;
	}
	if (change_is_part(hit)) {
		field_text(&t->out, "name", hit->change.path);
		return;
	}
	t->scratch.len = 0;
	buffer_puts(&t->scratch, spec_of(watch, address));
	buffer_puts(&t->scratch, "+");
	buffer_dec(&t->scratch, value->from);
	field_text(&t->out, "name", buffer_text(&t->scratch));
}

/* False: JSON has no such number. */
static bool
put_number(struct buffer *b, const struct ex_number *n)
{
	if (n->is_float && !isfinite(n->real))
		return false;
	field(b, "value");
	if (n->is_float)
		buffer_printf(b, "%.17Lg", n->real);
	else if (n->is_signed && (int64_t)n->bits < 0)
		buffer_printf(b, "%lld", (long long)n->bits);
	else
		buffer_dec(b, n->bits);
	return true;
}

/* Put the value, if it is a number and proved. */
static void
put_counter(struct report *r, const struct ex_hit *hit)
{
	struct buffer *b = &((struct trace *)r->own)->out;
	const size_t start = b->len;
	const bool begun = ((struct trace *)r->own)->begun;
	struct range_value value;

	value_range_take(&value, hit);
	if (!value.known || !value.comparable)
		return;
	put_event(r, "\"ph\":\"C\"");
	put_track(r->own, hit, &value);
	buffer_puts(b, ",\"args\":{");
	if (put_number(b, &value.number)) {
		buffer_puts(b, "}}\n");
		return;
	}
	b->len = start;
	((struct trace *)r->own)->begun = begun;
}

/* Whether a text is a number in JSON, too. */
static bool
is_number(const char *text)
{
	const char *at = text + (*text == '-');
	const size_t whole = strspn(at, "0123456789");

	if (whole == 0 || (whole > 1 && *at == '0'))
		return false;
	at += whole;
	if (*at == '.') {
		const size_t part = strspn(++at, "0123456789");

		if (part == 0)
			return false;
		at += part;
	}
	if (*at == 'e') {
		at += 1 + (at[1] == '-' || at[1] == '+');
		if (*at == '\0')
			return false;
		at += strspn(at, "0123456789");
	}
	return *at == '\0';
}

/* Put a value in the form of the text report: 41, "OPEN", "0x5581 <main+4>". */
static void
put_value(struct trace *t, const char *name, const struct ex_hit *hit,
    const struct ex_value *value, const char *text)
{
	struct buffer *s = &t->scratch;

	s->len = 0;
	if (*text != '\0')
		buffer_puts(s, text);
	else
		change_put_number(s, hit, value);
	text = buffer_text(s);
	field(&t->out, name);
	if (is_number(text))
		buffer_puts(&t->out, text);
	else
		visible_put_json(&t->out, text);
}

static void
put_arguments(struct trace *t, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;
	struct buffer *b = &t->out;

	buffer_puts(b, ",\"args\":{");
	put_spec(t, "spec");
	if (change_is_part(hit))
		field_text(b, "path", c->path);
	if (c->has_old)
		put_value(t, "old", hit, &hit->old, c->old_text);
	if (c->has_new && strcmp(hit->access, "read") != 0)
		put_value(t, "new", hit, &hit->new, c->new_text);
	if (c->has_new && hit->source == EX_VALUE_LATER)
		field_bool(b, "read_later", true);
	field_dec(b, "seq", hit->seq);
	field_flag(b, "stray", hit->stray);
	field_flag(b, "unjudged", hit->unjudged);
	field_flag(b, "late", hit->late);
	buffer_puts(b, "}");
}

static void
put_hit(struct report *r, const struct ex_hit *hit,
    const struct trace_stack *stack)
{
	struct trace *t = r->own;

	put_event(r, "\"ph\":\"i\",\"s\":\"t\"");
	field(&t->out, "name");
	buffer_puts(&t->out, stack->name);
	field_text(&t->out, "cat", hit->access);
	if (stack->frame != 0)
		field_dec(&t->out, "sf", stack->frame);
	put_arguments(t, hit);
	buffer_puts(&t->out, "}\n");
}

/* Continue behind what another process has written. */
static void
go_on(struct report *r)
{
	struct trace *t = r->own;

	if (t->begun || r->written == 0)
		return;
	t->before = r->written;
	t->begun = true;
}

static int
trace_hit(struct report *r, const struct ex_hit *hit)
{
	struct trace *t = r->own;
	const size_t start = t->out.len;
	const uint64_t time = hit->time < r->begin.time ? 0 :
	    hit->time - r->begin.time;
	const struct trace_stack *stack = trace_stacks_of(&t->stacks, hit);

	if (stack == NULL)
		return -ENOMEM;
	go_on(r);
	if (time > t->now)
		t->now = time;
	find_place(t, hit);
	find_spec(t, hit->watch);
	put_thread(r, hit);
	put_counter(r, hit);
	put_hit(r, hit, stack);
	if (!t->out.failed)
		report_hit_ends(r, &t->out);
	if (stack->frame != 0)
		trace_samples_add(&t->samples, &(struct trace_sample){
			t->now, hit->pid, hit->tid, stack->frame,
		});
	else
		t->unstacked++;
	return write_out(r, start, false);
}

/* The last hit with this backtrace that another process has written: what
   follows is not before it. */
static int
trace_recall(struct report *r, const struct ex_hit *hit,
    const struct summary_row *past)
{
	struct trace *t = r->own;
	const uint64_t last = past->last < r->begin.time ? 0 :
	    past->last - r->begin.time;

	if (last > t->now)
		t->now = last;
	return trace_stacks_of(&t->stacks, hit) == NULL ? -ENOMEM : 0;
}

/* --- the end --- */

static int
trace_warning(struct report *r, const char *text)
{
	struct trace *t = r->own;

	if (t->nwarnings == WARNINGS_MAX)
		return 0;
	if (t->nwarnings++ > 0)
		buffer_puts(&t->warnings, ",");
	visible_put_json(&t->warnings, text);
	return 0;
}

static int
trace_flush(struct report *r)
{
	return write_out(r, 0, true);
}

static int
put_samples(struct report *r)
{
	struct trace *t = r->own;
	struct trace_sample sample = {0};
	size_t at = 0;
	int rc = 0;

	buffer_puts(&t->out, ",\n\"samples\":[\n");
	for (bool first = true; rc == 0 &&
	    trace_samples_next(&t->samples, &at, &sample); first = false) {
		const size_t start = t->out.len;

		buffer_puts(&t->out, first ? "{" : ",{");
		put_time(&t->out, sample.time);
		field_dec(&t->out, "pid", (uint64_t)sample.pid);
		field_dec(&t->out, "tid", (uint64_t)sample.tid);
		field_dec(&t->out, "sf", sample.frame);
		field_dec(&t->out, "weight", 1);
		buffer_puts(&t->out, "}\n");
		rc = write_out(r, start, false);
	}
	buffer_puts(&t->out, "]");
	return rc;
}

/* Put the account, and what is missing from the trace. */
static void
put_account(struct report *r, const struct report_end *end)
{
	struct trace *t = r->own;
	struct buffer *b = &t->out;
	const uint64_t left_out = t->before + t->samples.left_out +
	    t->unstacked;

	buffer_puts(b, ",\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{");
	field_text(b, "producer", "watchctl");
	if (r->begin.mode != NULL)
		field_text(b, "mode", r->begin.mode);
	field_dec(b, "hits", end->hits);
	field_dec(b, "reported", end->reported);
	field_dec(b, "lost", end->lost);
	if (end->judged)
		field_dec(b, "stray", end->stray);
	if (end->reason != NULL)
		field_text(b, "reason", end->reason);
	if (left_out > 0)
		field_dec(b, "hits_without_sample", left_out);
	field(b, "warnings");
	buffer_puts(b, "[");
	buffer_put(b, t->warnings.bytes, t->warnings.failed ? 0 :
	    t->warnings.len);
	buffer_puts(b, "]}}\n");
}

static int
trace_end(struct report *r, const struct report_end *end)
{
	struct trace *t = r->own;
	int rc = 0, flushed = 0;

	if (t == NULL)
		return 0;
	if (end != NULL) {
		go_on(r);
		buffer_puts(&t->out, "],\n\"stackFrames\":{\n");
		buffer_put(&t->out, t->stacks.frames.bytes,
		    t->stacks.frames.len);
		buffer_puts(&t->out, "}");
		rc = put_samples(r);
		put_account(r, end);
		flushed = write_out(r, 0, true);
	}
	trace_free(r);
	return rc != 0 ? rc : flushed;
}

const struct report_ops report_trace = {
	.name = "trace", .start = trace_start, .hit = trace_hit,
	.recall = trace_recall, .warning = trace_warning, .flush = trace_flush,
	.end = trace_end,
};
