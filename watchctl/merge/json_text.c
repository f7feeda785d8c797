/* json_text: parses untrusted JSON. */
#include "merge/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "util/visible.h"

enum { DEPTH_MAX = 32, NUMBER_MAX = 64 };

struct scan {
	const char *at, *end;
	unsigned depth;
};

/* Characters of ASCII that need no escape in a string. */
static const bool plain[256] = {
	[0x20 ... 0x21] = true, [0x23 ... 0x5b] = true, [0x5d ... 0x7f] = true,
};

static bool scan_value(struct scan *);

static void
scan_space(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' ||
	    *s->at == '\r' || *s->at == '\n'))
		s->at++;
}

static bool
scan_char(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ?
	    c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool
scan_escape(struct scan *s)
{
	const char c = s->at < s->end ? *s->at++ : '\0';

	if (c != 'u')
		return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
	for (unsigned i = 0; i < 4; i++, s->at++)
		if (s->at == s->end || hex_digit(*s->at) < 0)
			return false;
	return true;
}

/* Characters that are no ASCII, if there are any. */
static bool
scan_utf8(struct scan *s)
{
	while (s->at < s->end && (*s->at & 0x80) != 0) {
		const size_t len = visible_utf8(s->at,
		    (size_t)(s->end - s->at));

		if (len == 0)
			return false;
		s->at += len;
	}
	return true;
}

static bool
scan_string(struct scan *s)
{
	if (!scan_char(s, '"'))
		return false;
	for (;;) {
		while (s->at < s->end && plain[(unsigned char)*s->at])
			s->at++;
		if (s->at < s->end && (*s->at & 0x80) != 0) {
			if (!scan_utf8(s))
				return false;
			continue;
		}
		if (scan_char(s, '"'))
			return true;
		if (!scan_char(s, '\\') || !scan_escape(s))
			return false;
	}
}

static bool
scan_digits(struct scan *s)
{
	const char *first = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > first;
}

static bool
scan_number(struct scan *s)
{
	(void)scan_char(s, '-');
	if (!scan_char(s, '0') && !scan_digits(s))
		return false;
	if (scan_char(s, '.') && !scan_digits(s))
		return false;
	if (!scan_char(s, 'e') && !scan_char(s, 'E'))
		return true;
	if (!scan_char(s, '+'))
		(void)scan_char(s, '-');
	return scan_digits(s);
}

static bool
scan_word(struct scan *s, const char *word)
{
	const size_t len = strlen(word);

	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

static bool
scan_members(struct scan *s, json_text_member *member, void *arg)
{
	if (!scan_char(s, '{'))
		return false;
	scan_space(s);
	if (scan_char(s, '}'))
		return true;
	do {
		struct json_text value;
		const char *name;
		size_t len;

		scan_space(s);
		name = s->at + 1;
		if (!scan_string(s))
			return false;
		len = (size_t)(s->at - name) - 1;
		scan_space(s);
		if (!scan_char(s, ':'))
			return false;
		scan_space(s);
		value.at = s->at;
		if (!scan_value(s))
			return false;
		value.len = (size_t)(s->at - value.at);
		if (member != NULL)
			member(arg, name, len, value);
		scan_space(s);
	} while (scan_char(s, ','));
	return scan_char(s, '}');
}

static bool
scan_array(struct scan *s)
{
	(void)scan_char(s, '[');
	scan_space(s);
	if (scan_char(s, ']'))
		return true;
	do {
		scan_space(s);
		if (!scan_value(s))
			return false;
		scan_space(s);
	} while (scan_char(s, ','));
	return scan_char(s, ']');
}

static bool
scan_value(struct scan *s)
{
	bool whole;

	if (s->at == s->end || s->depth == DEPTH_MAX)
		return false;
	switch (*s->at) {
	case '"':
		return scan_string(s);
	case 't':
		return scan_word(s, "true");
	case 'f':
		return scan_word(s, "false");
	case 'n':
		return scan_word(s, "null");
	case '{':
	case '[':
		s->depth++;
		whole = *s->at == '{' ? scan_members(s, NULL, NULL) :
		    scan_array(s);
		s->depth--;
		return whole;
	default:
		return scan_number(s);
	}
}

bool
json_text_object(struct json_text text, json_text_member *member, void *arg)
{
	struct scan s = {text.at, text.at + text.len, 0};

	scan_space(&s);
	if (!scan_members(&s, member, arg))
		return false;
	scan_space(&s);
	return s.at == s.end;
}

bool
json_text_next(struct json_text *array, struct json_text *value)
{
	struct scan s;

	if (array->at == NULL)
		return false;
	s = (struct scan){array->at, array->at + array->len, 0};
	if (!scan_char(&s, '[') && !scan_char(&s, ','))
		return false;
	scan_space(&s);
	value->at = s.at;
	if (!scan_value(&s))
		return false;
	value->len = (size_t)(s.at - value->at);
	scan_space(&s);
	*array = (struct json_text){s.at, (size_t)(s.end - s.at)};
	return true;
}

bool
json_text_uint(struct json_text v, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < v.len; i++)
		if (v.at[i] < '0' || v.at[i] > '9' ||
		    __builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, v.at[i] - '0', number))
			return false;
	return v.len > 0;
}

bool
json_text_seconds(struct json_text v, int64_t *ns)
{
	char text[NUMBER_MAX], *end;
	double seconds;

	if (v.len == 0 || v.len >= sizeof(text) || *v.at == '"')
		return false;
	memcpy(text, v.at, v.len);
	text[v.len] = '\0';
	seconds = strtod(text, &end);
	*ns = 0;
	if (*end != '\0' || !(seconds > -1e9 && seconds < 1e9))
		return false;
	*ns = (int64_t)(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));
	return true;
}

/* The character of an escape; *at is after the backslash. */
static unsigned
take_escape(const char **at)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	unsigned c = 0;

	if (**at != 'u')
		return (unsigned char)to[strchr(from, *(*at)++) - from];
	for (unsigned i = 1; i <= 4; i++)
		c = c << 4 | (unsigned)hex_digit((*at)[i]);
	*at += 5;
	return c;
}

/* Characters above U+FFFF are a pair of escapes. */
static unsigned
take_pair(const char **at, const char *end)
{
	unsigned c = take_escape(at), low;
	const char *next = *at + 1;

	if (c < 0xd800 || c > 0xdfff)
		return c == 0 ? 0xfffd : c;
	if (c > 0xdbff || end - *at < 6 || **at != '\\' || *next != 'u')
		return 0xfffd;
	low = take_escape(&next);
	if (low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	*at = next;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

static size_t
put_utf8(char to[4], unsigned c)
{
	const size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = len - 1; i > 0; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(lead[len] | c);
	return len;
}

bool
json_text_string(struct json_text v, char *to, size_t size)
{
	const char *at = v.at + 1, *end = v.at + v.len - 1;
	char utf8[4];
	size_t n = 0;

	if (v.len < 2 || *v.at != '"')
		return false;
	while (at < end) {
		const char *from = at;
		size_t len = 1;

		if (*at++ == '\\') {
			len = put_utf8(utf8, take_pair(&at, end));
			from = utf8;
		}
		if (n + len >= size)
			return false;
		memcpy(to + n, from, len);
		n += len;
	}
	to[n] = '\0';
	return true;
}

bool
json_text_hex(struct json_text v, uint64_t *number)
{
	const char *at = v.at + 1, *end = v.at + v.len - 1;

	if (v.len < 3 || *v.at != '"')
		return false;
	if (end - at > 2 && at[0] == '0' && at[1] == 'x')
		at += 2;
	*number = 0;
	if (end - at > 16)
		return false;
	for (; at < end; at++) {
		if (hex_digit(*at) < 0)
			return false;
		*number = *number << 4 | (uint64_t)hex_digit(*at);
	}
	return true;
}

struct put {
	struct buffer *b;
	const char *without;
	bool any;
};

static void
put_string(struct buffer *b, struct json_text v)
{
	char *text = malloc(v.len + 1);

	/* a text is never longer than its escaped form */
	if (text == NULL || !json_text_string(v, text, v.len + 1))
		b->failed = true;
	else
		visible_put_json(b, text);
	free(text);
}

static void
put_member(void *arg, const char *name, size_t len, struct json_text value)
{
	struct put *put = arg;

	if (len == strlen(put->without) &&
	    memcmp(name, put->without, len) == 0)
		return;
	if (put->any)
		buffer_put(put->b, ",", 1);
	put->any = true;
	put_string(put->b, (struct json_text){name - 1, len + 2});
	buffer_put(put->b, ":", 1);
	json_text_put(put->b, value, put->without);
}

void
json_text_put(struct buffer *b, struct json_text v, const char *without)
{
	struct put put = {b, without, false};
	struct json_text value;

	switch (*v.at) {
	case '"':
		put_string(b, v);
		return;
	case '{':
		buffer_put(b, "{", 1);
		(void)json_text_object(v, put_member, &put);
		buffer_put(b, "}", 1);
		return;
	case '[':
		buffer_put(b, "[", 1);
		for (; json_text_next(&v, &value); put.any = true) {
			if (put.any)
				buffer_put(b, ",", 1);
			json_text_put(b, value, without);
		}
		buffer_put(b, "]", 1);
		return;
	default:
		buffer_put(b, v.at, v.len);
	}
}
