/*
 * culprit: finds the function of a backtrace that is responsible for a hit.
 */
#ifndef CULPRIT_H
#define CULPRIT_H

#include "stack/stack.h"

/* The frame to blame: the innermost that is not of the C or C++ library, and
   not called by a function that works for its caller, such as qsort; else the
   program's innermost.  NULL: there is no frame. */
const struct ex_frame *culprit_of(const struct ex_stack *);

/* Whether a frame is of the C or C++ library, by the files and the names that
   are reserved for them. */
bool culprit_is_library(const struct ex_frame *);

/* Whether a frame is the dynamic loader's own, or, in a position-independent
   static program, of the code that relocates it. */
bool culprit_is_loader(const struct ex_frame *);

#endif
