/* change: the bytes that a hit touched, as text and as numbers. */
#include "report/change.h"

#include <string.h>

#include "util/visible.h"

static uint64_t
number_of(const uint8_t *bytes, unsigned len)
{
	uint64_t number = 0;

	for (unsigned i = len; i > 0; i--)
		number = number << 8 | bytes[i - 1];
	return number;
}

void
change_put_hex_bytes(struct buffer *b, const uint8_t *bytes, unsigned len)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 + 2 * EX_VALUE_MAX] = {'0', 'x'};
	unsigned n = 2;

	if (len <= 8) {
		buffer_hex(b, number_of(bytes, len));
		return;
	}
	/* leading zeros are left out, as in other numbers */
	while (len > 1 && bytes[len - 1] == 0)
		len--;
	for (unsigned i = len; i > 0; i--) {
		const uint8_t byte = bytes[i - 1];

		if (n > 2 || byte >> 4 != 0)
			text[n++] = digits[byte >> 4];
		text[n++] = digits[byte & 15];
	}
	buffer_put(b, text, n);
}

void
change_put_number_bytes(struct buffer *b, const uint8_t *bytes, unsigned len)
{
	if (len <= 8 && number_of(bytes, len) < 1000000)
		buffer_dec(b, number_of(bytes, len));
	else
		change_put_hex_bytes(b, bytes, len);
}

void
change_put_hex(struct buffer *b, const struct ex_hit *hit,
    const struct ex_value *value)
{
	unsigned from, len;

	if (ex_hit_bytes(hit, &from, &len))
		change_put_hex_bytes(b, value->byte + from, len);
}

void
change_put_number(struct buffer *b, const struct ex_hit *hit,
    const struct ex_value *value)
{
	unsigned from, len;

	if (ex_hit_bytes(hit, &from, &len))
		change_put_number_bytes(b, value->byte + from, len);
}

/* Put a value in the form of the program's own type, or as a number. */
static void
put_value(struct buffer *b, const struct ex_hit *hit,
    const struct ex_value *value, const char *text)
{
	if (*text != '\0')
		visible_put(b, text);
	else
		change_put_number(b, hit, value);
}

static bool
is_same(const char *path, const char *name)
{
	return name != NULL && strcmp(path, name) == 0;
}

bool
change_is_part(const struct ex_hit *hit)
{
	const char *path = hit->change.path;

	return path != NULL && !is_same(path, hit->watch->spec) &&
	    !is_same(path, hit->watch->symbol);
}

void
change_put_path(struct buffer *b, const struct ex_hit *hit)
{
	if (!change_is_part(hit))
		return;
	visible_put(b, hit->change.path);
	buffer_puts(b, ": ");
}

void
change_put(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;

	if (c->has_old && !hit->unchanged)
		put_value(b, hit, &hit->old, c->old_text);
	if (strcmp(hit->access, "read") == 0)
		return;
	if (!hit->unchanged)
		buffer_puts(b, c->has_old ? " -> " : "-> ");
	if (c->has_new)
		put_value(b, hit, &hit->new, c->new_text);
	else
		buffer_puts(b, "?");
	if (hit->unchanged)
		buffer_puts(b, " (unchanged)");
	else if (c->has_new && hit->source == EX_VALUE_LATER)
		buffer_puts(b, " (value read later)");
}
