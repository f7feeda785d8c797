/* run_heap: `watchctl --heap`. */
#ifndef RUN_HEAP_H
#define RUN_HEAP_H

#include "option/options.h"

/* Run the command with a guarded heap, and report what was found.  Result: the
   exit status. */
int run_heap(const struct options *);

#endif
