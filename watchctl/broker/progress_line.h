/*
 * progress_line: a line on a terminal that names the file being read, for as
 * long as that takes.  Nothing is printed if standard error is not a terminal.
 */
#ifndef PROGRESS_LINE_H
#define PROGRESS_LINE_H

/* Show the line, unless one is shown already; the path may contain any
   characters. */
void progress_line_show(const char *path);

/* Erase the line; call this before anything else is written. */
void progress_line_clear(void);

#endif
