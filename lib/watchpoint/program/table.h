/*
 * table: the table of watches that this program has on itself: its lock, its
 * free entries, and the events of each watch; and other facts about the
 * program.
 *
 * Lock order: wp_watches_lock alone.
 *
 * Nothing here allocates by malloc(3): the program's heap may be what is being
 * corrupted, and a thread that is held still may hold the heap's lock.
 */
#ifndef WP_TABLE_H
#define WP_TABLE_H

#include "handler/watches.h"

/* While a thread holds this lock it has all signals blocked and cannot be
   cancelled, so no handler that needs the lock runs in it.  fork(2) waits for
   the lock.  Both functions preserve errno. */
void wp_watches_lock(void);
void wp_watches_unlock(void);

/* For the holder of the lock: the channel in which locking is counted, NULL:
   none; and stop counting there, because it is the parent's. */
struct wp_channel *wp_watches_counts(void);
void wp_watches_part(void);

/* Get a free entry (serial is 0 and delivery NULL), and a serial for it, which
   is not set yet.  NULL: there is none.  Locked. */
struct wp_watch *wp_watches_new(uint32_t *serial);

/* Add an armed event to a watch.  Memory is mapped as needed, and one page of
   it stays with the entry.  0 or -ENOMEM. */
int wp_watch_add(struct wp_watch *, int fd, unsigned slot, pid_t tid);
int wp_watch_put(struct wp_watch *, const struct wp_armed *);

/* Close an event; or the events of a watch from index first on. */
void wp_armed_drop(struct wp_armed *);
void wp_watch_drop(struct wp_watch *, size_t first);

/* Move a descriptor to a high number, close-on-exec, and close the old one.  If
   no high number is available, the result is the old one. */
int wp_descriptor_high(int fd);

/* Keep dlclose(3) from unloading the object, if any, that contains this
   address; not locked (pin.c). */
void wp_pin(const volatile void *);

/* Whether an address is in the memory of an object, but not of the one that
   contains the other address; not locked (pin.c). */
bool wp_is_in_other_object(const volatile void *addr, const void *other);

/* Whether the signals of hits still reach our handler (trap_check.c): 0, or 1
   with a line in *cause that says what took them. */
int wp_trap_check(struct wp_cause *);

#endif
