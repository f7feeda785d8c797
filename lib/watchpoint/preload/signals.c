/*
 * signals: replaces the functions of the C library that set the action of a
 * signal.  For the signals of hits, the action is recorded, and applied to
 * signals that are not hits; the handler of hits stays installed.
 *
 * As those of spawn.c, they come before the C library's.  What makes the system
 * call itself is not noticed: that is reported (trap_check.c).
 *
 * Signal safety: async-signal-safe, as they are in the C library.
 */
#include <dlfcn.h>
#include <errno.h>

#include "handler/trap.h"
#include "program/table.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED __typeof__(sigaction) next_sigaction;
EXPORTED __typeof__(signal) next_signal, next___sysv_signal;

/* The functions that come next.  They are looked up before the program begins,
   because dlsym(3) is not async-signal-safe; constructors of other libraries
   may run even earlier. */
static struct {
	__typeof__(&sigaction) action;
	__typeof__(&signal) signal, sysv;
} next;

static __attribute__((constructor)) void
find(void)
{
	next.action = (__typeof__(&sigaction))(uintptr_t)
	    dlsym(RTLD_NEXT, "sigaction");
	next.signal = (__typeof__(&signal))(uintptr_t)
	    dlsym(RTLD_NEXT, "signal");
	next.sysv = (__typeof__(&signal))(uintptr_t)
	    dlsym(RTLD_NEXT, "__sysv_signal");
}

/* The program is to see its own action, not that of the library. */
static int
pass_on(int sig, const struct sigaction *wanted, struct sigaction *old)
{
	int err = next.action(sig, wanted, old);

	if (err == 0 && old != NULL && wp_trap_uses(sig) &&
	    wp_trap_is_ours(old))
		*old = wp_trap_wanted(sig);
	return err;
}

/* The lock also keeps fork(2) out.  In a watch's handler it may be held by a
   thread that waits for this handler to end. */
static void
keep(int sig, const struct sigaction *wanted, struct sigaction *old)
{
	const bool locks = !wp_trap_inside();
	const struct sigaction action = *wanted;

	if (locks)
		wp_watches_lock();
	if (old != NULL)
		*old = wp_trap_wanted(sig);
	wp_trap_want(sig, &action);
	if (locks)
		wp_watches_unlock();
}

/* If the action is our own handler, it was read where nothing hides it. */
int
next_sigaction(int sig, const struct sigaction *restrict wanted,
    struct sigaction *restrict old)
{
	if (next.action == NULL)
		find();
	if (wanted == NULL || wp_trap_is_ours(wanted) || !wp_trap_keeps(sig))
		return pass_on(sig, wanted, old);
	keep(sig, wanted, old);
	return 0;
}

/* As signal(3), with these flags, for one of our signals. */
static sighandler_t
set(int sig, sighandler_t handler, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	struct sigaction old;

	(void)sigemptyset(&action.sa_mask);
	if ((flags & SA_NODEFER) == 0)
		(void)sigaddset(&action.sa_mask, sig);
	return next_sigaction(sig, &action, &old) == 0 ? old.sa_handler :
	    SIG_ERR;
}

sighandler_t
next_signal(int sig, sighandler_t handler)
{
	if (next.signal == NULL)
		find();
	return wp_trap_uses(sig) && handler != SIG_ERR ?
	    set(sig, handler, SA_RESTART) : next.signal(sig, handler);
}

/* Its actions last for one signal. */
sighandler_t
next___sysv_signal(int sig, sighandler_t handler)
{
	if (next.sysv == NULL)
		find();
	return wp_trap_uses(sig) && handler != SIG_ERR ?
	    set(sig, handler, (int)SA_RESETHAND | SA_NODEFER) :
	    next.sysv(sig, handler);
}
