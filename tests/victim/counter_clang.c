/* counter_clang: counter, as clang makes it. */
#include "counter.c"
