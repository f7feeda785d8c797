/* complain: the messages of watchctl on stderr, one line each. */
#ifndef COMPLAIN_H
#define COMPLAIN_H

#include <stdbool.h>

/* "watchctl: ..." with control characters made visible.  Result: -EINVAL, for
   `return complain(...)`. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, with what an errno value says, and what helps against it. */
int complain_errno(int err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* From here on have fn say what is to be said, instead of writing it. */
void complain_to(void (*fn)(const char *text));

/* Whether a line could not be written, since its file or device is full. */
bool complain_failed(void);

#endif
