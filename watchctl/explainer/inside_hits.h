/*
 * inside_hits: explains hits that programs handed over.
 */
#ifndef INSIDE_HITS_H
#define INSIDE_HITS_H

#include "broker/message.h"
#include "session/session.h"
#include "watch/channel_hit.h"
#include "watch/hit_order.h"

/* Report a hit of a process whose hits have this order, as a hit of each watch
   that it touched; *found is then what is to be known of it, but for its
   number.  A text for the program is put into `reply', if it asks for one, as
   far as there is room; the report began at this time, ns. */
void inside_hits_report(struct session *, struct hit_order *,
    const struct channel_hit *, const struct ex_record *, uint64_t began,
    struct broker_channel_hit *found, char reply[BROKER_BYTES_MAX]);

/* Explain it again, as a hit of this watch alone, by the session's number. */
void inside_hits_recall(struct session *, const struct channel_hit *,
    const struct ex_record *, uint64_t watch);

#endif
