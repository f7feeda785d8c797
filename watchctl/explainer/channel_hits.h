/*
 * channel_hits: hits that programs handed over, explained.
 */
#ifndef CHANNEL_HITS_H
#define CHANNEL_HITS_H

#include "box/message.h"
#include "session/session.h"
#include "watch/channel_hit.h"
#include "watch/hit_order.h"

/* Report a hit of a process whose hits have this order, as a hit of each watch
   that it touched; *found is then what is to be known of it, but for its
   number.  A text for the program is put into `reply', if it asks for one, as
   far as there is room; the report began at this time, ns. */
void channel_hits_report(struct session *, struct hit_order *,
    const struct channel_hit *, const struct ex_record *, uint64_t began,
    struct box_channel_hit *found, char reply[BOX_BYTES_MAX]);

/* Explain it again, as a hit of this watch alone, by the session's number. */
void channel_hits_recall(struct session *, const struct channel_hit *,
    const struct ex_record *, uint64_t watch);

#endif
