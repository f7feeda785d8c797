// own_new with jemalloc behind it.
#include "own_new.cc"
