/*
 * output: opens the destination of a report or a recording.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "report/side_files.h"
#include "option/options.h"

struct output {
	char *path;		/* the file of -O, malloc'd; NULL: none */
	FILE *stream;		/* a report's; NULL: there is none */
	int file;		/* -o perf: the recording's; else -1 */
	bool own;		/* the stream or file is ours to close */
	bool made;		/* the file was created by us, and is empty */
	struct side_files sides;
};

/* Open the file of -O, or use `otherwise'; and open the side files.  An
   existing file keeps its contents until output_begin; a new one is created
   now, and removed by output_close if nothing began.  0, or -errno after a line
   on stderr. */
int output_open(struct output *, const struct options *, FILE *otherwise);

/* Open a name with %p, now that the pid is known; until then there is no
   stream.  Other names are already open.  0, or as above. */
int output_open_of(struct output *, const struct options *, pid_t);

/* The report or recording begins: empty the file.  0 or -errno. */
int output_begin(struct output *);

/* The screen of a report's reader.  All zero: no terminal. */
struct output_screen {
	bool colour;		/* a terminal, TERM set and not dumb, NO_COLOR
				   unset or empty */
	unsigned columns;	/* 0: not known */
};

struct output_screen output_screen(FILE *);

/* Close it; it is open or all zero. */
void output_close(struct output *);

#endif
