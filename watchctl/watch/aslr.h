/* aslr: implements --no-aslr, which gives a command the same addresses in each
   run. */
#ifndef ASLR_H
#define ASLR_H

#include "option/options.h"

struct session;

/* Set how processes started from now on get their addresses, by the options.
   Result: for aslr_end; or -errno after a line on stderr. */
int aslr_begin(const struct options *);

/* Restore the previous setting. */
void aslr_end(int before);

/* Warn that the address of SPEC number i is not mapped yet, and so may be
   mistyped. */
void aslr_warn_unmapped(struct session *, const struct options *, size_t i);

#endif
