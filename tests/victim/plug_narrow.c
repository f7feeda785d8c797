/* plug_narrow: plug, as a 32-bit library. */
#include "plug.c"
