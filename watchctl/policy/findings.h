/*
 * findings: sums up stray hits, and hits that may be stray, by watch and place.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include "hit/hit.h"

/* One stray writer; or one that may be. */
struct finding {
	const struct ex_watch *watch;
	const struct ex_stack *stack;	/* of the first hit; NULL: unknown */
	const struct ex_frame *culprit;	/* one of its frames; NULL: unknown */
	const char *access;	/* of the first hit */
	uint64_t count;		/* hits */
	uint64_t first_seq;	/* seq of the first */
	bool incomplete;	/* its hits are unjudged: their backtraces are
				   incomplete, or not those of the accesses */
	bool late;		/* its hits came late: their backtraces are not
				   the accesses' */
};

/* All zero: empty. */
struct findings {
	void *tree;		/* by watch and place */
	struct findings_list {	/* in order of first sight */
		struct finding **at;
		size_t n, cap;
	} stray, unjudged;
};

/* Count a stray or unjudged hit `times' times. *last is a cache: the finding
   that is tried first, and then the hit's own.  0 or -ENOMEM. */
int findings_count(struct findings *, struct finding **last,
    const struct ex_hit *, uint64_t times);

void findings_free(struct findings *);

#endif
