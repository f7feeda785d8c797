/*
 * environment: writes a hit as variables of a command's environment (--on-hit
 * exec).
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include "report/report.h"
#include "util/buffer.h"

#define ENVIRONMENT_PREFIX "WATCHCTL_"

enum {
	ENVIRONMENT_MAX = 32,			/* variables */
	ENVIRONMENT_TEXT_MAX = 128 << 10,	/* bytes that execve(2) accepts
						   in one */
};

/* Append NAME=VALUE with NUL for each known property of a hit, at most max
   bytes in all; begin: how its report began. */
void environment_put(struct buffer *, const struct report_start *begin,
    const struct ex_hit *, size_t max);

#endif
