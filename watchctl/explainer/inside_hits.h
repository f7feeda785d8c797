/*
 * inside_hits: explains the hits that programs which watch themselves handed
 * over.
 */
#ifndef INSIDE_HITS_H
#define INSIDE_HITS_H

#include "broker/message.h"
#include "session/session.h"
#include "watch/channel_hit.h"
#include "watch/hit_order.h"

/* Report a hit once for each watch that it touched, in its process's order of
   hits; *found then holds everything but its number.  If the hit asks for a
   text for the program, that is put into `reply', as far as there is room.  The
   report began at this time, ns. */
void inside_hits_report(struct session *, struct hit_order *,
    const struct channel_hit *, const struct ex_record *, uint64_t began,
    struct broker_channel_hit *found, char reply[BROKER_BYTES_MAX]);

/* Explain a hit again, as one of this watch alone, by the session's number. */
void inside_hits_recall(struct session *, const struct channel_hit *,
    const struct ex_record *, uint64_t watch);

#endif
