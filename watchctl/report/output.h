/*
 * output: where a report or a recording goes.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "report/side_files.h"
#include "option/options.h"

struct output {
	char *path;		/* what -O names, malloc'd; NULL: none */
	FILE *stream;		/* a report's; NULL: there is none */
	int file;		/* -o perf: the recording's; else -1 */
	bool own;		/* the stream or file is ours to close */
	bool made;		/* the file is ours, and empty */
	struct side_files sides;
};

/* Open what -O names, or take what reports go to without it; and the files
   beside it.  A file that is there keeps its contents until output_begin; one
   that is not is made now, and removed by output_close if nothing began.  0, or
   -errno after a line on stderr. */
int output_open(struct output *, const struct options *, FILE *otherwise);

/* A name with %p is opened when that is known: until then there is no stream.
   Opens it; of other names it is done.  0, or as above. */
int output_open_of(struct output *, const struct options *, pid_t);

/* The report or recording begins: forget what the file held.  0 or -errno. */
int output_begin(struct output *);

/* What a text is read on.  All zero: no terminal. */
struct output_screen {
	bool colour;		/* a terminal, TERM set and not dumb, NO_COLOR
				   unset or empty */
	unsigned columns;	/* 0: not known */
};

struct output_screen output_screen(FILE *);

/* All zero, or open. */
void output_close(struct output *);

#endif
