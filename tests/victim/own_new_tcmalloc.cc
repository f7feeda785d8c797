// own_new with tcmalloc behind it.
#include "own_new.cc"
