/* brood_static: brood, with its C library linked into it. */
#include "brood.c"
