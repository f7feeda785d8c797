/* interrupt: the signals that ask watchctl to end. */
#include "interrupt.h"

void
interrupt_signals(sigset_t *signals)
{
	(void)sigemptyset(signals);
	(void)sigaddset(signals, SIGINT);
	(void)sigaddset(signals, SIGQUIT);
	(void)sigaddset(signals, SIGTERM);
	(void)sigaddset(signals, SIGHUP);
}

bool
interrupt_pending(void)
{
	sigset_t signals, pending, both;

	interrupt_signals(&signals);
	(void)sigpending(&pending);
	(void)sigandset(&both, &signals, &pending);
	return sigisemptyset(&both) == 0;
}
