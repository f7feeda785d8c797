/*
 * box_report: `watchctl report` of a recording, in a box.
 */
#ifndef BOX_REPORT_H
#define BOX_REPORT_H

#include "option/options.h"

/* Have one explain the recording that the options name, parsed from argv
   ("report" first); write its report where they say.  Result: the exit
   status. */
int box_report(const struct options *, char **argv);

#endif
