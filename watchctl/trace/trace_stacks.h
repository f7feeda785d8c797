/*
 * trace_stacks: stores the backtraces of a trace as frames, each with its
 * caller, so that the common part of backtraces is stored once.
 */
#ifndef TRACE_STACKS_H
#define TRACE_STACKS_H

#include <stdbool.h>

#include "base/table.h"
#include "hit/hit.h"
#include "policy/by_stack.h"
#include "util/buffer.h"

/* All zero: empty. */
struct trace_stacks {
	struct buffer frames;	/* members of a JSON object, a line each */
	struct ex_table by_text;	/* struct trace_frame */
	struct by_stack known;	/* struct trace_stack */
	unsigned n;		/* frames; their ids are 1 to n */
};

/* A backtrace. */
struct trace_stack {
	unsigned frame;		/* the id of its innermost frame; 0: no room */
	char *name;		/* the culprit function, as a JSON string;
				   malloc'd, NULL: not determined yet */
};

/* The backtrace of a hit; valid until the next call.  NULL: out of memory. */
const struct trace_stack *trace_stacks_of(struct trace_stacks *,
    const struct ex_hit *);

void trace_stacks_free(struct trace_stacks *);

#endif
