/* wall_clock: times of day. */
#include "util/wall_clock.h"

#include <time.h>

#include "util/field.h"

/* Put a time in a format of strftime(3). */
static void
put(struct buffer *b, uint64_t ns, const char *format)
{
	const time_t seconds = (time_t)(ns / 1000000000);
	char text[40];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) != NULL &&
	    strftime(text, sizeof(text), format, &tm) > 0)
		buffer_puts(b, text);
}

void
wall_clock_put(struct buffer *b, uint64_t ns)
{
	put(b, ns, "%Y-%m-%d %H:%M:%S UTC");
}

void
wall_field(struct buffer *b, uint64_t ns)
{
	if (ns == 0)
		return;
	field(b, "wall");
	put(b, ns, "\"%Y-%m-%dT%H:%M:%S.");
	buffer_digits(b, ns % 1000000000 / 1000, 6);
	buffer_puts(b, "Z\"");
}

int64_t
wall_clock_parse(const char *text)
{
	struct tm tm = {0};
	unsigned micro;
	int end = 0;
	int64_t seconds;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6uZ%n", &tm.tm_year,
	    &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
	    &micro, &end) != 7 || text[end] != '\0')
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	seconds = timegm(&tm);
	return seconds <= 0 || seconds > INT32_MAX * 2LL ? 0 :
	    seconds * 1000000000 + micro * 1000LL;
}
