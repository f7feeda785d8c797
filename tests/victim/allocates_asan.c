/* allocates_asan: allocates, with AddressSanitizer. */
#include "allocates.c"
