/* merge_line: parses each line. */
#include "merge/merge_line.h"

#include <limits.h>
#include <string.h>

#include "base/table.h"
#include "util/visible.h"
#include "util/wall_clock.h"

/* The members of lines, sorted by length. */
#define MEMBERS								\
	M(id) M(new) M(seq) M(tid) M(host) M(last) M(lost)	\
	M(rank) M(spec) M(time) M(type) M(wall) M(count) M(event)	\
	M(first) M(stack) M(watch) M(access) M(frames) M(others)	\
	M(values) M(threads) M(watches) M(new_text) M(reported)	\
	M(truncated) M(incomplete) M(value_source)			\
	M(min) M(max) M(min_text) M(max_text)				\
	M(function) M(module) M(file) M(line) M(inlined)

struct line_members {
#define M(name) struct json_text name;
	MEMBERS
#undef M
};

enum { LONGEST = 12 };

/* The members, with the lengths of their names. */
static const struct json_member {
	const char *name;
	size_t len, at;
} members[] = {
#define M(n) {#n, sizeof(#n) - 1, offsetof(struct line_members, n)},
	MEMBERS
#undef M
};

static struct {
	const struct json_member *member[16];	/* NULL-terminated */
} by_length[LONGEST + 1];

static void
sort_members(void)
{
	if (by_length[2].member[0] != NULL)
		return;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const struct json_member **at =
		    by_length[members[i].len].member;

		while (*at != NULL)
			at++;
		*at = &members[i];
	}
}

static void
note_member(void *arg, const char *name, size_t len, struct json_text value)
{
	if (len > LONGEST)
		return;
	for (const struct json_member **m = by_length[len].member; *m != NULL;
	    m++)
		if (memcmp((*m)->name, name, len) == 0) {
			memcpy((char *)arg + (*m)->at, &value, sizeof(value));
			return;
		}
}

static bool
is_text(struct json_text v, const char *text)
{
	const size_t len = strlen(text);

	return v.len == len + 2 && *v.at == '"' &&
	    memcmp(v.at + 1, text, len) == 0;
}

static uint64_t
hash_of(uint64_t hash, struct json_text text)
{
	return ex_hash_bytes(hash, text.at, text.len);
}

/* --- the run --- */

static int64_t
wall_clock_of(struct json_text v)
{
	char text[40];

	return v.at == NULL || !json_text_string(v, text, sizeof(text)) ? 0 :
	    wall_clock_parse(text);
}

/* Take a watch of the run.  A watch that is not part of it has no id or no
   SPEC. */
static const char *
take_watch(struct merge_place *p, const struct line_members *m)
{
	char spec[MERGED_TEXT], access[8] = "";
	const char *why = NULL;
	uint64_t id;

	if (!json_text_uint(m->id, &id) || m->spec.at == NULL)
		return NULL;
	if (!json_text_string(m->spec, spec, sizeof(spec)))
		return "its SPEC is too long";
	if (m->access.at != NULL)
		(void)json_text_string(m->access, access, sizeof(access));
	return merged_run_watch(p->merged, p->run, id, spec, access[0], &why) ?
	    NULL : why;
}

static const char *
start_run(struct merge_place *p, const struct line_members *m)
{
	char host[MERGED_HOST] = "";
	const char *why = NULL;
	struct json_text watches = m->watches, watch;
	unsigned rank = 0;
	uint64_t number;
	bool ranked;

	if (m->host.at != NULL &&
	    !json_text_string(m->host, host, sizeof(host)))
		return "its host is no name";
	ranked = json_text_uint(m->rank, &number) && number <= UINT_MAX;
	if (ranked)
		rank = (unsigned)number;
	if (!merged_run_place(p->merged, p->run, host, ranked ? &rank : NULL,
	    wall_clock_of(m->wall), &why))
		return why;
	why = NULL;
	while (why == NULL && json_text_next(&watches, &watch)) {
		struct line_members of = {0};

		if (json_text_object(watch, note_member, &of))
			why = take_watch(p, &of);
	}
	return why;
}

static const char *
take_start(struct merge_place *p, const struct line_members *m,
    struct json_text line)
{
	const uint64_t hash[2] = {hash_of(0, line), hash_of(1, line)};
	const char *why = NULL;
	bool is_new;

	p->run = merged_run(p->merged, hash, &is_new, &why);
	if (p->run == NULL)
		return why;
	if (!is_new) {
		p->repeated++;
		return NULL;
	}
	if ((why = start_run(p, m)) != NULL)
		p->run = NULL;
	return why;
}

/* If there is no start line, the whole file is one run. */
static const char *
need_run(struct merge_place *p)
{
	const uint64_t hash[2] = {p->file, 0};
	const char *why = NULL;
	bool is_new;

	if (p->run != NULL)
		return NULL;
	p->run = merged_run(p->merged, hash, &is_new, &why);
	if (p->run != NULL && is_new &&
	    !merged_run_place(p->merged, p->run, "", NULL, 0, &why))
		p->run = NULL;
	return p->run == NULL ? why : NULL;
}

/* --- backtraces --- */

/* Put "func  file.c:10", or what is known of the frame. */
static void
put_frame(struct buffer *b, unsigned n, struct json_text frame)
{
	char text[MERGED_TEXT];
	struct line_members m = {0};
	uint64_t line;

	(void)json_text_object(frame, note_member, &m);
	buffer_printf(b, "%6u  ", n);
	if (m.function.at != NULL &&
	    json_text_string(m.function, text, sizeof(text)))
		visible_put_max(b, text, 80);
	else
		buffer_puts(b, "?");
	if (m.file.at != NULL && json_text_string(m.file, text, sizeof(text))) {
		buffer_puts(b, "  ");
		visible_put_max(b, strrchr(text, '/') == NULL ? text :
		    strrchr(text, '/') + 1, 80);
		if (json_text_uint(m.line, &line))
			buffer_printf(b, ":%llu", (unsigned long long)line);
	} else if (m.module.at != NULL &&
	    json_text_string(m.module, text, sizeof(text))) {
		buffer_puts(b, "  ");
		visible_put_max(b, text, 80);
	}
	if (m.inlined.len == 4)		/* true */
		buffer_puts(b, "  (inlined)");
	buffer_puts(b, "\n");
}

static char *
finish(struct buffer *b)
{
	buffer_put(b, "", 1);
	if (buffer_commit(b, 0) == 0)
		return b->bytes;
	buffer_free(b);
	return NULL;
}

/* Addresses are valid in one process only, so they are left out. */
static void
take_frames(struct merge_place *p, const struct line_members *m, uint64_t id)
{
	struct json_text frames = m->frames, frame;
	struct buffer json = {0}, text = {0};
	const struct {
		const char *name;
		struct json_text value;
	} also[] = {
		{"incomplete", m->incomplete}, {"truncated", m->truncated},
	};

	if (frames.at == NULL || merged_has_stack(p->merged, id))
		return;
	buffer_puts(&json, "\"frames\":");
	json_text_put(&json, frames, "pc");
	for (size_t i = 0; i < sizeof(also) / sizeof(also[0]); i++) {
		if (also[i].value.at == NULL)
			continue;
		buffer_printf(&json, ",\"%s\":", also[i].name);
		json_text_put(&json, also[i].value, "");
	}
	for (unsigned n = 0; json_text_next(&frames, &frame); n++)
		put_frame(&text, n, frame);
	merged_add_stack(p->merged, id, finish(&json), finish(&text));
}

/* --- hits --- */

/* An integer as a program prints it. */
static bool
number_of(struct json_text v, struct merged_number *number)
{
	const bool negative = v.len > 2 && v.at[1] == '-';
	const struct json_text digits = {
		v.at + 1 + negative, v.len - 2 - negative,
	};

	if (v.len < 3 || *v.at != '"' || !json_text_uint(digits, &number->bits))
		return false;
	number->negative = negative && number->bits != 0;
	if (number->negative)
		number->bits = -number->bits;
	return true;
}

/* If the bytes have no text, they are compared as an unsigned number. */
static struct merged_value
value_of(struct json_text hex, struct json_text text)
{
	struct merged_value value = {0};

	value.known = hex.at != NULL && json_text_hex(hex, &value.bits);
	if (text.at != NULL)
		value.is_number = number_of(text, &value.number);
	else {
		value.is_number = value.known;
		value.number.bits = value.bits;
	}
	return value;
}

static void
add_hit_value(struct merged_row *row, const struct line_members *m,
    int64_t time)
{
	struct merged_value value = value_of(m->new, m->new_text);

	/* a value read later may be another access's */
	if (m->value_source.at == NULL || is_text(m->value_source, "later"))
		value.known = false;
	merged_values_add(row, &(struct merged_values){
		.first = value, .last = value, .min = value, .max = value,
		.first_at = (uint64_t)time + 1, .last_at = (uint64_t)time + 1,
	});
}

static void
set_access(struct merged_row *row, struct json_text access)
{
	if (*row->access == '\0' && access.at != NULL)
		(void)json_text_string(access, row->access,
		    sizeof(row->access));
}

static const char *
take_hit(struct merge_place *p, const struct line_members *m)
{
	uint64_t seq, watch, stack = 0, tid;
	struct merged_row *row;
	const char *why;
	int64_t time = 0;

	if (!json_text_uint(m->seq, &seq) || !json_text_uint(m->watch, &watch))
		return "it is a hit without its number or its watch";
	if ((why = need_run(p)) != NULL)
		return why;
	if (m->stack.at != NULL && !json_text_hex(m->stack, &stack))
		return "its backtrace has no name";
	row = merged_row(p->merged, p->run, watch, stack, false, &why);
	if (row == NULL)
		return why;
	if (!merged_new_hit(p->merged, p->run, seq, &why)) {
		p->repeated += why == NULL;
		return why;
	}
	row->count++;
	set_access(row, m->access);
	if (m->time.at != NULL && json_text_seconds(m->time, &time))
		merged_row_time(p->run, row, time);
	if (json_text_uint(m->tid, &tid) && tid <= INT_MAX)
		merged_row_thread(p->merged, row, (int)tid);
	add_hit_value(row, m, time);
	take_frames(p, m, stack);
	return NULL;
}

static const char *
take_stack(struct merge_place *p, const struct line_members *m)
{
	uint64_t id;

	if (m->id.at == NULL || !json_text_hex(m->id, &id))
		return "its backtrace has no name";
	take_frames(p, m, id);
	return NULL;
}

static void
add_summary_values(struct merged_row *row, const struct line_members *m,
    int64_t first, int64_t last)
{
	const struct json_text none = {0};
	struct line_members of = {0};

	if (m->values.at == NULL ||
	    !json_text_object(m->values, note_member, &of)) {
		row->unranged = true;
		return;
	}
	merged_values_add(row, &(struct merged_values){
		.first = value_of(of.first, none),
		.last = value_of(of.last, none),
		.min = value_of(of.min, of.min_text),
		.max = value_of(of.max, of.max_text),
		.first_at = (uint64_t)first + 1, .last_at = (uint64_t)last + 1,
	});
}

static void
add_threads(struct merge_place *p, struct merged_row *row,
    struct json_text threads)
{
	struct json_text thread;
	uint64_t tid;

	while (json_text_next(&threads, &thread))
		if (json_text_uint(thread, &tid) && tid <= INT_MAX)
			merged_row_thread(p->merged, row, (int)tid);
}

/* Hits that have lines of their own are not counted from the summary. */
static const char *
take_summary(struct merge_place *p, const struct line_members *m,
    struct json_text line)
{
	const bool others = m->others.len == 4;		/* true */
	uint64_t watch, count, stack = 0;
	struct merged_row *row;
	const char *why;
	int64_t first = 0, last = 0;

	if (!json_text_uint(m->watch, &watch) ||
	    !json_text_uint(m->count, &count) ||
	    count > UINT64_MAX / 2 ||
	    (m->stack.at != NULL && !json_text_hex(m->stack, &stack)))
		return "it is a summary without its watch or its count";
	if ((why = need_run(p)) != NULL)
		return why;
	if (!merged_new_line(p->merged, p->run, hash_of(0, line), &why)) {
		p->repeated += why == NULL;
		return why;
	}
	row = merged_row(p->merged, p->run, watch, stack, others, &why);
	if (row == NULL)
		return why;
	if (row->count > 0 || __builtin_add_overflow(row->summed, count,
	    &row->summed))
		return NULL;
	set_access(row, m->access);
	if (m->first.at != NULL && json_text_seconds(m->first, &first))
		merged_row_time(p->run, row, first);
	if (m->last.at != NULL && json_text_seconds(m->last, &last))
		merged_row_time(p->run, row, last);
	add_threads(p, row, m->threads);
	add_summary_values(row, m, first, last);
	return NULL;
}

static const char *
take_end(struct merge_place *p, const struct line_members *m)
{
	struct merged_end end = {.is = true};
	const char *why = need_run(p);

	if (why != NULL)
		return why;
	(void)json_text_uint(m->reported, &end.reported);
	(void)json_text_uint(m->lost, &end.lost);
	merged_run_end(p->run, &end);
	return NULL;
}

const char *
merge_line(struct merge_place *p, struct json_text line)
{
	struct line_members m = {0};

	sort_members();
	if (!json_text_object(line, note_member, &m)) {
		/* the following lines do not belong to the previous run */
		if (is_text(m.type, "start"))
			p->run = NULL;
		return "it is cut, or no JSON";
	}
	if (m.type.at == NULL)
		return "it has no type: it is not one of watchctl's lines";
	if (is_text(m.type, "hit"))
		return take_hit(p, &m);
	if (is_text(m.type, "start"))
		return take_start(p, &m, line);
	if (is_text(m.type, "stack"))
		return take_stack(p, &m);
	if (is_text(m.type, "summary"))
		return take_summary(p, &m, line);
	if (is_text(m.type, "end"))
		return take_end(p, &m);
	if (is_text(m.type, "watch") && m.event.at == NULL) {
		const char *why = need_run(p);

		return why != NULL ? why : take_watch(p, &m);
	}
	return NULL;
}
