/*
 * sandbox: gives up every privilege that explaining does not need.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stddef.h>

/*
 * From here on this process has no privileges; no descriptors but those below
 * `keep', of which the standard ones lead nowhere; at most `memory' bytes of
 * private memory; and no system calls but those that computing needs.  It ends
 * with its parent.  0; -ENOSYS: system calls cannot be filtered, everything
 * else is given up; another -errno: something could not be given up.
 */
int sandbox_enter(int keep, size_t memory);

#endif
