/*
 * report_place: where an access was made, taken from its report's text.  Frames
 * look like " 0 reload config.c:31 (inlined)"; see watchctl(1).
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "watchpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* A part of a text. */
struct piece {
	const char *at;
	size_t len;
};

static void
copy(char *to, size_t size, struct piece from)
{
	size_t len = from.len < size ? from.len : size - 1;

	memcpy(to, from.at, len);
	to[len] = '\0';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A line "     0  reload   config.c:31": the function's name, and the rest. */
static bool
read_frame(struct piece line, struct piece *name, struct piece *rest)
{
	const char *at = line.at, *end = line.at + line.len;
	const char *gap;

	while (at < end && *at == ' ')
		at++;
	if (at == line.at || at == end || !is_digit(*at))
		return false;
	while (at < end && is_digit(*at))
		at++;
	if (at == end || *at != ' ')
		return false;
	while (at < end && *at == ' ')
		at++;
	for (gap = at; gap < end && (gap[0] != ' ' || gap[1] != ' '); gap++)
		;
	*name = (struct piece){at, (size_t)(gap - at)};
	while (gap < end && *gap == ' ')
		gap++;
	*rest = (struct piece){gap, (size_t)(end - gap)};
	return name->len > 0;
}

/* Read "config.c:31 (inlined)".  Returns the line number, or 0 if there is
   none. */
static int
read_source(struct piece rest, struct piece *file)
{
	const char *end = rest.at + rest.len, *at;
	int line = 0;

	if (rest.len == 0 || *rest.at == '(')
		return 0;
	for (at = rest.at; at < end && (*at != ' ' || at[1] != '('); at++)
		;
	end = at;
	while (at > rest.at && is_digit(at[-1]))
		at--;
	if (at == end || end - at > 9 || at - 1 <= rest.at || at[-1] != ':')
		return 0;
	for (const char *digit = at; digit < end; digit++)
		line = line * 10 + (*digit - '0');
	if (line > 0)
		*file = (struct piece){rest.at, (size_t)(at - 1 - rest.at)};
	return line;
}

/* Higher is better.  The program's own code is told from that of libraries by
   its source file, which can be read here. */
static unsigned
rank(const struct wp_place *place)
{
	if (place->line == 0)
		return place->function[0] != '\0';
	return access(place->file, R_OK) == 0 ? 3 : 2;
}

void
wp_report_place(const char *text, struct wp_place *place)
{
	struct piece name, rest;
	unsigned best = 0;

	memset(place, 0, sizeof(*place));
	while (*text != '\0' && best < 3) {
		size_t len = strcspn(text, "\n");
		struct wp_place next;
		struct piece file = {text, 0};

		if (read_frame((struct piece){text, len}, &name, &rest)) {
			next.line = read_source(rest, &file);
			copy(next.file, sizeof(next.file), file);
			copy(next.function, sizeof(next.function), name);
			if (rank(&next) > best) {
				best = rank(&next);
				*place = next;
			}
		}
		text += len + (text[len] == '\n');
	}
}
