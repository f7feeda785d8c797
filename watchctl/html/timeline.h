/*
 * timeline: the times, writers and values of the hits of a watch, in a fixed
 * number of bins.  When the bins do not cover the time any more, each pair of
 * bins becomes one.
 *
 * A few writers have places of their own.  When no place is left, the writer
 * with the fewest hits is counted among the others.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include "report/summary.h"
#include "report/value_range.h"

enum {
	TIMELINE_BINS = 512,
	TIMELINE_WRITERS = 13,	/* index 0 stands for all others */
};

/* The hits of one writer in the time of a bin. */
struct timeline_part {
	uint64_t count;		/* hits, */
	uint64_t valued;	/* hits with a known value, and */
	double least, largest;	/* the range of these */
};

struct timeline_bin {
	struct timeline_part of[TIMELINE_WRITERS];
	double last;		/* the last value, if any is known */
	bool has_last;
};

struct timeline_writer {
	struct summary_row who;	/* identifies the writer (writers.h); its
				   backtrace is held */
	uint64_t count;		/* hits; 0: the place is free */
	unsigned taken;		/* counts the writers that have had this
				   place */
	char insn[96];		/* its instruction; "": not known */
};

struct timeline {
	unsigned number;	/* the watch's number, as printed */
	pid_t pid;		/* of the first hit; */
	bool processes;		/* hits of other processes are included */
	uint64_t first, last;	/* time of the first and the last hit, ns */
	unsigned shift;		/* a bin is 1 << shift ns */
	unsigned nbins;		/* bins in use */
	uint64_t hits;		/* hits in the timeline; */
	uint64_t before;	/* and further hits whose times are unknown */
	uint64_t valued;	/* hits whose value is a known number */
	bool mixed;		/* the values are of different bytes or types */
	struct range_value least, largest;	/* of all these */
	char type[64];		/* the type of the values; "": not known */
	struct timeline_writer writer[TIMELINE_WRITERS];
	struct timeline_bin bin[TIMELINE_BINS];
};

/* Create an empty timeline; NULL: out of memory. */
struct timeline *timeline_new(unsigned number);
void timeline_free(struct timeline *);

/* The place of a hit's writer, which gets one if it has none. */
unsigned timeline_place(struct timeline *, const struct ex_hit *);

/* The same for a writer that may have lost its place; then 0. */
unsigned timeline_place_of(const struct timeline *, const struct summary_row *);

/* Add a hit, by the writer with this place. */
void timeline_add(struct timeline *, const struct ex_hit *, unsigned place);

/* Merge bins until there are at most max. */
void timeline_coarsen(struct timeline *, unsigned max);

/* Whether its values can be drawn: most are known, and of one kind. */
bool timeline_has_values(const struct timeline *);

/* The number of all hits in a bin. */
uint64_t timeline_hits(const struct timeline_bin *);

#endif
