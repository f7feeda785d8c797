/*
 * run_inside: implements `watchctl --inside`: runs a command with libwatchpoint
 * loaded into it, which sets the watches that the environment lists.
 */
#ifndef RUN_INSIDE_H
#define RUN_INSIDE_H

#include "option/options.h"

/* Result: the exit status. */
int run_inside(const struct options *);

#endif
