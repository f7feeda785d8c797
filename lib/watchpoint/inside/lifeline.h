/*
 * lifeline: what the program does when the helper and its tracing process are
 * both killed.  See lifeline.c.
 */
#ifndef WP_LIFELINE_H
#define WP_LIFELINE_H

/* With a helper that is about to arm a watch by events of this signal: have the
   program arm it itself should all of them die.  Once is enough.  Locked. */
void wp_lifeline_open(int sig);

/* In the child of a fork(2), locked: the pipe is its parent's. */
void wp_lifeline_forked(void);

#endif
