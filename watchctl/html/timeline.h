/*
 * timeline: the times, writers and values of the hits of a watch, in a fixed
 * number of bins: when the time that they cover is over, each two bins become
 * one.
 *
 * Each of a few writers has a place of its own.  When there is none left, the
 * one with the fewest hits becomes one of the others.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include "report/summary.h"
#include "report/value_range.h"

enum {
	TIMELINE_BINS = 512,
	TIMELINE_WRITERS = 13,	/* the first stands for all others */
};

/* What one writer did in the time of a bin. */
struct timeline_part {
	uint64_t count;		/* hits, */
	uint64_t valued;	/* and those of which the value is known: */
	double least, largest;	/* of these */
};

struct timeline_bin {
	struct timeline_part of[TIMELINE_WRITERS];
	double last;		/* the last value; if one is known */
	bool has_last;
};

struct timeline_writer {
	struct summary_row who;	/* by what compares writers (writers.h); its
				   backtrace is held */
	uint64_t count;		/* hits; 0: the place is free */
	unsigned taken;		/* how often the place was taken */
	char insn[96];		/* its instruction; "": not known */
};

struct timeline {
	unsigned number;	/* the watch's, as a reader knows it */
	pid_t pid;		/* of the first hit; */
	bool processes;		/* there are others */
	uint64_t first, last;	/* time of the first and the last hit, ns */
	unsigned shift;		/* a bin is 1 << shift ns */
	unsigned nbins;		/* that have been used */
	uint64_t hits;		/* on it; */
	uint64_t before;	/* and those of which the time is not known */
	uint64_t valued;	/* hits whose value is known, a number */
	bool mixed;		/* of different bytes or types */
	struct range_value least, largest;	/* of all these */
	char type[64];		/* of what was hit; "": not known */
	struct timeline_writer writer[TIMELINE_WRITERS];
	struct timeline_bin bin[TIMELINE_BINS];
};

/* An empty one; NULL: out of memory. */
struct timeline *timeline_new(unsigned number);
void timeline_free(struct timeline *);

/* The place of a hit's writer, which it gets if it has none. */
unsigned timeline_place(struct timeline *, const struct ex_hit *);

/* The same for a writer that may have none any more: then 0. */
unsigned timeline_place_of(const struct timeline *, const struct summary_row *);

/* Add a hit, by the writer with this place. */
void timeline_add(struct timeline *, const struct ex_hit *, unsigned place);

/* Have no more than so many bins. */
void timeline_coarsen(struct timeline *, unsigned max);

/* Whether its values make a timeline: most are known, and alike. */
bool timeline_has_values(const struct timeline *);

/* All hits of a bin. */
uint64_t timeline_hits(const struct timeline_bin *);

#endif
