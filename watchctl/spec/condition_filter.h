/*
 * condition_filter: the part of a condition that the kernel can evaluate.
 */
#ifndef CONDITION_FILTER_H
#define CONDITION_FILTER_H

#include "os/filter.h"
#include "spec/condition.h"

/* Whenever the filter is surely false, the condition is.  Result: whether it
   ever can be. */
bool condition_filter(const struct condition *, struct wp_filter *);

#endif
