/*
 * history: finds the old and new value of each hit by the tickets that hits
 * took (bpf/ticket.h), however many threads raced for the bytes.
 *
 * Known facts:
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
 *  - A mark bounds what is in flight on processors that hit seldom: everything
 *    accessed before it has a ticket.
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
	uint64_t bits;		/* bits that it may have written */
	uint64_t stored, stored_bits;
	uint64_t loaded, loaded_bits;	/* what it found there, if nothing came
					   between its load and its store */
	const struct ex_effect *effect;	/* its computation, under the same
					   condition; NULL: none */
	unsigned shift;		/* effect: the offset of its operand, in bits */
	bool split;		/* another write may come in between its load
				   and its store; otherwise none can */
};

/* A claim, or a part of it. */
struct ex_bytes {
	uint64_t value, bits;
};

/* A hit with a ticket. */
struct ex_history_hit {
	uint64_t number;	/* the number of its ticket, from 1 */
	struct ex_bytes read;	/* the bytes read at the ticket */
	pid_t tid;
	uint32_t cpu;		/* UINT32_MAX: not known */
	struct ex_write write;
	struct ex_effect effect;	/* room for write.effect */
	/* the result: */
	bool settled;		/* the result is final; and everything that was
				   accessed before it has a ticket */
	bool refuted;		/* settled: no order of the hits leads to what
				   was read then: something wrote without one */
	struct ex_bytes old, new;	/* settled: what it replaced and left */
	/* private */
	bool referred, queued;	/* held by the caller; held by the history */
	bool known, tainted;
	bool follows;		/* the ticket before is of its thread or
				   processor */
	uint64_t after;		/* the write was made after this reading */
	struct ex_history_hit *next;	/* in flight from the same reading on */
};

struct ex_history;

/* NULL: out of memory. */
struct ex_history *ex_history_new(void);
void ex_history_free(struct ex_history *);

/* Set the bytes before any hit. */
void ex_history_known(struct ex_history *, struct ex_bytes);

/* Add a hit.  The caller fills it in, and then holds it until
   ex_history_release.  NULL: out of memory, or the number is invalid. */
struct ex_history_hit *ex_history_add(struct ex_history *, uint64_t number);
void ex_history_release(struct ex_history_hit *);

/* Others may have written: old and new values of the hits that were added and
   are not settled are unknown, and so are those of the next one and of hits up
   to the next mark. */
void ex_history_doubt(struct ex_history *);

/* All hits with tickets up to upto have been added, unless they are lost; hits
   with later tickets were accessed after ticket `all' was taken, and everything
   accessed before that has a ticket. */
void ex_history_mark(struct ex_history *, uint64_t all, uint64_t upto);

#endif
