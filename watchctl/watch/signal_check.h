/*
 * signal_check: checks a program from outside at intervals: whether it blocks
 * or ignores the signals of hits, and whether it has executed another program.
 */
#ifndef SIGNAL_CHECK_H
#define SIGNAL_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "handler/channel.h"

/*
 * Whether a channel's program does not get the signal of its hits, and why, in
 * words; threads: check its threads as well, which takes longer.  A thread may
 * be in that state briefly, in a signal handler: only what is found again after
 * a while counts.
 */
bool signal_check_blocked(const struct wp_channel *, int sig, bool threads,
    char *why, size_t size);

/* Whether a program has this file (a memfd) mapped; true if that cannot be
   seen. */
bool signal_check_has(pid_t program, int fd);

#endif
