/* report_json: JSON Lines, schema "watchctl/1", one object a line. */
#include "json/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "report/summary.h"
#include "util/wall_clock.h"

static int
json_flush(struct report *r)
{
	return report_write(r, &((struct json *)r->own)->out);
}

static void
watch_fields(struct buffer *b, const struct ex_watch *watch)
{
	const char access[] = {(char)watch->access, '\0'};

	field_dec(b, "id", ex_watch_number(watch));
	json_field_pid(b, watch);
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
	if (ex_watch_by_uprobe(watch))
		field_flag(b, "uprobe", true);
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

/* Put milliseconds, with three decimals. */
static void
field_frozen(struct buffer *b, double ms)
{
	if (!isfinite(ms) || ms < 0 || ms > 1e12)
		return;
	field(b, "frozen_ms");
	buffer_fixed(b, (uint64_t)(ms * 1000 + 0.5), 3);
}

static void
json_free(struct report *r)
{
	struct json *json = r->own;

	report_done(r);
	if (json == NULL)
		return;
	json_forget_stacks(json);
	for (size_t i = 0; i < JSON_THREADS_MAX; i++)
		buffer_free(&json->thread[i].text);
	for (size_t i = 0; i < JSON_PLACES_MAX; i++)
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
		json->named = calloc(JSON_NAMED_MAX, sizeof(*json->named));
	if (json == NULL || r->summary == NULL ||
	    (r->stacks_once && json->named == NULL)) {
		json_free(r);
		return -ENOMEM;
	}
	b = json_line_begin(r, "start");
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
	wall_field(b, start->wall);
	put_watches(b, start);
	rc = json_line_end(r);
	return rc != 0 ? rc : json_flush(r);
}

static int
json_watch(struct report *r, const struct ex_watch *const *watches,
    unsigned nwatches)
{
	struct buffer *b = json_line_begin(r, "watch");

	r->begin.watches = watches;
	r->begin.nwatches = nwatches;
	watch_fields(b, watches[nwatches - 1]);
	return json_line_end(r);
}

static int
json_event(struct report *r, const struct watch_event *event)
{
	const struct ex_watch *watch = r->begin.watches[event->watch];
	struct buffer *b = json_line_begin(r, "watch");

	field_text(b, "event", watch_event_text(event));
	field_dec(b, "id", ex_watch_number(watch));
	json_field_time(b, "time", r, event->time);
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
		field(b, "gap_us");
		buffer_fixed(b, event->gap, 3);
	}
	return json_line_end(r);
}

static int
json_object(struct report *r, const struct object_event *event)
{
	const struct ex_watch *watch = r->begin.watches[event->watch];
	const int written = r->stacks_once && event->stack != NULL ?
	    json_name_stack(r, event->stack) : 0;
	struct buffer *b;

	if (written != 0)
		return written;
	b = json_line_begin(r, "object");
	field_text(b, "event", object_event_text(event));
	field_dec(b, "watch", ex_watch_number(watch));
	field_dec(b, "object", event->object);
	json_field_time(b, "time", r, event->time);
	field_dec(b, "pid", (uint64_t)event->pid);
	field_dec(b, "tid", (uint64_t)event->tid);
	field_hex(b, "addr", event->addr);
	if (event->size != 0)
		field_dec(b, "size", event->size);
	if (event->stack != NULL)
		json_hit_stack(r, event->stack);
	return json_line_end(r);
}

static int
json_lost(struct report *r, uint64_t count)
{
	struct buffer *b;

	if (r->summary_only)
		return 0;
	b = json_line_begin(r, "lost");
	field_dec(b, "count", count);
	return json_line_end(r);
}

static int
json_thread(struct report *r, bool exited, pid_t tid)
{
	struct buffer *b;

	if (r->summary_only)
		return 0;
	b = json_line_begin(r, "thread");
	field_text(b, "event", exited ? "exit" : "new");
	field_dec(b, "tid", (uint64_t)tid);
	return json_line_end(r);
}

static int
json_warning(struct report *r, const char *text)
{
	struct buffer *b = json_line_begin(r, "warning");

	field_text(b, "text", text);
	return json_line_end(r);
}

static int
json_last(struct report *r, uint64_t count, const char *reason)
{
	struct buffer *b = json_line_begin(r, "last");

	if (count != UINT64_MAX)
		field_dec(b, "count", count);
	field_text(b, "reason", reason);
	return json_line_end(r);
}

static int
json_end(struct report *r, const struct report_end *end)
{
	int rc;

	if (r->own == NULL)
		return 0;
	rc = end != NULL ? json_put_end(r, end) : 0;
	rc = report_ended(r, end, rc, json_flush(r));
	json_free(r);
	return rc;
}

const struct report_ops report_json = {
	.name = "json", .start = json_start, .watch = json_watch,
	.event = json_event, .object = json_object, .hit = json_hit,
	.damage = json_damage,
	.lost = json_lost, .thread = json_thread, .warning = json_warning,
	.last = json_last, .flush = json_flush, .end = json_end,
};
