/*
 * broker_report: `watchctl report` of a recording.
 */
#ifndef BROKER_REPORT_H
#define BROKER_REPORT_H

#include "option/options.h"

/* Have an explainer explain the recording that the options name, which were
   parsed from argv ("report" first), and write its report to where they say.
   Result: the exit status. */
int broker_report(const struct options *, char **argv);

#endif
