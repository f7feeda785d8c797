/*
 * nearest: the names most like one that was not found.
 *
 * Like: few letters apart (edit distance); the same name in a scope (counter,
 * in ns::counter) or with other parameters; or, least, a part of the name (ssl,
 * of libssl.so.3).  Names are offered one at a time; one that is nothing like
 * costs little, so that a million may be.
 */
#ifndef NEAREST_H
#define NEAREST_H

#include "util/buffer.h"

#define NEAREST_MAX 3

struct nearest {
	const char *want;	/* outlives this */
	size_t len;		/* of want, bytes */
	size_t head;		/* of it, before its parameters */
	unsigned limit;		/* edits that still make a likeness */
	unsigned part;		/* what a name counts as that holds want */
	unsigned n;
	struct {
		char *name;	/* malloc'd */
		unsigned edits;
	} best[NEAREST_MAX];	/* the nearest first, then by name */
};

void nearest_begin(struct nearest *, const char *want);
void nearest_free(struct nearest *);

/* Keep the name if it is among the nearest so far. */
void nearest_offer(struct nearest *, const char *name);

/* Append the names, "counter, counters"; nothing when there are none. */
void nearest_put(const struct nearest *, struct buffer *);

#endif
