/* aslr: --no-aslr, which gives a command the same addresses in each run. */
#ifndef ASLR_H
#define ASLR_H

#include "option/options.h"

struct session;

/* What is started from now on has its addresses as the options want them.
   Result: for aslr_end; or -errno after a line on stderr. */
int aslr_begin(const struct options *);

/* As it was before. */
void aslr_end(int before);

/* The address that SPEC number i gives is not mapped yet: that may be a slip of
   the pen. */
void aslr_warn_unmapped(struct session *, const struct options *, size_t i);

#endif
