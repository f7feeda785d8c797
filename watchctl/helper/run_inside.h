/*
 * run_inside: `watchctl --inside`: a command with libwatchpoint put into it,
 * which watches what its environment says.
 */
#ifndef RUN_INSIDE_H
#define RUN_INSIDE_H

#include "spec/options.h"

/* Result: the exit status. */
int run_inside(const struct options *);

#endif
