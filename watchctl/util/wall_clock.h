/* wall_clock: writes the time of day, in UTC. */
#ifndef WALL_CLOCK_H
#define WALL_CLOCK_H

#include "util/buffer.h"

/* Append a time, ns since 1970, for a reader: 2026-11-21 09:30:00 UTC. */
void wall_clock_put(struct buffer *, uint64_t ns);

/* Append the same as the member "wall" of a JSON object, by RFC 3339 to the
   microsecond: 2026-11-21T09:30:00.250000Z.  Nothing if it is not known (0). */
void wall_field(struct buffer *, uint64_t ns);

/* Parse the value of such a member; 0: it is invalid. */
int64_t wall_clock_parse(const char *text);

#endif
