/*
 * fork: the watches of this program in a child created by fork(2).
 */
#ifndef WP_FORK_H
#define WP_FORK_H

#include "handler/watches.h"

/* Have the watches that there will be follow into children, by opening them
   there anew (0, or -errno after a line that says why: it watches nothing
   then), or be closed there; locked.  False: out of memory. */
bool wp_fork_prepare(int (*reopen)(struct wp_watch *));

#endif
