/*
 * symbolize_log: adds names to the addresses in a log.  libwatchpoint writes
 * such lines of hits where it has no helper
 * (lib/watchpoint/handler/fallback_report.c).
 */
#ifndef SYMBOLIZE_LOG_H
#define SYMBOLIZE_LOG_H

#include <stdbool.h>

#include "option/options.h"

/* Whether a file is to be read as a log: one with lines of hits, or a pipe. */
bool symbolize_log_is_log(const char *path);

/* `watchctl report LOG`.  Other lines stay as they are.  Result: the exit
   status. */
int symbolize_log(const struct options *);

#endif
