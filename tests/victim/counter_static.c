/* counter_static: counter, in a file of its own. */
#include "counter.c"
