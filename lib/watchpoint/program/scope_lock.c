/* scope_lock: the lock of scope.c, under which signals and cancellation
   wait. */
#include "program/scope_lock.h"

#include <pthread.h>
#include <string.h>

#include "handler/watches.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Whether this thread holds the lock or is about to take it. */
static _Thread_local volatile bool locked
    __attribute__((tls_model("initial-exec")));

/* The signals that were blocked before it took the lock. */
static _Thread_local uint64_t outside
    __attribute__((tls_model("initial-exec")));

static void
forked(void)
{
	(void)pthread_mutex_init(&mutex, NULL);
}

static void
prepare(void)
{
	(void)pthread_atfork(NULL, NULL, forked);
}

/*
 * In a thread that holds the lock, no code of the program runs except handlers
 * of watches.  wp_open wants to find their signals as the program left them, so
 * they are not blocked; the handlers must not leave by longjmp meanwhile
 * (wp_scope_locked).
 */
void
wp_scope_lock(struct wp_scope_before *before)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t most;

	(void)sigfillset(&most);
	(void)sigdelset(&most, SIGTRAP);
	(void)sigdelset(&most, WP_SIGNAL);
	if (wp_state.event_signal != 0)
		(void)sigdelset(&most, wp_state.event_signal);
	(void)pthread_sigmask(SIG_BLOCK, &most, &before->mask);
	memcpy(&outside, &before->mask, sizeof(outside));
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
	(void)pthread_once(&once, prepare);
	locked = true;
	(void)pthread_mutex_lock(&mutex);
}

void
wp_scope_unlock(const struct wp_scope_before *before)
{
	(void)pthread_mutex_unlock(&mutex);
	locked = false;
	(void)pthread_setcancelstate(before->cancel, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
}

bool
wp_scope_locked(void)
{
	return locked;
}

uint64_t
wp_scope_mask(void)
{
	return outside;
}
