/* interrupt: the signals that ask watchctl to end. */
#include "util/interrupt.h"

static bool taken;

void
interrupt_signals(sigset_t *signals)
{
	(void)sigemptyset(signals);
	(void)sigaddset(signals, SIGINT);
	(void)sigaddset(signals, SIGQUIT);
	(void)sigaddset(signals, SIGTERM);
	(void)sigaddset(signals, SIGHUP);
}

void
interrupt_take(void)
{
	taken = true;
}

bool
interrupt_pending(void)
{
	sigset_t signals, pending, both;

	if (taken)
		return true;
	interrupt_signals(&signals);
	(void)sigpending(&pending);
	(void)sigandset(&both, &signals, &pending);
	return sigisemptyset(&both) == 0;
}
