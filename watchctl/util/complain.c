/* complain: the messages of watchctl on stderr. */
#include "util/complain.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "os/cause.h"
#include "util/visible.h"

static bool failed;		/* a line found no room */
static void (*say)(const char *text);	/* NULL: lines are written */

/* Print a line without allocating memory; control characters become question
   marks. */
static void
plainly(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	(void)fprintf(stderr, "watchctl: %s\n", text);
}

void
complain_to(void (*fn)(const char *text))
{
	say = fn;
}

static void
write_line(char *text)
{
	struct buffer line = {0};
	int err = 0;

	buffer_puts(&line, "watchctl: ");
	visible_put(&line, text);
	buffer_puts(&line, "\n");
	if (line.failed)
		plainly(text);
	else
		err = buffer_write(&line, stderr);
	failed |= err == -ENOSPC || err == -EFBIG || err == -EDQUOT;
	buffer_free(&line);
}

int
complain(const char *format, ...)
{
	char text[PATH_MAX + 1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (say != NULL)
		say(text);
	else
		write_line(text);
	return -EINVAL;
}

int
complain_errno(int err, const char *format, ...)
{
	struct wp_cause cause;
	char what[sizeof(cause.text) / 2];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	(void)wp_cause_errno(&cause, what, err);
	return complain("%s", cause.text);
}

bool
complain_failed(void)
{
	return failed;
}
