/*
 * watch: the main job: watch live processes, or a command, and report the hits.
 */
#ifndef WATCH_H
#define WATCH_H

#include "option/options.h"

/* Result: the exit status. */
int watch(const struct options *);

#endif
