/* complain: prints the messages of watchctl on stderr, one line each. */
#ifndef COMPLAIN_H
#define COMPLAIN_H

#include <stdbool.h>

/* Print "watchctl: ..." with control characters made visible.  Result: -EINVAL,
   for `return complain(...)`. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, with the meaning of an errno value, and what helps against it. */
int complain_errno(int err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* From here on call fn with messages instead of printing them. */
void complain_to(void (*fn)(const char *text));

/* Whether a line could not be written because its file or device is full. */
bool complain_failed(void);

#endif
