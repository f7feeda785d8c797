/*
 * synthetic_format: the layout of records of the state before the watch, for
 * all ways of watching.
 */
#ifndef SYNTHETIC_FORMAT_H
#define SYNTHETIC_FORMAT_H

#include "record/record.h"

/* The formats to decode such records.  NULL: out of memory. */
struct ex_formats *synthetic_format_new(void);

#endif
