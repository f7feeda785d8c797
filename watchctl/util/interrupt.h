/*
 * interrupt: the signals that ask watchctl to end.  They are blocked while it
 * watches, and its loops take them; anything that takes long checks whether one
 * has come.
 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Which they are. */
void interrupt_signals(sigset_t *);

/* A loop has taken one, and ends by it. */
void interrupt_take(void);

/* Whether one was taken so, or is there that no loop has taken yet. */
bool interrupt_pending(void);

#endif
