/*
 * replay: `watchctl report FILE`: a recording, explained as live hits are.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "options.h"

/* Result: the exit status. */
int replay(const struct options *);

#endif
