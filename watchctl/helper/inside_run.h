/*
 * inside_run: `watchctl --inside`: a command with libwatchpoint put into it, which
 * watches what its environment says.
 */
#ifndef INSIDE_RUN_H
#define INSIDE_RUN_H

#include "spec/options.h"

/* Result: the exit status. */
int inside_run(const struct options *);

#endif
