/* brood_narrow: brood, as a 32-bit program. */
#include "brood.c"
