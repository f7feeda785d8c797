/*
 * top: --top, the writers as a table on the terminal, redrawn twice a second.
 *
 *	explainer: hits -> summary -> report_top: a frame now and then
 *	watchctl:  top_frame -> the table -> a thread that draws it (ncurses)
 *
 * A frame is lines that begin with a tab, which no other line of a text report
 * does: the account so far, and a line for each writer; its parts are between
 * tabs.  What else is said or reported meanwhile waits until the table is gone.
 */
#ifndef TOP_H
#define TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "option/options.h"

struct report_ops;

/* A summary, and frames (report.h). */
extern const struct report_ops report_top;

/* Whether there is a terminal to draw on.  0, or -EINVAL after a line on
   stderr. */
int top_check(const struct options *);

/* Draw from now on, unless it is not asked for; and give the terminal back. */
void top_begin(const struct options *);
void top_end(void);

/* Whether the terminal has the table. */
bool top_is_on(void);

/* Whether to ask for a frame, though nothing has come: of what came before. */
bool top_is_due(void);

/* Take a piece of a report if it is a frame.  False: it is none. */
bool top_frame(const char *text, size_t len);

#endif
