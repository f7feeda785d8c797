/* visible: scans UTF-8, and writes each character in a safe form. */
#include "util/visible.h"

#include <stdint.h>
#include <string.h>

/* One character of a text. */
struct character {
	uint32_t code;		/* code point; a byte when not valid */
	unsigned len;		/* bytes, 1 to 4 */
	bool valid;		/* UTF-8 as RFC 3629 has it */
};

/* The character at text, which does not begin with NUL. */
static struct character
scan(const char *text)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *s = (const unsigned char *)text;
	struct character c = {*s, 1, *s < 0x80};
	unsigned len = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;
	uint32_t code = *s & (0x7fU >> len);

	if (*s < 0xc2 || *s > 0xf4)
		return c;
	for (unsigned i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return c;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < smallest[len] || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff))
		return c;
	return (struct character){code, len, true};
}

size_t
visible_utf8(const char *text, size_t len)
{
	char copy[5] = "";
	struct character c;

	memcpy(copy, text, len < 4 ? len : 4);
	c = scan(copy);
	return c.valid ? c.len : 0;
}

/* Whether a terminal obeys or hides the character rather than showing it. */
static bool
hidden(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) ||
	    code == 0x61c ||
	    (code >= 0x200b && code <= 0x200f) ||
	    (code >= 0x2028 && code <= 0x202e) ||
	    (code >= 0x2060 && code <= 0x2069) || code == 0xfeff ||
	    (code >= 0xfff9 && code <= 0xfffb) ||
	    (code >= 0xe0000 && code <= 0xe007f);
}

/* Bytes that are printed as themselves in every form of output. */
static const bool plain[256] = {
	[' ' ... '"' - 1] = true, ['"' + 1 ... '\\' - 1] = true,
	['\\' + 1 ... '~'] = true,
};

/* The number of plain bytes at text. */
static size_t
run(const char *text)
{
	size_t n = 0;

	while (plain[(unsigned char)text[n]])
		n++;
	return n;
}

static void
put_escape(struct buffer *b, struct character c)
{
	if (c.valid && c.code == '\n')
		buffer_puts(b, "\\n");
	else if (c.valid && c.code == '\t')
		buffer_puts(b, "\\t");
	else if (c.valid && c.code == '\r')
		buffer_puts(b, "\\r");
	else if (!c.valid || c.code < 0x80)
		buffer_printf(b, "\\x%02x", (unsigned)c.code);
	else
		buffer_printf(b, "\\u%04x", (unsigned)c.code);
}

void
visible_put_max(struct buffer *b, const char *text, size_t max)
{
	for (; *text != '\0' && max > 0; max--) {
		struct character c = scan(text);

		if (!c.valid || hidden(c.code))
			put_escape(b, c);
		else
			buffer_put(b, text, c.len);
		text += c.len;
	}
	if (*text != '\0')
		buffer_puts(b, "...");
}

void
visible_put(struct buffer *b, const char *text)
{
	visible_put_max(b, text, SIZE_MAX);
}

static void
put_json_character(struct buffer *b, const char *text, struct character c)
{
	if (!c.valid)
		buffer_puts(b, "\xef\xbf\xbd");
	else if (c.code == '"' || c.code == '\\')
		buffer_printf(b, "\\%c", (int)c.code);
	else if (!hidden(c.code))
		buffer_put(b, text, c.len);
	else if (c.code < 0x10000)
		buffer_printf(b, "\\u%04x", (unsigned)c.code);
	else
		buffer_printf(b, "\\u%04x\\u%04x",
		    0xd800 + (unsigned)((c.code - 0x10000) >> 10),
		    0xdc00 + (unsigned)(c.code & 0x3ff));
}

void
visible_put_json(struct buffer *b, const char *text)
{
	buffer_put(b, "\"", 1);
	while (*text != '\0') {
		size_t n = run(text);

		buffer_put(b, text, n);
		text += n;
		if (*text != '\0') {
			struct character c = scan(text);

			put_json_character(b, text, c);
			text += c.len;
		}
	}
	buffer_put(b, "\"", 1);
}

size_t
visible_columns(const char *text, size_t len)
{
	size_t columns = 0;

	for (size_t i = 0; i < len; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

/* The length of the colour sequence at the beginning of text; 0: there is
   none. */
static size_t
colour_length(const char *text, size_t len)
{
	size_t n = 2;

	if (len < 3 || text[0] != 033 || text[1] != '[')
		return 0;
	while (n < len && ((text[n] >= '0' && text[n] <= '9') ||
	    text[n] == ';'))
		n++;
	return n < len && text[n] == 'm' ? n + 1 : 0;
}

/* Move a line towards the beginning of the buffer, and shorten it to `keep'
   characters.  Returns its new length. */
static size_t
move_line(char *to, const char *line, size_t len, size_t keep)
{
	size_t n = 0, shown = 0, colour;

	for (size_t i = 0; i < len; i++) {
		colour = colour_length(line + i, len - i);
		if (colour > 0) {
			memmove(to + n, line + i, colour);
			n += colour;
			i += colour - 1;
			continue;
		}
		shown += visible_columns(line + i, 1);
		if (shown <= keep)
			to[n++] = line[i];
	}
	return n;
}

static size_t
line_columns(const char *line, size_t len)
{
	size_t columns = 0, colour;

	for (size_t i = 0; i < len; i++) {
		colour = colour_length(line + i, len - i);
		if (colour > 0)
			i += colour - 1;
		else
			columns += visible_columns(line + i, 1);
	}
	return columns;
}

void
visible_cut(struct buffer *b, size_t start, unsigned columns)
{
	static const char more[] = "...";
	const size_t width = sizeof(more) - 1;
	size_t to = start, len;

	if (b->failed || columns <= width)
		return;
	for (size_t at = start; at < b->len; at += len + 1) {
		const char *line = b->bytes + at;
		const char *end = memchr(line, '\n', b->len - at);

		len = end == NULL ? b->len - at : (size_t)(end - line);
		if (line_columns(line, len) > columns) {
			to += move_line(b->bytes + to, line, len,
			    columns - width);
			memcpy(b->bytes + to, more, width);
			to += width;
		} else {
			memmove(b->bytes + to, line, len);
			to += len;
		}
		if (end != NULL)
			b->bytes[to++] = '\n';
	}
	b->len = to;
}

enum { BLOCK = 64 };

/* Whether a terminal would obey the character: all controls, except line ends
   and tabs. */
static bool
is_control(unsigned char c)
{
	return ((c < ' ') & (c != '\n') & (c != '\t')) | (c == 0177);
}

/* Whether a block contains a control character.  Hardly any does, and this loop
   without a branch takes many bytes at a time. */
static bool
has_control(const char block[BLOCK])
{
	unsigned char found = 0;

	for (size_t i = 0; i < BLOCK; i++)
		found |= is_control((unsigned char)block[i]);
	return found != 0;
}

bool
visible_is_harmless(const char *text, size_t len, bool colour)
{
	size_t looked = 0;	/* blocks have been looked at up to here */
	size_t skip;

	for (size_t i = 0; i < len; i++) {
		if (i >= looked && len - i >= BLOCK) {
			looked = i + BLOCK;
			if (!has_control(text + i)) {
				i = looked - 1;
				continue;
			}
		}
		if (!is_control((unsigned char)text[i]))
			continue;
		skip = colour ? colour_length(text + i, len - i) : 0;
		if (skip == 0)
			return false;
		i += skip - 1;
	}
	return true;
}
