/* complain: what watchctl says on stderr. */
#include "complain.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "visible.h"

/* Without memory. */
static void
plainly(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	(void)fprintf(stderr, "watchctl: %s\n", text);
}

int
complain(const char *format, ...)
{
	struct buffer line = {0};
	char text[PATH_MAX + 1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	buffer_puts(&line, "watchctl: ");
	visible_put(&line, text);
	buffer_puts(&line, "\n");
	if (line.failed)
		plainly(text);
	else
		(void)buffer_write(&line, stderr);
	buffer_free(&line);
	return -EINVAL;
}
