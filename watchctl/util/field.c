/* field: members of JSON objects. */
#include "util/field.h"

#include "util/visible.h"

void
field(struct buffer *b, const char *name)
{
	if (b->len == 0 || b->bytes[b->len - 1] != '{')
		buffer_put(b, ",", 1);
	buffer_put(b, "\"", 1);
	buffer_puts(b, name);
	buffer_put(b, "\":", 2);
}

void
field_dec(struct buffer *b, const char *name, uint64_t value)
{
	field(b, name);
	buffer_dec(b, value);
}

void
field_hex(struct buffer *b, const char *name, uint64_t value)
{
	field(b, name);
	buffer_put(b, "\"", 1);
	buffer_hex(b, value);
	buffer_put(b, "\"", 1);
}

void
field_text(struct buffer *b, const char *name, const char *text)
{
	field(b, name);
	visible_put_json(b, text);
}

void
field_bool(struct buffer *b, const char *name, bool value)
{
	field(b, name);
	buffer_puts(b, value ? "true" : "false");
}
