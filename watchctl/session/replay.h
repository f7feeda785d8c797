/*
 * replay: `watchctl report FILE`: a recording, explained as live hits are.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "session/session.h"

/* attr.config of an event in our recordings, which breakpoints do not use:
   reads alone are wanted, though the processor watches any access. */
enum { REPLAY_READS = 'r' };

/* Of an open session, with the file that its options name.  Result: the exit
   status. */
int replay(struct session *);

#endif
