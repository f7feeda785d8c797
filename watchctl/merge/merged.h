/*
 * merged: merges many reports into one: the number of hits for each host, rank,
 * watch and backtrace.
 *
 * Overview: a run begins with a start line; its lines may be in several files,
 * and an identical start line belongs to the same run.  Each run has rows, by
 * watch and backtrace, which count its lines of hits and, separately, the hits
 * of its summary lines; the latter count only if there are no lines of hits.
 * At the end the rows of one place are added up.
 *
 *	start line -> run -> place (host, rank)
 *	                \-> watches, by their ids
 *	hit, summary -> row (run, watch, backtrace) --- merged_rows ---> rows
 *
 * Bounds are named here.  Beyond them, hits of other backtraces are counted
 * together, and what cannot be counted is refused with a reason.  The number of
 * entries moved to keep arrays sorted is bounded, too.
 */
#ifndef MERGED_H
#define MERGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERGED_MOVES	(UINT64_C(1) << 29)	/* of spans and threads */

enum {
	MERGED_RUNS = 1 << 16,
	MERGED_PLACES = 1 << 14,
	MERGED_WATCHES = 1 << 14,
	MERGED_RUN_WATCHES = 1 << 10,	/* of one run */
	MERGED_ALL_WATCHES = 1 << 20,	/* of all runs */
	MERGED_ROWS = 1 << 17,
	MERGED_SPANS = 1 << 20,		/* of all runs: consecutive hits */
	MERGED_THREADS = 1 << 21,	/* of all rows */
	MERGED_STACK_BYTES = 32 << 20,
	MERGED_TEXT = 4096,		/* of a SPEC, including NUL */
	MERGED_HOST = 256,
};

/* An integer, as a program shows it: -5. */
struct merged_number {
	bool negative;
	uint64_t bits;		/* as 64 bits, two's complement */
};

struct merged_value {
	bool known;
	uint64_t bits;		/* of its bytes */
	struct merged_number number;
	bool is_number;
};

/* The values that hits left. */
struct merged_values {
	struct merged_value first, last, min, max;
	uint64_t first_at, last_at;	/* ns since the run began, plus 1; 0: no
					   value yet */
};

struct merged_row {
	unsigned run, place, watch;
	uint64_t stack;		/* 0: none is known */
	bool others;		/* of all backtraces that have no row */
	bool timed;		/* first and last are ns since 1970, else
				   since the run began */
	bool untimed;		/* times of both kinds were added: first and
				   last are invalid */
	bool more_threads;	/* there are more than in `threads' */
	bool unranged;		/* min and max are unknown */
	char access[8];
	uint64_t count, summed;	/* hits by their lines, and hits by summaries */
	int64_t first, last;
	struct merged_values values;
	int *threads;		/* nthreads of them, ascending */
	size_t nthreads, cap;
};

struct merged_place {
	char *host;		/* "": not known */
	bool ranked;
	unsigned rank;
};

struct merged_watch {
	char *spec;
	char access;		/* as options have it; NUL: not known */
};

struct merged_stack {
	uint64_t id;
	char *json;		/* the fields of its line; NUL-terminated */
	char *text;		/* a line for each frame */
};

/* The account of a run that ended. */
struct merged_end {
	bool is;
	uint64_t reported, lost;
};

struct merged;
struct merged_run;

struct merged *merged_new(void);
void merged_free(struct merged *);

/* The run that began with a line of this hash; *is_new: it is the first line of
   the run.  NULL, with a reason: there are too many runs. */
struct merged_run *merged_run(struct merged *, const uint64_t hash[2],
    bool *is_new, const char **why);

/* Describe a new run by its start line: rank NULL, there is none; wall, ns
   since 1970, 0: not known.  False: the run, or the watch, is refused. */
bool merged_run_place(struct merged *, struct merged_run *, const char *host,
    const unsigned *rank, int64_t wall, const char **why);
bool merged_run_watch(struct merged *, struct merged_run *, uint64_t id,
    const char *spec, char access, const char **why);

/* Whether the hit of this number, or the line of this hash, is new.  False with
   *why NULL: it arrived before. */
bool merged_new_hit(struct merged *, struct merged_run *, uint64_t seq,
    const char **why);
bool merged_new_line(struct merged *, struct merged_run *, uint64_t hash,
    const char **why);

/* The row of a hit; NULL, with a reason: it cannot be counted. */
struct merged_row *merged_row(struct merged *, struct merged_run *,
    uint64_t watch, uint64_t stack, bool others, const char **why);

/* Add to a row: a hit's time, ns since the run began; a thread. */
void merged_row_time(const struct merged_run *, struct merged_row *,
    int64_t time);
void merged_row_thread(struct merged *, struct merged_row *, int tid);

/* Merge values into a row's.  A single value is its own minimum and maximum. */
void merged_values_add(struct merged_row *, const struct merged_values *);

/* Whether a backtrace is known; and add one, whose fields and text are taken
   over. */
bool merged_has_stack(const struct merged *, uint64_t id);
void merged_add_stack(struct merged *, uint64_t id, char *json, char *text);

void merged_run_end(struct merged_run *, const struct merged_end *);

/* All rows, sorted by watch and descending number of hits.  To be called once,
   when nothing more is added. */
size_t merged_rows(struct merged *, const struct merged_row **);
const struct merged_place *merged_place(const struct merged *, unsigned);
size_t merged_watches(const struct merged *, const struct merged_watch **);
const struct merged_stack *merged_stack(const struct merged *, uint64_t id);

/* The account of all runs. */
struct merged_account {
	uint64_t runs, unended;	/* and those without an end line */
	uint64_t hits, lost;
	uint64_t missing;	/* hits that a run reported and that are in no
				   file */
	int64_t wall;		/* when the first began; 0: not known */
};

void merged_account(const struct merged *, struct merged_account *);

#endif
