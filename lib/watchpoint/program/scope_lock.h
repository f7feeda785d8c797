/* scope_lock: the lock of scope.c. */
#ifndef WP_SCOPE_LOCK_H
#define WP_SCOPE_LOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The thread's state before it locked. */
struct wp_scope_before {
	sigset_t mask;
	int cancel;
};

void wp_scope_lock(struct wp_scope_before *);
void wp_scope_unlock(const struct wp_scope_before *);

/* Whether the thread holds the lock, so that a handler must not leave by
   longjmp(3); async-signal-safe. */
bool wp_scope_locked(void);

/* The signals that the thread that holds the lock had blocked before. */
uint64_t wp_scope_mask(void);

#endif
