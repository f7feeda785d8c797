/*
 * reading_line: a line on a terminal that says what is being read, as long as
 * that takes; nothing where standard error is no terminal.
 */
#ifndef READING_LINE_H
#define READING_LINE_H

/* Say it, unless something is said already; the path may have any
   characters. */
void reading_line_show(const char *path);

/* Take it back, before anything else is written. */
void reading_line_clear(void);

#endif
