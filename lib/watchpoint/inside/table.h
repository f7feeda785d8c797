/*
 * table: the lock of the table of watches, its free entries, and what becomes
 * of it in a child made by fork(2); and what else the parts of inside share.
 *
 *	open.c		wp_open and friends: from an attribute to an open watch
 *	scope.c		what the macros stand for
 *	preload.c	watches from the environment
 *	table.c		the table
 *	pin.c		objects that must not be unloaded
 *	delivery.h	arming, one file for each delivery
 *	threads.h	the program's threads
 *	helper.h	the helper process
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

/* A free entry (serial is 0 and delivery NULL) with its serial drawn but not
   set, or NULL; locked. */
struct wp_watch *wp_watches_new(uint32_t *serial);

/* It is open from now on: signals under its serial are for it (open.c). */
void wp_watch_publish(struct wp_watch *, uint32_t serial);

/* Open a watch anew in a child made by fork(2) (open.c); locked.  0, or -errno
   after a line that says why: it watches nothing then. */
int wp_watch_reopen(struct wp_watch *);

/* Have dlclose(3) not unload the object, if any, that this lies in; not locked
   (pin.c). */
void wp_pin(const volatile void *);

/* Whether the thread has the lock of scope.c, so that a handler must not leave;
   async-signal-safe. */
bool wp_scope_locked(void);

/* The signals that a thread that has it had blocked before. */
uint64_t wp_scope_mask(void);

/* A variable of our environment; NULL when unset, or the program runs with
   privileges it was given (secure_getenv(3)). */
const char *wp_setting(const char *name);

/* Have wp_state.output; once, locked (output.c). */
void wp_output_open(void);

/* Whether the signals of hits still come to our handler (trap_check.c): 0, or 1
   with a line in *cause that says what took them. */
int wp_trap_check(struct wp_cause *);

#endif
