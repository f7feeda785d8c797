/* config, with a C library of its own, where it is put by itself. */
#include "config.c"
