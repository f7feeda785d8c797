/* opener_narrow: opener, as a 32-bit program. */
#include "opener.c"
