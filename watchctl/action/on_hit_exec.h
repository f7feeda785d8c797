/*
 * on_hit_exec: a shell command that is run at a hit, with the hit in its
 * environment.
 */
#ifndef ON_HIT_EXEC_H
#define ON_HIT_EXEC_H

#include "action/on_hit.h"

/*
 * Run it by sh -c, and wait for its end.  It reads nothing, and what it says
 * goes to stderr: a report, or the watched command's output, is disturbed by
 * neither.  0, and *status as of waitpid(2); -EINTR when it was ended because a
 * signal came that is to end watchctl, which stays pending; -ETIMEDOUT, or
 * because it took more than this many ms (0: any time); or -errno.
 */
int on_hit_exec(const char *command, const struct on_hit_at *, int ms,
    int *status);

#endif
