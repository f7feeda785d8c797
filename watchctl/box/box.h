/*
 * box: running an explainer (message.h), and going on with another when it dies.
 */
#ifndef BOX_H
#define BOX_H

#include "spec/options.h"

/* Have one explain the recording that the options name, parsed from argv ("report"
   first); write its report where they say.  Result: the exit status. */
int box_report(const struct options *, char **argv);

#endif
