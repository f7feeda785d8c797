/* change: what a hit made of the bytes that it touched. */
#include "report/change.h"

#include <string.h>

#include "type/type.h"

/* Where the touched bytes are in the watch; false: not among those kept. */
static bool
place_of(const struct ex_hit *hit, unsigned *from, unsigned *len)
{
	const uint64_t at = hit->addr - hit->watch->addr;

	if (hit->addr < hit->watch->addr || at >= EX_VALUE_MAX ||
	    hit->len == 0 || hit->len > EX_VALUE_MAX - at)
		return false;
	*from = (unsigned)at;
	*len = (unsigned)hit->len;
	return true;
}

/* An object's value in words, if all its bytes are known. */
static void
text_of(const struct ex_hit *hit, const struct ex_object *object,
    const struct ex_value *value, char *text, size_t size)
{
	const uint64_t at = hit->addr - hit->watch->addr +
	    (uint64_t)ex_object_offset(object);
	const uint64_t len = ex_object_size(object);

	if (at < EX_VALUE_MAX && len <= EX_VALUE_MAX &&
	    ex_value_known(value, (unsigned)at, (unsigned)len) &&
	    !ex_object_text(hit->process, object, value->byte + at, text,
	    size))
		*text = '\0';
}

void
change_of(const struct ex_hit *hit, struct change *c)
{
	const struct ex_object *object = NULL;
	unsigned from, len;

	c->has_old = c->has_new = false;
	c->type = c->path = NULL;
	c->old_text[0] = c->new_text[0] = '\0';
	if (hit->watch->access == 'x' || hit->len == 0)
		return;
	if (place_of(hit, &from, &len)) {
		c->has_old = ex_value_known(&hit->old, from, len);
		c->has_new = hit->source != EX_VALUE_UNKNOWN &&
		    strcmp(hit->access, "read") != 0 &&
		    ex_value_known(&hit->new, from, len);
	}
	if (hit->process != NULL)
		object = ex_object_at(hit->process, hit->addr, hit->len);
	if (object == NULL)
		return;
	c->type = ex_object_type(object);
	c->path = ex_object_path(object);
	if (c->has_old)
		text_of(hit, object, &hit->old, c->old_text,
		    sizeof(c->old_text));
	if (c->has_new)
		text_of(hit, object, &hit->new, c->new_text,
		    sizeof(c->new_text));
}

void
change_put_hex(struct buffer *b, const struct ex_hit *hit,
    const struct ex_value *value)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 + 2 * EX_VALUE_MAX] = {'0', 'x'};
	unsigned from, len, n = 2;

	if (!place_of(hit, &from, &len))
		return;
	if (len <= 8) {
		buffer_hex(b, ex_value_number(value, from, len));
		return;
	}
	/* leading zeros are left out, as of other numbers */
	while (len > 1 && value->byte[from + len - 1] == 0)
		len--;
	for (unsigned i = len; i > 0; i--) {
		const uint8_t byte = value->byte[from + i - 1];

		if (n > 2 || byte >> 4 != 0)
			text[n++] = digits[byte >> 4];
		text[n++] = digits[byte & 15];
	}
	buffer_put(b, text, n);
}

void
change_put_number(struct buffer *b, const struct ex_hit *hit,
    const struct ex_value *value)
{
	unsigned from, len;

	if (place_of(hit, &from, &len) && len <= 8 &&
	    ex_value_number(value, from, len) < 1000000)
		buffer_dec(b, ex_value_number(value, from, len));
	else
		change_put_hex(b, hit, value);
}
