/* containers_static: containers and its libraries, without a symbol. */
#include "containers.cc"
