/* merged_private: what the files of merged reports share. */
#ifndef MERGED_PRIVATE_H
#define MERGED_PRIVATE_H

#include "base/table.h"
#include "merge/merged.h"

/* A range of hit numbers. */
struct merged_span {
	uint64_t from, to;	/* inclusive */
};

struct merged_run_watch {
	uint64_t id;
	unsigned watch;
};

struct merged_run {
	uint64_t hash[2];
	unsigned number, place;
	const char *refused;	/* why the run is refused; NULL: it is not */
	bool timed;
	int64_t wall;
	struct merged_run_watch *watch;
	size_t nwatches, watches_cap;
	struct merged_span *span;	/* ascending */
	size_t nspans, spans_cap;
	struct ex_table lines;	/* hashes of lines without a number */
	struct merged_row *last;	/* the row that was found last, */
	uint64_t last_watch;
	uint64_t hits;
	struct merged_end end;
};

struct merged {
	struct ex_table by_hash;	/* runs */
	struct merged_run **run;
	size_t nruns, runs_cap;
	struct merged_place *place;
	size_t nplaces, places_cap;
	struct merged_watch *watch;
	size_t nwatches, watches_cap;
	struct merged_row **row;
	size_t nrows, rows_cap;
	struct ex_table by_key;	/* rows */
	struct ex_table stacks;
	size_t stack_bytes, nspans, nthreads, run_watches;
	uint64_t moves;		/* entries moved so far */
	struct merged_row *sorted;	/* the result of merged_rows(), */
	size_t nsorted;		/* which owns its threads */
};

extern const char merged_no_memory[];

/* A watch of a run by its id; NULL: the run did not describe it. */
const struct merged_run_watch *merged_watch_of(const struct merged_run *,
    uint64_t id);

#endif
