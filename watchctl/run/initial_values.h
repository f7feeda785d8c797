/*
 * initial_values: how values are found, and what the watched bytes were when
 * the watch began, so that the first hit has an old value.
 *
 * Where all threads were stopped, it was read then.  Else it is read now, which
 * is what a hit finds that is made later.
 */
#ifndef INITIAL_VALUES_H
#define INITIAL_VALUES_H

#include "run/run.h"

/* Watches are armed and the session is ready: pass it to its explainer.  0 or
   -ENOMEM. */
int initial_values_report(struct run *);

#endif
