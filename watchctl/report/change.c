/* change: the bytes that a hit touched, as numbers. */
#include "report/change.h"

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
	/* leading zeros are left out, as of other numbers */
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
