/* html_escape: escapes the characters that begin or end markup. */
#include "html/html_escape.h"

#include "util/visible.h"

static const char *
reference(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void
html_escape(struct buffer *b, size_t start)
{
	size_t more = 0, from = b->len, to;

	for (size_t i = start; i < b->len; i++)
		if (reference(b->bytes[i]) != NULL)
			more += strlen(reference(b->bytes[i])) - 1;
	if (more == 0 || !buffer_grow(b, more))
		return;
	to = b->len += more;
	while (from > start) {
		const char c = b->bytes[--from], *text = reference(c);

		if (text == NULL) {
			b->bytes[--to] = c;
			continue;
		}
		to -= strlen(text);
		memcpy(b->bytes + to, text, strlen(text));
	}
}

void
html_put(struct buffer *b, const char *text)
{
	const size_t start = b->len;

	visible_put(b, text);
	html_escape(b, start);
}

void
html_put_max(struct buffer *b, const char *text, size_t max)
{
	const size_t start = b->len;

	visible_put_max(b, text, max);
	html_escape(b, start);
}
