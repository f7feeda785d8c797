/*
 * concurrent: the value that each of several accesses left which threads made
 * at nearly the same time.
 *
 * All that is known is that there were no others, what each of them loaded, and
 * what was there before the first or after the last.  Each found what the one
 * before it left.  So if the same access is next in every possible order, what
 * it loaded is what this one left, even if this one's operand is lost.
 *
 * Orders are restricted by what was loaded, by threads and processors, which do
 * one thing after another, and by times: an access happened before its own
 * time, and after the last moment at which its thread was seen not to have made
 * it.  And after an addition the flags depend on what it left.
 */
#ifndef EX_CONCURRENT_H
#define EX_CONCURRENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "insn/effect.h"

/* In larger ones nothing is found. */
#define EX_CROWD_MAX 12

/* One that is atomic. */
struct ex_concurrent_access {
	pid_t tid;
	uint32_t cpu;		/* UINT32_MAX: not known */
	uint64_t since, time;	/* ns: it was made between these */
	uint64_t loaded;	/* what it found */
	bool has_left;
	uint64_t left;		/* has_left: what it left */
	const struct ex_effect *added;	/* what it added is lost, but its flags
					   are not; NULL: nothing like that */
};

struct ex_concurrent {
	size_t n;		/* at most EX_CROWD_MAX */
	struct ex_concurrent_access access[EX_CROWD_MAX];
	bool has_before, has_after;
	uint64_t before, after;	/* what was there before all, and after all */
};

/* Fill in what accesses left, where that is certain. */
void ex_concurrent_solve(struct ex_concurrent *);

#endif
