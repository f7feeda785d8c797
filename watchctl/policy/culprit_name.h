/*
 * culprit_name: a name of the function that is responsible for a hit
 * (culprit.h) which is the same in every build of its program and on every
 * machine: "config.c!config_load", with the last part of its source file's
 * path; without debug information "libfoo.so!config_load".
 */
#ifndef CULPRIT_NAME_H
#define CULPRIT_NAME_H

#include "stack/stack.h"
#include "util/buffer.h"

/* How much of a function's name is the function's: without what compilers
   append for its copies and parts. */
size_t culprit_name_length(const char *function);

/* Append it.  False, and nothing is: the function has no name, one that cannot
   be relied on, or one that a line of text cannot hold. */
bool culprit_name_put(struct buffer *, const struct ex_frame *);

#endif
