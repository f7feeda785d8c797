/*
 * memory_compare: proves by the contents of their memory that two processes do
 * not share it.
 *
 * Two processes that fork(2) created are alike, but not in every word: each has
 * its own id where the C library keeps it, to begin with.  A word that stays
 * one thing in the one and another in the other, while they are read in turn
 * many times, is not the same word.
 */
#ifndef WP_MEMORY_COMPARE_H
#define WP_MEMORY_COMPARE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether that shows it; false: it is not known.  Only memory is read that is
   of no file, and there already. */
bool wp_memory_differs(pid_t, pid_t);

#endif
