/*
 * table: the table of watches that this program has on itself: its lock, its
 * free entries, and the events of each; and what else is known of the program.
 *
 * Lock order: wp_watches_lock alone.
 *
 * Nothing here allocates by malloc(3): the program's heap may be the very thing
 * that is being corrupted, and its lock may be held by a thread held still.
 */
#ifndef WP_TABLE_H
#define WP_TABLE_H

#include "handler/watches.h"

/* While it is locked the thread has all signals blocked and cannot be
   cancelled, so nothing that could want the lock runs in it.  fork(2) waits for
   it.  errno is afterwards what it was before. */
void wp_watches_lock(void);
void wp_watches_unlock(void);

/* By who has locked it: the channel in which that is counted, NULL: none; and
   it is not to be counted any more, since it is the parent's. */
struct wp_channel *wp_watches_counts(void);
void wp_watches_part(void);

/* A free entry (serial is 0 and delivery NULL) with its serial drawn but not
   set, or NULL; locked. */
struct wp_watch *wp_watches_new(uint32_t *serial);

/* Put an armed event into a watch; room is mapped as needed, and a page of it
   stays with the entry.  0 or -ENOMEM. */
int wp_watch_add(struct wp_watch *, int fd, unsigned slot, pid_t tid);
int wp_watch_put(struct wp_watch *, const struct wp_armed *);

/* Close an event; or its watch's from index first on. */
void wp_armed_drop(struct wp_armed *);
void wp_watch_drop(struct wp_watch *, size_t first);

/* The same descriptor with a high number, close-on-exec; the old one is closed,
   unless no higher one is available: then it is the result. */
int wp_descriptor_high(int fd);

/* Have dlclose(3) not unload the object, if any, that this lies in; not locked
   (pin.c). */
void wp_pin(const volatile void *);

/* Whether the signals of hits still come to our handler (trap_check.c): 0, or 1
   with a line in *cause that says what took them. */
int wp_trap_check(struct wp_cause *);

#endif
