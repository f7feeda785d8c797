/* progress_line: a line on a terminal that names the file being read. */
#include "broker/progress_line.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/buffer.h"
#include "util/visible.h"

#define WORDS "watchctl: reading "

enum { COLUMNS = 79 };		/* columns of the narrowest terminal */

static size_t shown;		/* columns that are shown */

void
progress_line_show(const char *path)
{
	const size_t room = COLUMNS - strlen(WORDS);
	struct buffer line = {0}, text = {0};

	if (shown > 0 || isatty(STDERR_FILENO) != 1)
		return;
	visible_put(&text, path);
	if (!text.failed) {
		const char *end = buffer_text(&text);
		const size_t len = strlen(end);

		/* the end of a path is more useful than its start */
		buffer_puts(&line, WORDS);
		if (len > room) {
			end += len - room + strlen("...");
			buffer_puts(&line, "...");
		}
		buffer_puts(&line, end);
		shown = line.failed ? 0 : line.len;
	}
	if (shown > 0)
		(void)buffer_write(&line, stderr);
	buffer_free(&text);
	buffer_free(&line);
}

void
progress_line_clear(void)
{
	if (shown > 0)
		(void)fprintf(stderr, "\r%*s\r", (int)shown, "");
	shown = 0;
}
