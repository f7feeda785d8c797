/*
 * merged: many reports merged into one: the number of hits for each host, rank,
 * watch and backtrace.
 *
 * Overview: a run is what one start line began, wherever its lines are; the
 * same start line again is the same run.  Each run has rows, by watch and
 * backtrace, which count its hits, and apart from them what its summary lines
 * say: if it has lines of hits those count, else the summary.  At the end the
 * rows of one place are added up.
 *
 *	start line -> run -> place (host, rank)
 *	                \-> watches, by their ids
 *	hit, summary -> row (run, watch, backtrace) --- merged_rows ---> rows
 *
 * Bounds: as many of each as are named here.  Where there are more, hits of
 * other backtraces are counted together, and what cannot be counted is not
 * taken, for the reason that is given.  What is kept sorted is moved when more
 * comes in front of it: that is bounded, too.
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
	MERGED_RUN_WATCHES = 1 << 10,	/* of a run, and */
	MERGED_ALL_WATCHES = 1 << 20,	/* of all */
	MERGED_ROWS = 1 << 17,
	MERGED_SPANS = 1 << 20,		/* of all runs: hits without a gap */
	MERGED_THREADS = 1 << 21,	/* of all rows */
	MERGED_STACK_BYTES = 32 << 20,
	MERGED_TEXT = 4096,		/* of a SPEC, with its NUL */
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

/* What was left there. */
struct merged_values {
	struct merged_value first, last, min, max;
	uint64_t first_at, last_at;	/* ns since the run began, plus 1; 0:
					   there are none yet */
};

struct merged_row {
	unsigned run, place, watch;
	uint64_t stack;		/* 0: none is known */
	bool others;		/* of backtraces that have no row */
	bool timed;		/* first and last are ns since 1970, else
				   since the run began */
	bool untimed;		/* both kinds: there is no first or last */
	bool more_threads;	/* than are in threads */
	bool unranged;		/* min and max are not known */
	char access[8];
	uint64_t count, summed;	/* hits, by their lines, and by summaries */
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

/* Of a run that ended, its account. */
struct merged_end {
	bool is;
	uint64_t reported, lost;
};

struct merged;
struct merged_run;

struct merged *merged_new(void);
void merged_free(struct merged *);

/* The run that began by a line with this hash; *is_new: no other line of it was
   seen.  NULL, with a reason: there are too many. */
struct merged_run *merged_run(struct merged *, const uint64_t hash[2],
    bool *is_new, const char **why);

/* What a new run's start line says: rank NULL, there is none; wall, ns since
   1970, 0: not known.  False: the run, or the watch, is not taken. */
bool merged_run_place(struct merged *, struct merged_run *, const char *host,
    const unsigned *rank, int64_t wall, const char **why);
bool merged_run_watch(struct merged *, struct merged_run *, uint64_t id,
    const char *spec, char access, const char **why);

/* Whether the hit of this number, or a line of this hash, is a new one, and not
   one that arrived before; false with *why NULL: it is not. */
bool merged_new_hit(struct merged *, struct merged_run *, uint64_t seq,
    const char **why);
bool merged_new_line(struct merged *, struct merged_run *, uint64_t hash,
    const char **why);

/* Its row; NULL, with a reason: it cannot be counted. */
struct merged_row *merged_row(struct merged *, struct merged_run *,
    uint64_t watch, uint64_t stack, bool others, const char **why);

/* Add to a row: when, ns since the run began; a thread. */
void merged_row_time(const struct merged_run *, struct merged_row *,
    int64_t time);
void merged_row_thread(struct merged *, struct merged_row *, int tid);

/* Add values to others; a value alone is its own least and largest. */
void merged_values_add(struct merged_row *, const struct merged_values *);

/* Whether the backtrace is known; its fields, and as text, which are taken
   over. */
bool merged_has_stack(const struct merged *, uint64_t id);
void merged_add_stack(struct merged *, uint64_t id, char *json, char *text);

void merged_run_end(struct merged_run *, const struct merged_end *);

/* All of it, to be called once, when nothing more is added: by watches, and
   then by hits, the most first. */
size_t merged_rows(struct merged *, const struct merged_row **);
const struct merged_place *merged_place(const struct merged *, unsigned);
size_t merged_watches(const struct merged *, const struct merged_watch **);
const struct merged_stack *merged_stack(const struct merged *, uint64_t id);

/* What became of the runs. */
struct merged_account {
	uint64_t runs, unended;	/* of which so many have no end line */
	uint64_t hits, lost;
	uint64_t missing;	/* reported by a run, and not there */
	int64_t wall;		/* when the first began; 0: not known */
};

void merged_account(const struct merged *, struct merged_account *);

#endif
