/*
 * ptrace_refused: why ptrace(2) on a process is refused.
 */
#ifndef PTRACE_REFUSED_H
#define PTRACE_REFUSED_H

#include <sys/types.h>

#include "os/cause.h"

/* Why a process's threads cannot be held or traced; err > 0 is the errno.
   Result: -err, with a cause. */
int ptrace_refused(pid_t pid, int err, struct wp_cause *);

#endif
