/* change: the bytes that a hit touched, as numbers. */
#include "report/change.h"

void
change_put_hex(struct buffer *b, const struct ex_hit *hit,
    const struct ex_value *value)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 + 2 * EX_VALUE_MAX] = {'0', 'x'};
	unsigned from, len, n = 2;

	if (!ex_hit_bytes(hit, &from, &len))
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

	if (ex_hit_bytes(hit, &from, &len) && len <= 8 &&
	    ex_value_number(value, from, len) < 1000000)
		buffer_dec(b, ex_value_number(value, from, len));
	else
		change_put_hex(b, hit, value);
}
