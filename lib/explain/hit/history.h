/*
 * history: the old and new value of each hit, by the tickets that hits took
 * (bpf/ticket.h), however many threads raced for the bytes.
 *
 * What is given:
 *
 *  - Tickets are numbered, and at each the bytes were read: R1, R2, R3, ...
 *  - A write was made before its own ticket; and after the latest ticket before
 *    that of its thread, and of its processor, because the trap lets nothing
 *    else run there.  So it lies in one of few gaps between readings: at most
 *    one write of each processor is in flight at a time.
 *
 *	R1        R2        R3        R4        R5
 *	|---------|---------|---------|---------|
 *	     |<------- write 4, on processor 1 ->|      in gap 2, 3 or 4
 *	               |<--- write 5, on processor 2 -->|
 *
 *  - A mark bounds what is in flight of processors that hit seldom; and all
 *    that was accessed before it has a ticket.
 *
 * The rule: for each gap, all ways are tried in which some of the writes in
 * flight may have happened there, in each order; those are kept whose effects
 * lead from one reading to the next.  What an instruction stored is known, or
 * what it computes of what it finds (if nothing can come in between), or what
 * it loaded, or nothing.  A way that leads no further, at any later gap up to
 * the mark, was not the way.  What a hit replaced and left is claimed only
 * where it is the same in all ways that remain.  If none does, something wrote
 * that is not known: then nothing is claimed of what was in flight there, and
 * it begins anew.
 *
 * A hit without a sample is a write of which nothing is known.
 *
 * Bytes are numbers, the first byte the lowest; bits say which of them are
 * known.
 */
#ifndef EX_HISTORY_H
#define EX_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "insn/effect.h"

/* What an access did to the bytes, as far as its instruction shows that. */
struct ex_write {
	uint64_t bits;		/* that it may have written */
	uint64_t stored, stored_bits;
	uint64_t loaded, loaded_bits;	/* what it found there, if nothing came
					   between that and its writing */
	const struct ex_effect *effect;	/* what it computes, in the same way;
					   NULL: it does not */
	unsigned shift;		/* effect: where its bytes are, in bits */
};

/* A claim, or a part of it. */
struct ex_bytes {
	uint64_t value, bits;
};

/* A hit with a ticket. */
struct ex_history_hit {
	uint64_t number;	/* of its ticket, from 1 */
	struct ex_bytes read;	/* at it */
	pid_t tid;
	uint32_t cpu;		/* UINT32_MAX: not known */
	struct ex_write write;
	struct ex_effect effect;	/* room for write.effect */
	/* what becomes of it */
	bool settled;		/* no more will be known of it; and all that was
				   accessed before it has a ticket */
	struct ex_bytes old, new;	/* settled: what it replaced and left */
	/* private */
	bool referred, queued;	/* by who added it; by the history */
	bool known, tainted;
	uint64_t after;		/* its write was made after this reading */
	struct ex_history_hit *next;	/* in flight from the same reading on */
};

struct ex_history;

/* NULL: out of memory. */
struct ex_history *ex_history_new(void);
void ex_history_free(struct ex_history *);

/* The bytes were these before any hit. */
void ex_history_known(struct ex_history *, struct ex_bytes);

/* There was another hit.  The caller fills in what it is, and then holds it
   until ex_history_release.  NULL: out of memory, or there is no such
   number. */
struct ex_history_hit *ex_history_add(struct ex_history *, uint64_t number);
void ex_history_release(struct ex_history_hit *);

/* Others may have written: what the hits that were added and are not settled
   replaced and left is not known, nor what the next one after them did; nor of
   hits up to the next mark. */
void ex_history_doubt(struct ex_history *);

/* All hits with tickets up to upto have been added, unless they are lost; what
   takes a later one was accessed after ticket `all' was taken, and all that was
   accessed before that has a ticket. */
void ex_history_mark(struct ex_history *, uint64_t all, uint64_t upto);

#endif
