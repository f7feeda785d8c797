/*
 * interrupt: the signals that ask watchctl to end.  They are blocked while it
 * watches, and its loops take them; anything that takes long checks whether one
 * has come.
 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* The set of these signals. */
void interrupt_signals(sigset_t *);

/* A loop has taken one, and ends because of it. */
void interrupt_take(void);

/* Whether a loop has taken one, or one is pending. */
bool interrupt_pending(void);

#endif
