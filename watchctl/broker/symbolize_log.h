/*
 * symbolize_log: adds names to the addresses in a log. libwatchpoint logs hits
 * in this way where it has no helper
 * (lib/watchpoint/handler/fallback_report.c).
 */
#ifndef SYMBOLIZE_LOG_H
#define SYMBOLIZE_LOG_H

#include <stdbool.h>

#include "option/options.h"

/* Whether a file is to be read as a log: it contains lines of hits, or is a
   pipe. */
bool symbolize_log_is_log(const char *path);

/* `watchctl report LOG`.  Lines that are no hits are copied.  Result: the exit
   status. */
int symbolize_log(const struct options *);

#endif
