/* narrow_bare: narrow_libc without unwind information. */
#include "narrow_libc.c"
