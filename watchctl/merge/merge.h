/*
 * merge: `watchctl report FILE...` of several files, or of JSON Lines, as one
 * table.
 */
#ifndef MERGE_H
#define MERGE_H

#include <stdbool.h>

#include "option/options.h"

/* Whether files are to be merged: there are several, or the first character of
   the only one is that of JSON Lines.  Standard input is not read for this. */
bool merge_wanted(const struct options *);

/* Merge and report.  Result: the exit status. */
int merge(const struct options *);

#endif
