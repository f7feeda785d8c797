/*
 * concurrent: finds the value that each of several accesses left which threads
 * made at nearly the same time.
 *
 * It is known only that there were no others, what each of them loaded, and the
 * value before the first or after the last.  Each found what the one before it
 * left.  So if the same access is next in every possible order, what it loaded
 * is what this one left, even if this one's operand is lost.
 *
 * Possible orders are restricted by the loaded values, by threads and
 * processors, which do one thing after another, and by times: an access
 * happened before its own time, and after the last moment at which its thread
 * had not made it.  After an addition, the flags depend on the value that it
 * left.
 */
#ifndef EX_CONCURRENT_H
#define EX_CONCURRENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "insn/effect.h"

/* Larger groups are not solved. */
#define EX_CROWD_MAX 12

/* An atomic access. */
struct ex_concurrent_access {
	pid_t tid;
	uint32_t cpu;		/* UINT32_MAX: not known */
	uint64_t since, time;	/* ns: the access was made between these */
	uint64_t loaded;	/* the value that it found */
	bool has_left;
	uint64_t left;		/* has_left: the value that it left */
	const struct ex_effect *added;	/* an addition whose operand is lost,
					   but not its flags; NULL: it is
					   none */
};

struct ex_concurrent {
	size_t n;		/* at most EX_CROWD_MAX */
	struct ex_concurrent_access access[EX_CROWD_MAX];
	bool has_before, has_after;
	uint64_t before, after;	/* values before and after all of them */
};

/* Fill in `left' where it is certain. */
void ex_concurrent_solve(struct ex_concurrent *);

#endif
