/*
 * before: completes the samples of a processor that traps an access before it
 * is made, and reports it for one watch only.
 */
#ifndef BEFORE_H
#define BEFORE_H

#include "run/run.h"

/* Take a record into the session; with a hit of one watch also those of others
   that the same access is going to touch.  A watch with which the program would
   never get on is disarmed.  False: no more are wanted. */
bool before_record(struct run *, const struct ex_record *);

#endif
