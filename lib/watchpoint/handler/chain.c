/*
 * chain: passes signals that are not from watches on to the action that was
 * installed before, with the mask and arguments that it would have had, or ends
 * the program where that is the action.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/trap.h"
#include "os/libc.h"
#include "os/siginfo_perf.h"

uint64_t
wp_signal_mask(const ucontext_t *context)
{
	uint64_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	return mask;
}

void
wp_context_mask_set(ucontext_t *context, uint64_t mask)
{
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
}

/* libc's functions would leave the signals it keeps for itself unblocked. */
void
wp_signal_mask_set(uint64_t mask)
{
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL,
	    sizeof(mask));
}

void
wp_signal_again(int sig, siginfo_t *info)
{
	(void)syscall(SYS_rt_tgsigqueueinfo, getpid(), wp_libc_tid(), sig,
	    info);
}

/* Send the signal to the thread again, to be delivered with the default action
   when the handler returns: core and exit status are then those of a program
   without watches. */
static void
die(int sig, siginfo_t *info, ucontext_t *context)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	uint64_t mask = wp_signal_mask(context) & ~wp_signal_bit(sig);

	(void)wp_libc_sigaction(sig, &action, NULL);
	wp_signal_mask_set(UINT64_MAX);
	wp_signal_again(sig, info);
	wp_context_mask_set(context, mask);
}

/* A signal that an instruction raised kills the process even if it is ignored;
   one from perf does not. */
static bool
is_forced(int sig, const siginfo_t *info)
{
	return sig == SIGTRAP && info->si_code > 0 &&
	    info->si_code != WP_TRAP_PERF;
}

static void
call(int sig, siginfo_t *info, ucontext_t *context,
    const struct sigaction *action)
{
	uint64_t mask;

	memcpy(&mask, &action->sa_mask, sizeof(mask));
	mask |= wp_signal_mask(context);
	if ((action->sa_flags & SA_NODEFER) == 0)
		mask |= wp_signal_bit(sig);
	wp_signal_mask_set(mask);
	if ((action->sa_flags & SA_SIGINFO) != 0)
		action->sa_sigaction(sig, info, context);
	else
		action->sa_handler(sig);
}

bool
wp_chain_ignored(int sig)
{
	return sig == SIGURG || sig == SIGWINCH;
}

void
wp_chain(int sig, siginfo_t *info, ucontext_t *context,
    struct wp_program_action *wanted)
{
	const struct sigaction action = wp_program_action_take(wanted);

	if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
		call(sig, info, context, &action);
	else if ((action.sa_handler == SIG_DFL && !wp_chain_ignored(sig)) ||
	    is_forced(sig, info))
		die(sig, info, context);
}
