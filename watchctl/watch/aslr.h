/* aslr: --no-aslr, which gives a command the same addresses in each run. */
#ifndef ASLR_H
#define ASLR_H

#include "spec/options.h"

/* What is started from now on has its addresses as the options want them.
   Result: for aslr_end; or -errno after a line on stderr. */
int aslr_begin(const struct options *);

/* As it was before. */
void aslr_end(int before);

#endif
