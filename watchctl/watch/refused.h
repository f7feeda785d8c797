/*
 * refused: why ptrace(2) on a process is refused.
 */
#ifndef REFUSED_H
#define REFUSED_H

#include <sys/types.h>

#include "os/cause.h"

/* Why a process's threads cannot be held or traced; err > 0 is the errno.
   Result: -err, with a cause. */
int refused(pid_t pid, int err, struct wp_cause *);

#endif
