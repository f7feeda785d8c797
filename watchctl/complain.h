/*
 * complain: what watchctl says on stderr, one line each.
 */
#ifndef COMPLAIN_H
#define COMPLAIN_H

/* "watchctl: ..." with control characters made visible.  Result: -EINVAL, for
   `return complain(...)`. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
