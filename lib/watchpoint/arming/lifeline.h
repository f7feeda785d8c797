/*
 * lifeline: what the program does when the helper and its tracing process are
 * both killed.  See lifeline.c.
 */
#ifndef WP_LIFELINE_H
#define WP_LIFELINE_H

#include "handler/watches.h"

/* With a helper that is about to arm a watch by events of this signal: if the
   helper and its tracer both die, have the program take over the watches of
   this delivery itself (in the handler, locked; 0 or -errno).  One call is
   enough.  Locked. */
void wp_lifeline_open(int sig, const struct wp_delivery *,
    int (*take_over)(struct wp_watch *));

/* In the child of a fork(2), locked: the pipe belongs to its parent. */
void wp_lifeline_forked(void);

#endif
