/*
 * replay: `watchctl report FILE`: explains a recording in the way that live
 * hits are explained.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "session/session.h"

/* attr.config of an event in our recordings, which breakpoints ignore: only
   reads are wanted, although the processor watches any access. */
enum { REPLAY_READS = 'r' };

/* Replay into an open session the file that its options name.  Result: the exit
   status. */
int replay(struct session *);

#endif
