/*
 * trap_before: completes the samples of a processor that traps an access before
 * it is made, and reports it for one watch only.
 */
#ifndef TRAP_BEFORE_H
#define TRAP_BEFORE_H

#include "run/run.h"

/* Pass a record to the session; with a hit of one watch also those of the other
   watches that the same access is about to touch.  A watch that would keep the
   program from ever continuing is disarmed.  False: no more records are
   wanted. */
bool trap_before_record(struct run *, const struct ex_record *);

#endif
