/*
 * sandbox: gives up every privilege that explaining does not need.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stddef.h>

/*
 * From here on this process has no privilege, no descriptor but the standard
 * ones, which lead nowhere, and those below `keep', no more private memory than
 * this many bytes, and no system calls but those that computing takes.  It ends
 * with its parent.  0; -ENOSYS: there is no filter of system calls, all else is
 * given up; another -errno: something could not be given up.
 */
int sandbox_enter(int keep, size_t memory);

#endif
