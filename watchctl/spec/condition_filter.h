/*
 * condition_filter: derives the part of a condition that the kernel can
 * evaluate.
 */
#ifndef CONDITION_FILTER_H
#define CONDITION_FILTER_H

#include "os/filter.h"
#include "spec/condition.h"

/* Make a filter that rejects no hit for which the condition may hold.  Result:
   whether it can reject any. */
bool condition_filter(const struct condition *, struct wp_filter *);

#endif
