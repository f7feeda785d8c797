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
 * Why a channel's program does not get the signal of its hits, in words; or a
 * thread of it, if these are to be looked at, which takes longer.  False:
 * nothing says so.  A thread may be like that for a moment, in a signal
 * handler: only what is seen again after a while counts.
 */
bool signal_check_blocked(const struct wp_channel *, int sig, bool threads,
    char *why, size_t size);

/* Whether a program has this file (a memfd) mapped; true when it cannot be
   seen. */
bool signal_check_has(pid_t program, int fd);

#endif
