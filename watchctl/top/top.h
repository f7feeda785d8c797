/*
 * top: --top, shows the writers in a table on the terminal, redrawn twice a
 * second.
 *
 *	explainer: hits -> summary -> report_top: a frame now and then
 *	watchctl:  top_frame -> the table -> a thread that draws it (ncurses)
 *
 * The lines of a frame begin with a tab, which no other line of a text report
 * does.  They hold the account so far, and a line for each writer, with fields
 * separated by tabs.  Other output waits until the table is gone.
 */
#ifndef TOP_H
#define TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "option/options.h"

struct report_ops;

/* The form of report that sums up hits and writes frames. */
extern const struct report_ops report_top;

/* Check that there is a terminal to draw on.  0, or -EINVAL after a line on
   stderr. */
int top_check(const struct options *);

/* Draw from now on, with --top; and give the terminal back. */
void top_begin(const struct options *);
void top_end(void);

/* Whether the table is shown. */
bool top_is_on(void);

/* Whether to ask for a frame although no hit has come since the last one. */
bool top_is_due(void);

/* Take a piece of a report if it is a frame.  False: it is not. */
bool top_frame(const char *text, size_t len);

#endif
