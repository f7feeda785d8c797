/* line: a victim waits until the test says a line on its stdin. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stdio.h>

/* Result: whether there was one; false at the end of the file. */
static inline bool
await_line(void)
{
	char line[64];

	return fgets(line, sizeof(line), stdin) != NULL;
}

#endif
