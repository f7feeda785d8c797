/*
 * watch: watches live processes, or a command, and reports the hits.
 */
#ifndef WATCH_H
#define WATCH_H

#include "option/options.h"

/* Result: the exit status. */
int watch(const struct options *);

#endif
