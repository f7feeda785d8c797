/* arguments_sections: arguments, each function in a section of its own. */
#include "arguments.c"
