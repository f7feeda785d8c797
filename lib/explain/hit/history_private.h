/* history_private: the writes of a watch, shared by the files of its
   history. */
#ifndef EX_HISTORY_PRIVATE_H
#define EX_HISTORY_PRIVATE_H

#include "hit/history.h"

#define NUMBER_MAX (UINT64_C(1) << 62)	/* of a ticket */

enum {
	WIDE = 4,		/* writes in flight at most; readings are taken
				   three times, which shows torn ones among up
				   to five */
	STATES = 1 << WIDE,
	MISSING = 32,		/* most hits in a row without a sample */
	STRETCH = 256,		/* most gaps at a time */
	MOVES = 4096,		/* most ways through a gap */
	LASTS = 4,		/* initial room, as most watches are hit by
				   few, */
	PROCESSORS = 256, THREADS = 1024,	/* and largest */
};

/* Writes in flight that have happened, by their numbers, ascending. */
struct happened {
	uint64_t of[WIDE];
	unsigned n;
};

/* A way through a gap: writes in this order, and the bytes between them. */
struct move {
	unsigned from, to;	/* states before and after it */
	unsigned n;
	uint64_t order[WIDE];
	struct ex_bytes at[WIDE + 1];
	bool alive;
};

/* The gap before a reading. */
struct gap {
	struct happened *state;	/* possible states after it */
	size_t n, cap;		/* of these */
	struct moves {
		struct move *move;
		size_t n, cap;
	} moves;
};

/* The last ticket numbers of processors or threads. */
struct lasts {
	struct last {
		uint64_t key, number;	/* 0: it is free */
	} *at;			/* hash table of n entries */
	size_t n;		/* 0, or a power of two */
};

struct ex_history {
	struct {		/* added, and not settled */
		struct ex_history_hit **hit;
		size_t n, cap;
	} waiting;
	uint64_t done;		/* gaps up to the one of this number are
				   processed */
	uint64_t placed;	/* hits up to this number have `after' */
	uint64_t bound;		/* later hits were made after this one */
	struct ex_bytes read;	/* the reading of `done' */
	uint64_t last;		/* the largest number so far */
	bool doubt;		/* hits up to `doubtful', and up to the next
				   mark, are doubtful */
	uint64_t doubtful;
	struct lasts cpus, threads;
	struct {		/* at[0] is the gap of `done', followed by later
				   ones */
		struct gap *at;	/* n of them are initialized */
		size_t n, cap;
	} gaps;
	unsigned ngaps;
	struct ex_history_hit **cand;	/* writes in flight, ncand of them */
	size_t ncand, candidates;
	struct ex_history_hit **flight;	/* lists, by the reading after which
					   they began */
	size_t flights;
};

/* The processing of a gap up to the reading with this number. */
struct pass {
	struct ex_history *h;
	struct gap *gap;
	uint64_t number;
	struct ex_bytes from, to;
	bool failed;		/* there are too many ways, or no memory */
};

bool ex_history_add_state(struct gap *, const struct happened *,
    unsigned *index);
struct ex_history_hit *ex_history_hit_of(const struct ex_history *,
    uint64_t number);
void ex_history_happen(struct happened *, uint64_t number);
void ex_history_forget(struct happened *, uint64_t number);

/* Process a gap.  False: it is unknown what happened there. */
bool ex_history_go_through(struct pass *, const struct gap *);

#endif
