/*
 * culprit_name: names the function that is responsible for a hit (culprit.h) in
 * a way that is the same in every build of its program and on every machine:
 * "config.c!config_load", with the last part of its source file's path; without
 * debug information "libfoo.so!config_load".
 */
#ifndef CULPRIT_NAME_H
#define CULPRIT_NAME_H

#include "stack/stack.h"
#include "util/buffer.h"

/* The length of a function's name without what compilers append for its copies
   and parts. */
size_t culprit_name_length(const char *function);

/* Append the name.  False, and nothing is appended: the function has no name,
   or one that is unreliable or cannot be in a line of text. */
bool culprit_name_put(struct buffer *, const struct ex_frame *);

#endif
