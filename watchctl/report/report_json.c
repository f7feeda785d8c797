/*
 * report_json: JSON Lines, schema "watchctl/1", one object a line.
 *
 * Most hits repeat a backtrace, and a backtrace is most of a line's bytes: the
 * text of each is made once and copied from then on; or (stacks_once) it is a
 * line of its own, which later hits name.  Most of the rest is the same as for
 * the last hit with the same backtrace, or of the same thread: that text is
 * kept together with all that it was made of, and copied if that is equal.
 *
 *	seq, watch, time | thread | access | values | stack
 *	      made	   copied   copied   made     copied
 */
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "judge/by_stack.h"
#include "report/change.h"
#include "report/damage.h"
#include "report/summary.h"
#include "report/value_range.h"
#include "util/field.h"

enum {
	KEPT_MAX = 16 << 20,	/* bytes of backtraces kept at most */
	NAMED_MAX = 1 << 16,	/* backtraces known to have a line */
	THREADS_MAX = 64,	/* whose text is kept: by the tid, modulo */
	PLACES_MAX = 1024,	/* likewise: by the backtrace's index */
};

/* What a hit's line says of its thread; and that as text. */
struct thread_key {
	pid_t pid, tid;
	uint32_t cpu;
	char comm[64];		/* as in struct ex_hit */
};

struct kept_thread {
	struct thread_key of;
	struct buffer text;	/* empty: none is kept */
};

/* What it says of the access, except values and system calls; and that as text.
   No padding, so that memcmp may compare. */
struct access_key {
	const char *access, *type, *path;	/* which last as long as the
						   report */
	uint64_t addr, len, pc;
	uint64_t insn_pc, insn_addr;
	uint32_t insn_size, confidence;
	uint32_t samples;
	uint32_t is;		/* bits: stray, unjudged, late, unsure */
	char insn_text[96];	/* as in struct ex_insn */
};

struct kept_access {
	struct access_key of;
	struct buffer text;	/* empty: none is kept */
};

struct json {
	struct buffer out;	/* lines to be written */
	size_t start;		/* where the last of them begins */
	struct by_stack stacks;	/* of struct buffer: its fields */
	size_t kept;		/* bytes in all of them */
	unsigned *named;	/* stacks_once: which backtrace's line was the
				   last, of those whose index is alike modulo
				   NAMED_MAX: its index + 1; 0: none's */
	struct kept_thread thread[THREADS_MAX];
	struct kept_access access[PLACES_MAX];
};

/* The name of a backtrace; and where that has to lead to frames, which of those
   that have it: they are the same places at other addresses. */
static void
field_stack(struct buffer *b, const char *name, const struct report *r,
    const struct ex_stack *stack)
{
	field(b, name);
	buffer_put(b, "\"", 1);
	buffer_hex_digits(b, stack->id, 16);
	buffer_put(b, "\"", 1);
	if (r->stacks_once && stack->variant > 0)
		field_dec(b, "variant", stack->variant + 1);
}

/* Seconds since the run began, from times on the records' clock. */
static void
field_seconds(struct buffer *b, const char *name, uint64_t time,
    uint64_t begin)
{
	uint64_t ns = time >= begin ? time - begin : begin - time;

	field(b, name);
	if (time < begin)
		buffer_put(b, "-", 1);
	buffer_dec(b, ns / 1000000000);
	buffer_put(b, ".", 1);
	buffer_digits(b, ns % 1000000000, 9);
}

static struct buffer *
line_begin(struct report *r, const char *type)
{
	struct json *json = r->own;

	json->start = json->out.len;
	buffer_puts(&json->out, "{\"type\":\"");
	buffer_puts(&json->out, type);
	buffer_put(&json->out, "\"", 1);
	return &json->out;
}

/* End the line that was begun, of a hit or not, and write when there is enough.
   0 or -errno. */
static int
line_end_of(struct report *r, bool hit)
{
	struct json *json = r->own;
	int rc;

	buffer_put(&json->out, "}\n", 2);
	rc = buffer_commit(&json->out, json->start);
	if (rc == 0 && hit)
		report_hit_ends(r, &json->out);
	return rc != 0 ? rc : report_write_full(r, &json->out);
}

static int
line_end(struct report *r)
{
	return line_end_of(r, false);
}

static int
json_flush(struct report *r)
{
	return report_write(r, &((struct json *)r->own)->out);
}

/* Of several processes, which one. */
static void
field_pid(struct buffer *b, const struct ex_watch *watch)
{
	if (watch->pid > 0)
		field_dec(b, "pid", (uint64_t)watch->pid);
}

static void
watch_fields(struct buffer *b, const struct ex_watch *watch)
{
	const char access[] = {(char)watch->access, '\0'};

	field_dec(b, "id", ex_watch_number(watch));
	field_pid(b, watch);
	if (watch->spec != NULL)
		field_text(b, "spec", watch->spec);
	if (watch->symbol != NULL)
		field_text(b, "symbol", watch->symbol);
	if (watch->pending)
		field_flag(b, "pending", true);
	else if (watch->local)
		field_flag(b, "thread_local", true);
	else
		field_hex(b, "addr", watch->addr);
	if (watch->len != 0)
		field_dec(b, "len", watch->len);
	field_text(b, "access", access);
	if (watch->slots != 0)
		field_dec(b, "slots", watch->slots);
}

static void
put_watches(struct buffer *b, const struct report_start *start)
{
	field(b, "watches");
	buffer_put(b, "[", 1);
	for (unsigned i = 0; i < start->nwatches; i++) {
		if (start->watches[i]->whole != NULL)
			continue;
		if (i > 0)
			buffer_put(b, ",", 1);
		buffer_put(b, "{", 1);
		watch_fields(b, start->watches[i]);
		buffer_put(b, "}", 1);
	}
	buffer_put(b, "]", 1);
}

/* Milliseconds to the microsecond, with a point in every locale. */
static void
field_frozen(struct buffer *b, double ms)
{
	uint64_t us;

	if (!isfinite(ms) || ms < 0 || ms > 1e12)
		return;
	us = (uint64_t)(ms * 1000 + 0.5);
	field_dec(b, "frozen_ms", us / 1000);
	buffer_put(b, ".", 1);
	buffer_digits(b, us % 1000, 3);
}

/* As RFC 3339 has it, to the microsecond. */
static void
field_wall(struct buffer *b, uint64_t ns)
{
	const time_t seconds = (time_t)(ns / 1000000000);
	char text[32];
	struct tm tm;

	if (ns == 0 || gmtime_r(&seconds, &tm) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		return;
	field(b, "wall");
	buffer_printf(b, "\"%s.%06uZ\"", text,
	    (unsigned)(ns % 1000000000 / 1000));
}

static void
forget_stack(void *kept)
{
	buffer_free(kept);
}

static void
forget_stacks(struct json *json)
{
	by_stack_free(&json->stacks, sizeof(struct buffer));
	json->kept = 0;
}

static void
json_free(struct report *r)
{
	struct json *json = r->own;

	report_done(r);
	if (json == NULL)
		return;
	forget_stacks(json);
	for (size_t i = 0; i < THREADS_MAX; i++)
		buffer_free(&json->thread[i].text);
	for (size_t i = 0; i < PLACES_MAX; i++)
		buffer_free(&json->access[i].text);
	free(json->named);
	buffer_free(&json->out);
	free(json);
}

static int
json_start(struct report *r, const struct report_start *start)
{
	struct json *json = calloc(1, sizeof(*json));
	struct buffer *b;
	int rc;

	r->begin = *start;
	r->own = json;
	r->summary = summary_new(SUMMARY_ROWS);
	if (json != NULL && r->stacks_once)
		json->named = calloc(NAMED_MAX, sizeof(*json->named));
	if (json == NULL || r->summary == NULL ||
	    (r->stacks_once && json->named == NULL)) {
		json_free(r);
		return -ENOMEM;
	}
	json->stacks.forget = forget_stack;
	b = line_begin(r, "start");
	field_text(b, "schema", "watchctl/1");
	if (*start->origin.host != '\0')
		field_text(b, "host", start->origin.host);
	if (start->origin.ranked)
		field_dec(b, "rank", start->origin.rank);
	if (start->pid > 0)
		field_dec(b, "pid", (uint64_t)start->pid);
	if (start->comm != NULL)
		field_text(b, "comm", start->comm);
	if (start->mode != NULL)
		field_text(b, "mode", start->mode);
	if (start->delivery != NULL)
		field_text(b, "delivery", start->delivery);
	if (start->threads > 0)
		field_dec(b, "threads", start->threads);
	field_frozen(b, start->frozen_ms);
	field_wall(b, start->wall);
	put_watches(b, start);
	rc = line_end(r);
	return rc != 0 ? rc : json_flush(r);
}

static int
json_watch(struct report *r, const struct ex_watch *const *watches,
    unsigned nwatches)
{
	struct buffer *b = line_begin(r, "watch");

	r->begin.watches = watches;
	r->begin.nwatches = nwatches;
	watch_fields(b, watches[nwatches - 1]);
	return line_end(r);
}

static int
json_event(struct report *r, const struct watch_event *event)
{
	const struct ex_watch *watch = r->begin.watches[event->watch];
	struct buffer *b = line_begin(r, "watch");

	field_text(b, "event", watch_event_text(event));
	field_dec(b, "id", ex_watch_number(watch));
	field_seconds(b, "time", event->time, r->begin.time);
	if (event->pid > 0)
		field_dec(b, "pid", (uint64_t)event->pid);
	if (event->tid > 0)
		field_dec(b, "tid", (uint64_t)event->tid);
	if (event->len > 0) {
		field_hex(b, "addr", event->addr);
		field_dec(b, "len", event->len);
	}
	if (*event->module != '\0')
		field_text(b, "module", event->module);
	if (*event->program != '\0')
		field_text(b, "program", event->program);
	if (event->gap != WATCH_NO_GAP) {
		field_dec(b, "gap_us", event->gap / 1000);
		buffer_put(b, ".", 1);
		buffer_digits(b, event->gap % 1000, 3);
	}
	return line_end(r);
}

static void
field_place(struct buffer *b, const struct ex_frame *frame)
{
	if (frame->file != NULL)
		field_text(b, "file", frame->file);
	if (frame->line > 0)
		field_dec(b, "line", (uint64_t)frame->line);
}

static void
put_frame(struct buffer *b, const struct ex_frame *frame)
{
	const char *build_id;

	buffer_put(b, "{", 1);
	if (frame->pc != 0)
		field_hex(b, "pc", frame->pc);
	if (frame->function != NULL) {
		field_text(b, "function", frame->function);
		if (!frame->inlined && frame->pc != 0)
			field_dec(b, "offset", frame->offset);
	}
	if (frame->module != NULL) {
		field_text(b, "module", ex_module_name(frame->module));
		build_id = ex_module_build_id(frame->module);
		if (*build_id != '\0')
			field_text(b, "build_id", build_id);
	}
	field_place(b, frame);
	if (frame->column > 0)
		field_dec(b, "column", (uint64_t)frame->column);
	field(b, "inlined");
	buffer_puts(b, frame->inlined ? "true" : "false");
	field_flag(b, "signal", frame->signal);
	field_flag(b, "kernel", frame->kernel);
	field_flag(b, "tail_call", frame->tail);
	field_flag(b, "gap", frame->gap);
	buffer_put(b, "}", 1);
}

/* The fields of a backtrace, except its name. */
static void
put_frames(struct buffer *b, const struct ex_stack *stack)
{
	const char *end = ex_end_text(stack->end);

	field(b, "frames");
	buffer_put(b, "[", 1);
	for (unsigned i = 0; i < stack->n; i++) {
		if (i > 0)
			buffer_put(b, ",", 1);
		put_frame(b, &stack->frame[i]);
	}
	buffer_put(b, "]", 1);
	field_flag(b, "incomplete", stack->gap);
	if (end != NULL)
		field_text(b, "truncated", end);
}

static void
put_stack(struct buffer *b, const struct report *r,
    const struct ex_stack *stack)
{
	field_stack(b, "stack", r, stack);
	put_frames(b, stack);
}

/* The line of a backtrace, unless it is written. */
static int
name_stack(struct report *r, const struct ex_stack *stack)
{
	struct json *json = r->own;
	unsigned *named = &json->named[stack->index % NAMED_MAX];
	struct buffer *b;
	int rc;

	if (*named == stack->index + 1)
		return 0;
	b = line_begin(r, "stack");
	field_stack(b, "id", r, stack);
	put_frames(b, stack);
	rc = line_end(r);
	*named = rc == 0 ? stack->index + 1 : 0;
	return rc;
}

/* The backtrace's fields in a hit: made once, then copied. */
static void
hit_stack(struct report *r, const struct ex_stack *stack)
{
	struct json *json = r->own;
	struct buffer *kept;

	if (r->stacks_once) {
		field_stack(&json->out, "stack", r, stack);
		return;
	}
	if (json->kept > KEPT_MAX)
		forget_stacks(json);
	kept = by_stack_at(&json->stacks, stack->index, sizeof(*kept));
	if (kept != NULL && kept->len == 0) {
		put_stack(kept, r, stack);
		(void)buffer_commit(kept, 0);
		json->kept += kept->cap;
	}
	if (kept != NULL && kept->len > 0)
		buffer_put(&json->out, kept->bytes, kept->len);
	else
		put_stack(&json->out, r, stack);
}

static void
hit_insn(struct buffer *b, const struct ex_insn *insn)
{
	field(b, "insn");
	buffer_put(b, "{", 1);
	if (insn->confidence != EX_UNKNOWN) {
		field_hex(b, "pc", insn->pc);
		field_text(b, "text", insn->text);
	}
	field_text(b, "confidence", ex_confidence_text(insn->confidence));
	if (insn->confidence == EX_EXACT && insn->size != 0) {
		field_hex(b, "addr", insn->addr);
		field_dec(b, "size", insn->size);
	}
	buffer_put(b, "}", 1);
}

static void
field_value(struct buffer *b, const char *name, const struct ex_hit *hit,
    const struct ex_value *value)
{
	field(b, name);
	buffer_put(b, "\"", 1);
	change_put_hex(b, hit, value);
	buffer_put(b, "\"", 1);
}

static void
hit_values(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;

	if (c->has_old)
		field_value(b, "old", hit, &hit->old);
	if (*c->old_text != '\0')
		field_text(b, "old_text", c->old_text);
	if (!c->has_new)
		return;
	field_value(b, "new", hit, &hit->new);
	if (*c->new_text != '\0')
		field_text(b, "new_text", c->new_text);
	field_text(b, "value_source", ex_value_source_text(hit->source));
	field_flag(b, "unchanged", hit->unchanged);
}

/* Whether text could be made whole; else there is none. */
static bool
is_whole(struct buffer *text)
{
	return buffer_commit(text, 0) == 0;
}

static void
put_thread(struct buffer *b, const struct thread_key *thread)
{
	if (thread->pid >= 0)
		field_dec(b, "pid", (uint64_t)thread->pid);
	if (thread->tid >= 0)
		field_dec(b, "tid", (uint64_t)thread->tid);
	if (*thread->comm != '\0')
		field_text(b, "comm", thread->comm);
	if (thread->cpu != UINT32_MAX)
		field_dec(b, "cpu", thread->cpu);
}

static void
hit_thread(struct json *json, const struct ex_hit *hit)
{
	struct kept_thread *kept =
	    &json->thread[(unsigned)hit->tid % THREADS_MAX];
	struct thread_key key = {
		.pid = hit->pid, .tid = hit->tid, .cpu = hit->cpu,
	};

	memcpy(key.comm, hit->comm, sizeof(key.comm));
	if (memcmp(&kept->of, &key, sizeof(key)) != 0) {
		kept->of = key;
		kept->text.len = 0;
	}
	if (kept->text.len == 0)
		put_thread(&kept->text, &key);
	if (is_whole(&kept->text))
		buffer_put(&json->out, kept->text.bytes, kept->text.len);
	else
		put_thread(&json->out, &key);
}

static void
hit_call(struct buffer *b, const struct ex_syscall *call)
{
	if (call->name != NULL)
		field_text(b, "syscall", call->name);
	if (call->work != NULL)
		field_text(b, "work", call->work);
	if (call->has_bytes)
		field_dec(b, "syscall_bytes", call->bytes);
	if (!call->has_fd)
		return;
	field_dec(b, "fd", (uint64_t)call->fd);
	if (*call->file == '\0')
		return;
	field_text(b, "file", call->file);
	field_text(b, "file_source", call->file_later ? "later" : "stop");
}

static void
put_access(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;

	field_text(b, "access", hit->access);
	field_flag(b, "stray", hit->stray);
	field_flag(b, "unjudged", hit->unjudged);
	if (hit->unsure)
		field_text(b, "if", "unknown");
	field_text(b, "origin", hit->kernel ? "kernel" : "user");
	if (hit->kernel)
		hit_call(b, &hit->call);
	field_hex(b, "addr", hit->addr);
	if (hit->len > 0)
		field_dec(b, "len", hit->len);
	if (hit->samples > 1)
		field_dec(b, "samples", hit->samples);
	field_flag(b, "late", hit->late);
	if (hit->pc != 0)
		field_hex(b, "pc", hit->pc);
	if (!hit->kernel)
		hit_insn(b, &hit->insn);
	if (c->type != NULL)
		field_text(b, "value_type", c->type);
	if (c->path != NULL)
		field_text(b, "path", c->path);
}

/* All of a hit that put_access() reads, if it is not the kernel's. */
static struct access_key
access_key_of(const struct ex_hit *hit)
{
	struct access_key key = {
		.access = hit->access, .type = hit->change.type,
		.path = hit->change.path,
		.addr = hit->addr, .len = hit->len, .pc = hit->pc,
		.insn_pc = hit->insn.pc, .insn_addr = hit->insn.addr,
		.insn_size = hit->insn.size,
		.confidence = (uint32_t)hit->insn.confidence,
		.samples = hit->samples,
		.is = (uint32_t)hit->stray | (uint32_t)hit->unjudged << 1 |
		    (uint32_t)hit->late << 2 | (uint32_t)hit->unsure << 3,
	};

	memcpy(key.insn_text, hit->insn.text, sizeof(key.insn_text));
	return key;
}

static void
hit_access(struct json *json, const struct ex_hit *hit)
{
	struct kept_access *kept;
	struct access_key key;

	if (hit->kernel || hit->stack == NULL) {
		put_access(&json->out, hit);
		return;
	}
	kept = &json->access[hit->stack->index % PLACES_MAX];
	key = access_key_of(hit);
	if (memcmp(&kept->of, &key, sizeof(key)) != 0) {
		kept->of = key;
		kept->text.len = 0;
	}
	if (kept->text.len == 0)
		put_access(&kept->text, hit);
	if (is_whole(&kept->text))
		buffer_put(&json->out, kept->text.bytes, kept->text.len);
	else
		put_access(&json->out, hit);
}

static void
hit_arguments(struct buffer *b, const struct ex_arguments *args)
{
	field(b, "args");
	buffer_put(b, "[", 1);
	for (unsigned i = 0; i < args->n; i++) {
		const struct ex_argument *arg = &args->arg[i];

		buffer_puts(b, i > 0 ? ",{" : "{");
		if (*arg->name != '\0')
			field_text(b, "name", arg->name);
		field_text(b, "type", arg->type);
		if (*arg->text != '\0')
			field_text(b, "text", arg->text);
		if (arg->has_value)
			field_hex(b, "value", arg->value);
		buffer_put(b, "}", 1);
	}
	buffer_put(b, "]", 1);
}

static void
hit_counters(struct buffer *b, const struct ex_hit *hit)
{
	field(b, "with");
	buffer_put(b, "{", 1);
	for (unsigned i = 0; i < hit->nwith; i++) {
		buffer_printf(b, "%s\"%s\":", i == 0 ? "" : ",",
		    hit->with[i].name);
		buffer_dec(b, hit->with[i].count);
	}
	buffer_put(b, "}", 1);
}

static int
json_hit(struct report *r, const struct ex_hit *hit)
{
	struct json *json = r->own;
	struct buffer *b;
	int rc = report_count(r, hit), written;

	if (r->summary_only)
		return rc;
	written = r->stacks_once && hit->stack != NULL ?
	    name_stack(r, hit->stack) : 0;
	if (written != 0)	/* a hit without its backtrace is none */
		return written;
	b = line_begin(r, "hit");
	field_dec(b, "seq", hit->seq);
	field_dec(b, "watch", ex_watch_number(hit->watch));
	field_seconds(b, "time", hit->time, r->begin.time);
	hit_thread(json, hit);
	hit_access(json, hit);
	hit_values(b, hit);
	if (hit->args != NULL)
		hit_arguments(b, hit->args);
	if (hit->nwith > 0)
		hit_counters(b, hit);
	if (hit->stack != NULL)
		hit_stack(r, hit->stack);
	written = line_end_of(r, true);
	return written != 0 ? written : rc;
}

static int
json_lost(struct report *r, uint64_t count)
{
	struct buffer *b;

	if (r->summary_only)
		return 0;
	b = line_begin(r, "lost");
	field_dec(b, "count", count);
	return line_end(r);
}

static int
json_thread(struct report *r, bool exited, pid_t tid)
{
	struct buffer *b;

	if (r->summary_only)
		return 0;
	b = line_begin(r, "thread");
	field_text(b, "event", exited ? "exit" : "new");
	field_dec(b, "tid", (uint64_t)tid);
	return line_end(r);
}

static int
json_warning(struct report *r, const char *text)
{
	struct buffer *b = line_begin(r, "warning");

	field_text(b, "text", text);
	return line_end(r);
}

/* Those values of a row that are proved. */
static void
put_range(struct buffer *b, const struct value_range *range)
{
	const struct {
		const char *name;
		const struct range_value *value;
	} values[] = {
		{"first", &range->first}, {"last", &range->last},
		{"min", &range->least}, {"max", &range->largest},
	};
	const size_t start = b->len;
	bool any = false;

	field(b, "values");
	buffer_put(b, "{", 1);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (!values[i].value->known)
			continue;
		any = true;
		field(b, values[i].name);
		buffer_put(b, "\"", 1);
		value_range_put_hex(b, values[i].value);
		buffer_put(b, "\"", 1);
		if (i >= 2 && *values[i].value->text != '\0')
			field_text(b, i == 2 ? "min_text" : "max_text",
			    values[i].value->text);
	}
	buffer_put(b, "}", 1);
	if (!any)
		b->len = start;
}

static void
put_threads(struct buffer *b, const struct summary_row *row)
{
	field(b, "threads");
	buffer_put(b, "[", 1);
	for (unsigned i = 0; i < row->nthreads; i++)
		buffer_printf(b, i == 0 ? "%d" : ",%d", (int)row->threads[i]);
	buffer_put(b, "]", 1);
}

static int
json_last(struct report *r, uint64_t count, const char *reason)
{
	struct buffer *b = line_begin(r, "last");

	if (count != UINT64_MAX)
		field_dec(b, "count", count);
	field_text(b, "reason", reason);
	return line_end(r);
}

static int
put_summary(struct report *r, const struct summary_row *row)
{
	const int named = r->summary_only && row->stack != NULL ?
	    name_stack(r, row->stack) : 0;
	struct buffer *b;

	if (named != 0)
		return named;
	b = line_begin(r, "summary");
	field_dec(b, "watch", ex_watch_number(row->watch));
	if (row->stack != NULL)
		field_stack(b, "stack", r, row->stack);
	field_flag(b, "others", row->others);
	field_flag(b, "partial", row->partial);
	if (!row->others)
		field_text(b, "access", row->access);
	field_dec(b, "count", row->count);
	field_seconds(b, "first", row->first, r->begin.time);
	field_seconds(b, "last", row->last, r->begin.time);
	if (!row->others)
		put_threads(b, row);
	if (row->values != NULL)
		put_range(b, row->values);
	return line_end(r);
}

/* With --count: the hits that a thread made of a watch; NULL: of some thread. */
static int
put_count(struct report *r, const struct ex_watch *watch,
    const struct wp_thread_count *thread, uint64_t count)
{
	struct buffer *b = line_begin(r, "count");

	field_dec(b, "watch", ex_watch_number(watch));
	if (thread == NULL)
		field_pid(b, watch);
	else {
		field_dec(b, "pid", (uint64_t)thread->pid);
		field_dec(b, "tid", (uint64_t)thread->tid);
	}
	field_dec(b, "count", count);
	return line_end(r);
}

/* Each thread's of a watch, and what is of none that is known. */
static int
put_counts(struct report *r, const struct report_end *end, unsigned watch)
{
	const struct ex_watch *it = r->begin.watches[watch];
	uint64_t left = end->counts[watch];
	int rc = 0;

	for (size_t i = 0; i < end->nthreads && rc == 0; i++) {
		const struct wp_thread_count *thread = &end->threads[i];

		if (thread->watch != watch || thread->count > left)
			continue;
		left -= thread->count;
		rc = put_count(r, it, thread, thread->count);
	}
	return rc != 0 || (left == 0 && end->counts[watch] > 0) ? rc :
	    put_count(r, it, NULL, left);
}

/* One writer that is stray, or may be, at the place that is to be blamed. */
static int
put_finding(struct report *r, const struct finding *finding)
{
	struct buffer *b = line_begin(r, "finding");
	const struct ex_frame *frame = finding->culprit;

	field_bool(b, finding->incomplete ? "unjudged" : "stray", true);
	field_flag(b, "late", finding->late);
	field_dec(b, "watch", ex_watch_number(finding->watch));
	field_dec(b, "count", finding->count);
	field_dec(b, "first_seq", finding->first_seq);
	field_text(b, "access", finding->access);
	if (frame != NULL) {
		if (frame->function != NULL)
			field_text(b, "function", frame->function);
		field_place(b, frame);
		if (frame->module != NULL)
			field_text(b, "module", ex_module_name(frame->module));
		if (frame->pc != 0)
			field_hex(b, "pc", frame->pc);
	}
	if (finding->stack != NULL)
		field_stack(b, "stack", r, finding->stack);
	return line_end(r);
}

static void
field_hex_bytes(struct buffer *b, const char *name, const uint8_t *bytes,
    size_t n)
{
	static const char digits[] = "0123456789abcdef";

	field(b, name);
	buffer_put(b, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		buffer_put(b, &digits[bytes[i] >> 4], 1);
		buffer_put(b, &digits[bytes[i] & 15], 1);
	}
	buffer_put(b, "\"", 1);
}

static void
field_callers(struct buffer *b, const char *name, const struct report *r,
    const struct ex_stack *stack)
{
	if (stack == NULL)
		return;
	field(b, name);
	buffer_put(b, "{", 1);
	put_stack(b, r, stack);
	buffer_put(b, "}", 1);
}

static void
field_signed(struct buffer *b, const char *name, int64_t value)
{
	field(b, name);
	buffer_printf(b, "%lld", (long long)value);
}

/* The block, as far as it is known. */
static void
put_block(struct buffer *b, const struct report_damage *it)
{
	const struct hg_finding *f = it->found;

	if (it->stack[HG_STACK_ALLOC] != NULL)
		field_dec(b, "size", f->size);
	if (f->nbytes > 0 || f->offset != 0)
		field_signed(b, "offset", f->offset);
	if (f->nbytes > 0)
		field_hex_bytes(b, "bytes", f->bytes,
		    damage_bytes(f));
	field_hex(b, "addr", f->addr);
	if (f->kind == HG_MISMATCH) {
		field_text(b, "allocated_by", damage_allocator(f));
		field_text(b, "freed_by", damage_freer(f));
	}
}

static int
json_damage(struct report *r, const struct report_damage *it)
{
	struct buffer *b = line_begin(r, "finding");
	const struct hg_finding *f = it->found;

	field_text(b, "kind", damage_kind(f));
	field_dec(b, "pid", (uint64_t)f->pid);
	field_dec(b, "tid", (uint64_t)f->tid);
	if (*f->program != '\0')
		field_text(b, "program", f->program);
	put_block(b, it);
	field_text(b, "noticed", damage_when(f));
	field_callers(b, "alloc", r, it->stack[HG_STACK_ALLOC]);
	field_callers(b, "free", r, it->stack[HG_STACK_FREE]);
	if (it->stack[HG_STACK_OTHER] != NULL) {
		field(b, "in_front");
		buffer_put(b, "{", 1);
		field_dec(b, "size", f->other_size);
		field_dec(b, "gap", f->other_gap);
		field_callers(b, "alloc", r, it->stack[HG_STACK_OTHER]);
		buffer_put(b, "}", 1);
	}
	if (it->stack[HG_STACK_NOTICED] != NULL)
		put_stack(b, r, it->stack[HG_STACK_NOTICED]);
	return line_end(r);
}

static int
put_coverage(struct report *r, const struct coverage *part)
{
	struct buffer *b = line_begin(r, "coverage");
	const struct ex_watch *watch = r->begin.watches[part->watch];
	const double share = coverage_share(part);

	field_dec(b, "watch", ex_watch_number(watch));
	field_pid(b, watch);
	field_hex(b, "addr", part->addr);
	field_dec(b, "len", part->len);
	field(b, "share");
	buffer_dec(b, (uint64_t)share);
	buffer_puts(b, ".");
	buffer_digits(b, (uint64_t)((share - (double)(uint64_t)share) * 1e6),
	    6);
	field_dec(b, "hits", part->hits);
	return line_end(r);
}

static int
put_end(struct report *r, const struct report_end *end)
{
	struct buffer *b = line_begin(r, "end");

	field_dec(b, "hits", end->hits);
	field_dec(b, "reported", end->reported);
	field_dec(b, "lost", end->lost);
	if (end->conditional)
		field_dec(b, "rejected", end->rejected);
	if (end->changed)
		field_dec(b, "unchanged", end->unchanged);
	if (end->thinned)
		field_dec(b, "skipped", end->skipped);
	if (end->handled > 0)
		field_dec(b, "handled", end->handled);
	if (end->dropped > 0)
		field_dec(b, "dropped", end->dropped);
	if (end->judged)
		field_dec(b, "stray", end->stray);
	if (end->unjudged > 0)
		field_dec(b, "unjudged", end->unjudged);
	if (end->uptime.known && end->uptime.threads > 0)
		field_dec(b, "threads", end->uptime.threads);
	if (end->uptime.known) {
		field_dec(b, "watched_ns", end->uptime.ran - end->uptime.off);
		field_dec(b, "gap_ns", end->uptime.off);
		if (end->uptime.unknown > 0)
			field_dec(b, "unmeasured", end->uptime.unknown);
	}
	if (end->reason != NULL)
		field_text(b, "reason", end->reason);
	field(b, "status");
	buffer_printf(b, "%d", end->status);
	return line_end(r);
}

static int
json_end(struct report *r, const struct report_end *end)
{
	const struct summary_row *rows;
	size_t n;
	int rc = 0, flushed;

	if (r->own == NULL)
		return 0;
	if (end != NULL) {
		n = summary_rows(r->summary, &rows);
		for (size_t i = 0; i < n && rc == 0; i++)
			rc = put_summary(r, &rows[i]);
		for (unsigned i = 0; end->counts != NULL && rc == 0 &&
		    i < r->begin.nwatches; i++)
			rc = put_counts(r, end, i);
		for (size_t i = 0; i < end->nfindings && rc == 0; i++)
			rc = put_finding(r, end->findings[i]);
		for (size_t i = 0; i < end->ndoubts && rc == 0; i++)
			rc = put_finding(r, end->doubts[i]);
		for (size_t i = 0; i < end->ncoverage && rc == 0; i++)
			rc = put_coverage(r, &end->coverage[i]);
		if (rc == 0)
			rc = put_end(r, end);
	}
	flushed = json_flush(r);
	if (end != NULL && r->summary_only && rc == 0 && flushed == 0)
		report_counted(r);
	json_free(r);
	return rc != 0 ? rc : flushed;
}

const struct report_ops report_json = {
	.name = "json", .start = json_start, .watch = json_watch,
	.event = json_event, .hit = json_hit,
	.damage = json_damage,
	.lost = json_lost, .thread = json_thread, .warning = json_warning,
	.last = json_last, .flush = json_flush, .end = json_end,
};
