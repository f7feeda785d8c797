/*
 * ptrace_refused: finds the reason why ptrace(2) on a process is refused.
 */
#ifndef PTRACE_REFUSED_H
#define PTRACE_REFUSED_H

#include <stdbool.h>
#include <sys/types.h>

#include "os/cause.h"

/* Whether ptrace(2) works on a child of our own, by trying. */
bool ptrace_works(void);

/* What helps where ptrace(2) is refused, as the end of a sentence; command: for
   a command to be started, else for a running process. */
const char *ptrace_way_out(bool command);

/* Why a process's threads cannot be held or traced; err > 0 is the errno.
   Result: -err, with a cause. */
int ptrace_refused(pid_t pid, int err, struct wp_cause *);

#endif
