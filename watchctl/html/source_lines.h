/*
 * source_lines: the lines of a source file around a given one.  The content of
 * the file is not trusted.
 */
#ifndef SOURCE_LINES_H
#define SOURCE_LINES_H

#include <stdbool.h>

enum { SOURCE_LINES = 5, SOURCE_COLUMNS = 200 };

struct source_lines {
	int first;		/* the first one's number, from 1 */
	unsigned n;
	char text[SOURCE_LINES][SOURCE_COLUMNS + 4];	/* without tabs; longer
							   lines are cut, with
							   "..." */
};

/* Read the line, and two before and after it, from a descriptor.  False: there
   is no such line in the part of the file that is read. */
bool source_lines_read(struct source_lines *, int fd, int line);

#endif
