/* frames_narrow: frames, as a 32-bit program. */
#include "frames.c"
