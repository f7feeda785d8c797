/* debug_frame: frames, whose unwind information is in .debug_frame only. */
#include "frames.c"
