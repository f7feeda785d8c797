/*
 * lifeline: what the program does when the helper and its tracing process are
 * both killed.  See lifeline.c.
 */
#ifndef WP_LIFELINE_H
#define WP_LIFELINE_H

#include "handler/watches.h"

/* With a helper that is about to arm a watch by events of this signal: have the
   program take over the watches of this delivery itself should all of them die
   (in the handler, locked; 0 or -errno).  Once is enough.  Locked. */
void wp_lifeline_open(int sig, const struct wp_delivery *,
    int (*take_over)(struct wp_watch *));

/* In the child of a fork(2), locked: the pipe is its parent's. */
void wp_lifeline_forked(void);

#endif
