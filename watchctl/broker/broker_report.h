/*
 * broker_report: `watchctl report` of a recording.
 */
#ifndef BROKER_REPORT_H
#define BROKER_REPORT_H

#include "option/options.h"

/* Have one explain the recording that the options name, parsed from argv
   ("report" first); write its report where they say.  Result: the exit
   status. */
int broker_report(const struct options *, char **argv);

#endif
