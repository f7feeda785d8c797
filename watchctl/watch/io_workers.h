/*
 * io_workers: threads that the kernel makes in a process for its io_uring(7).
 * They access its memory as the kernel does, cannot be traced, and take no
 * signal.
 */
#ifndef IO_WORKERS_H
#define IO_WORKERS_H

#include <sys/types.h>

#include "session/session.h"

/* Report, and doubt, that those of a process are not watched: why, in words,
   and the option without which they are.  Where the kernel's accesses are not
   wanted, nothing is missing. */
void io_workers_report(struct session *, pid_t, const char *why,
    const char *option);

#endif
