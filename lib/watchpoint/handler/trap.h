/*
 * trap: what the parts of the signal handler share.
 *
 *	trap.c		from a signal to what it does
 *	trap_run.c	the watches in use during that
 *	identify.c	which watches a signal names
 *	account.c	which watches the step touched
 *	classify.c	which of them were hit
 *	report.c	their report
 *	callbacks.c	their handlers
 *	rearm.c		events that fire once
 *	reentry.c	what the handler itself accesses
 *	chain.c		signals that are not ours
 *	program_action.c	what the program wants done with them
 *	step.c		over what was trapped before it was executed
 *	capture.c	registers and stack
 *	fallback_report.c lines, without a helper
 *	stray.c		the stray accesses so far
 *
 * Nothing else runs in the handler, except the deliveries' async-signal-safe
 * functions and what these files use of channel_post.c.  See trap.c.
 */
#ifndef WP_TRAP_H
#define WP_TRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "handler/watches.h"

/* The kernel's sigset_t, as system calls and signal frames have it; of no
   signal, 0, nothing. */
static inline uint64_t
wp_signal_bit(int sig)
{
	return sig > 0 ? 1ull << (sig - 1) : 0;
}

uint64_t wp_signal_mask(const ucontext_t *);	/* at the access */
void wp_context_mask_set(ucontext_t *, uint64_t mask);	/* to be, there */
void wp_signal_mask_set(uint64_t mask);		/* the thread's, now */

/* Send a signal to this thread again, as it was. */
void wp_signal_again(int sig, siginfo_t *);

/* Whether this is the action that we have installed. */
bool wp_trap_is_ours(const struct sigaction *);

/* The action that our handler replaced, for one of our signals. */
const struct sigaction *wp_trap_displaced(int sig);

/* Whether it is one of our signals; and whether what the kernel does with it is
   our doing, in this process, which may be a child that has this memory, but
   actions of its own. */
bool wp_trap_uses(int sig);
bool wp_trap_keeps(int sig);

/* The program's action for a signal of ours that is no hit.  Our handler stays
   installed, unless the program ignores the signal, because a program that it
   executes inherits that.  Only one thread at a time may change it. */
struct sigaction wp_trap_wanted(int sig);
void wp_trap_want(int sig, const struct sigaction *);

/* The present action; the same, for a signal that has arrived.  Only one thread
   at a time may change it. */
struct sigaction wp_program_action(const struct wp_program_action *);
struct sigaction wp_program_action_take(struct wp_program_action *);
void wp_program_action_set(struct wp_program_action *,
    const struct sigaction *);

/* Install SIGTRAP's handler again if the kernel has reset it, as it does where
   a debug register fires while SIGTRAP is blocked. */
void wp_trap_keep(void);

/* A signal that is not ours: do what the program wanted done with it. */
void wp_chain(int sig, siginfo_t *, ucontext_t *, struct wp_program_action *);

/* Whether a signal of events is ignored by default. */
bool wp_chain_ignored(int sig);

/* The number of accesses that a signal reports. */
enum wp_steps {
	WP_STEP_ONE,		/* one instruction */
	WP_STEP_MANY		/* not known: the kernel's, or late */
};

/* Account for what a signal reported: an access to this watch (users is
   raised), or so many.  Result: as of wp_account_slots. */
uint32_t wp_account(struct wp_watch *, enum wp_steps);
void wp_account_times(struct wp_watch *, uint64_t times);

/* Account for an access of which the helper does not learn. */
void wp_account_suppressed(struct wp_watch *);

/* Which slots of a watch have been touched since this was last asked, a bit for
   each; 0: that is not known. */
uint32_t wp_account_slots(struct wp_watch *);

/* All accesses to a watch so far, by any thread.  false: not all are
   counted, or it takes too long. */
bool wp_count_all(const struct wp_watch *, uint64_t *);

/* Whether the step that a signal of one watch reported (its slot; NULL:
   not known) has touched this other one, too: then it is accounted for. */
bool wp_account_also(struct wp_watch *, const struct wp_slot *,
    enum wp_steps);

/* The lines of a hit without a helper: written, if print; and kept, if it is
   stray. */
void wp_fallback_hit(const struct wp_watch *, const struct wp_hit *,
    bool print);

/* A warning about a watch: its label and what follows, by the helper's way. */
void wp_fallback_warning(const struct wp_watch *, const char *what);

/* A watch is not on in a thread any more, or in none: if there is a helper, it
   cannot vouch for the program. */
void wp_fallback_unwatched(void);

/* Count a stray access and keep its report; call wp_stray_handler's, if there
   is one. */
void wp_stray_note(const char *report);
void wp_stray_call(const struct wp_hit *);
bool wp_stray_is_handled(void);

#endif
