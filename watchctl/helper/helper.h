/*
 * helper: `watchctl helper`, which libwatchpoint starts from within a program
 * that watches itself.
 */
#ifndef HELPER_H
#define HELPER_H

/* Result: the exit status. */
int helper(void);

#endif
