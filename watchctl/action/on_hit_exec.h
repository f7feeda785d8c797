/*
 * on_hit_exec: runs a shell command at a hit, with the hit in its environment.
 */
#ifndef ON_HIT_EXEC_H
#define ON_HIT_EXEC_H

#include "action/on_hit.h"

/*
 * Run the command by sh -c, and wait for its end.  Its input is empty, and its
 * output goes to stderr, so it disturbs neither the report nor the watched
 * command's output.  0 with *status as of waitpid(2); -EINTR when it was ended
 * because of a pending signal that is to end watchctl; -ETIMEDOUT when it took
 * more than ms milliseconds (0: no limit); or another -errno.
 */
int on_hit_exec(const char *command, const struct on_hit_at *, int ms,
    int *status);

#endif
