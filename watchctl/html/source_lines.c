/* source_lines: reads a file in pieces, up to a limit. */
#include "html/source_lines.h"

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { FILE_MAX = 16 << 20, PIECE = 1 << 14, TAB = 8 };

/* What is being read. */
struct reading {
	struct source_lines *to;
	int line;		/* the one that the next character is of */
	size_t column;
};

static void
take_column(struct reading *r, char c)
{
	const int at = r->line - r->to->first;
	char *text;

	if (at < 0 || at >= SOURCE_LINES || r->column > SOURCE_COLUMNS)
		return;
	text = r->to->text[at];
	r->to->n = (unsigned)at + 1;
	if (r->column == SOURCE_COLUMNS)
		memcpy(text + SOURCE_COLUMNS, "...", 4);
	else {
		text[r->column] = c;
		text[r->column + 1] = '\0';
	}
	r->column++;
}

static void
take(struct reading *r, char c)
{
	if (c == '\n') {
		const int at = r->line - r->to->first;

		if (at >= 0 && at < SOURCE_LINES)
			r->to->n = (unsigned)at + 1;
		r->line++;
		r->column = 0;
	} else if (c == '\t') {
		do
			take_column(r, ' ');
		while (r->column % TAB != 0 && r->column < SOURCE_COLUMNS);
	} else if (c != '\r')
		take_column(r, c == '\0' ? '\1' : c);
}

bool
source_lines_read(struct source_lines *to, int fd, int line)
{
	struct reading r = {.to = to, .line = 1};
	char piece[PIECE];
	ssize_t n = 0;

	*to = (struct source_lines){
		.first = line > SOURCE_LINES / 2 ? line - SOURCE_LINES / 2 : 1,
	};
	if (line <= 0 || line > FILE_MAX)	/* each takes a byte */
		return false;
	for (off_t at = 0; at < FILE_MAX && r.line < to->first + SOURCE_LINES &&
	    (n = pread(fd, piece, sizeof(piece), at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++)
			take(&r, piece[i]);
	return to->n > 0 && line < to->first + (int)to->n;
}
