/* json_line: lines, and the fields that many of them have. */
#include "json/json.h"

void
json_field_time(struct buffer *b, const char *name, const struct report *r,
    uint64_t time)
{
	const uint64_t begin = r->begin.time;

	if (time >= begin) {
		field_seconds(b, name, time - begin);
		return;
	}
	field(b, name);
	buffer_put(b, "-", 1);
	buffer_fixed(b, begin - time, 9);
}

struct buffer *
json_line_begin(struct report *r, const char *type)
{
	struct json *json = r->own;

	json->start = json->out.len;
	buffer_puts(&json->out, "{\"type\":\"");
	buffer_puts(&json->out, type);
	buffer_put(&json->out, "\"", 1);
	return &json->out;
}

/* End the current line, which may be that of a hit, and write the buffer if it
   is full enough.  0 or -errno. */
int
json_line_end_of(struct report *r, bool hit)
{
	struct json *json = r->own;
	int rc;

	buffer_put(&json->out, "}\n", 2);
	rc = buffer_commit(&json->out, json->start);
	if (rc == 0 && hit)
		report_hit_ends(r, &json->out);
	return rc != 0 ? rc : report_write_full(r, &json->out);
}

int
json_line_end(struct report *r)
{
	return json_line_end_of(r, false);
}

void
json_field_pid(struct buffer *b, const struct ex_watch *watch)
{
	if (watch->pid > 0)
		field_dec(b, "pid", (uint64_t)watch->pid);
}
