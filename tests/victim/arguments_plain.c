/* arguments_plain: arguments, without optimization. */
#include "arguments.c"
