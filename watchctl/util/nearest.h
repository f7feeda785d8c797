/*
 * nearest: finds the names that are most similar to one that was not found.
 *
 * A name is similar if few letters differ (edit distance), if it is the same
 * name in a scope (counter in ns::counter) or with other parameters, or, as the
 * weakest form, if it contains the name (ssl in libssl.so.3).  Names are
 * offered one at a time; one that is not similar is rejected quickly, so that
 * there may be a million.
 */
#ifndef NEAREST_H
#define NEAREST_H

#include "util/buffer.h"

#define NEAREST_MAX 3

struct nearest {
	const char *want;	/* outlives this */
	size_t len;		/* of want, bytes */
	size_t head;		/* of it, before its parameters */
	unsigned limit;		/* most edits of a similar name */
	unsigned part;		/* edits that a name counts which contains
				   want */
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
