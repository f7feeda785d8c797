/* arguments_packed: arguments, with debug information that is packed. */
#include "arguments.c"
