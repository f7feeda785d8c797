/* locals_narrow: locals, as a 32-bit program. */
#include "locals.c"
