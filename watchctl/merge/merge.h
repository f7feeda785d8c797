/*
 * merge: `watchctl report FILE...` of several files, or of JSON Lines: one
 * table of all of them.
 */
#ifndef MERGE_H
#define MERGE_H

#include <stdbool.h>

#include "option/options.h"

/* Whether that is what is to be done: there are several files, or one whose
   first character is that of JSON Lines.  Of standard input nothing is taken.
   */
bool merge_wanted(const struct options *);

/* Do it.  Result: the exit status. */
int merge(const struct options *);

#endif
