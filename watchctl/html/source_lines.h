/*
 * source_lines: the lines of a source file around a given one.  The content of
 * the file is not trusted.
 */
#ifndef SOURCE_LINES_H
#define SOURCE_LINES_H

#include <stdbool.h>

enum { SOURCE_LINES = 5, SOURCE_COLUMNS = 200 };

struct source_lines {
	int first;		/* the number of the first, from 1 */
	unsigned n;		/* how many there are */
	char text[SOURCE_LINES][SOURCE_COLUMNS + 4];	/* without tabs; of a
				   longer one the beginning, and "..." */
};

/* Read them from a descriptor: that line, and two before and behind it.  False:
   there is no such line, as far as the file is read. */
bool source_lines_read(struct source_lines *, int fd, int line);

#endif
