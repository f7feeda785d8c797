/*
 * kallsyms: the kernel's symbols, from /proc/kallsyms.
 *
 * It has functions, and data only if the kernel has CONFIG_KALLSYMS_ALL.  It has
 * no sizes.
 */
#ifndef WP_KALLSYMS_H
#define WP_KALLSYMS_H

#include <stdint.h>

#define WP_KALLSYMS "/proc/kallsyms"

/*
 * Call fn with each symbol of a file of this format, in its order: the type is
 * nm's letter; a user who may not know addresses sees 0 for all of them.  The
 * first result of fn that is not 0 ends this.  Result: that one, 0 at the end,
 * or -errno.
 */
int wp_kallsyms_each(const char *path, int (*fn)(void *arg, uint64_t addr,
    char type, const char *name), void *arg);

#endif
