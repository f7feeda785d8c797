/*
 * callers: the places where blocks are allocated and freed.  Each distinct
 * backtrace is kept once and named by a number.
 *
 * Usually only a key of a few words (the stack pointer and the innermost return
 * addresses) is looked up; the whole backtrace is walked when a key is seen for
 * the first time.
 */
#ifndef HG_CALLERS_H
#define HG_CALLERS_H

#include "guard/cfi.h"
#include "guard/evidence.h"
#include "guard/state.h"

/* The record of the function that uses this macro; it identifies the caller. */
#define HG_CALLER ((const struct hg_record *)__builtin_frame_address(0))

/* Allocate the tables.  0 or -ENOMEM. */
int hg_callers_begin(void);

/* The two sites of a sum.  Few sites are all in a few pages. */
static inline struct hg_site *
hg_site_of(struct hg_thread *t, uint64_t sum)
{
	const unsigned bits = __builtin_ctz(HG_SITES_FIRST) - 1 + t->grown;

	return &t->site[(sum >> (64 - bits)) * 2];
}

/* Remember the callers as the first of these two, and what that was before as
   the second.  Result: their number. */
uint32_t hg_site_learn(struct hg_thread *, uint64_t sum,
    const struct hg_record *from, unsigned frames);

/* Whether the site is this one: its last frame, too. */
static inline bool
hg_site_is(const struct hg_site *s, uint64_t sum, const struct hg_frame *f)
{
	return s->sum == sum && (!s->by_bp || s->bp == f->bp) && (s->at == 0 ||
	    *(const uint64_t *)(uintptr_t)(f->sp + s->at) == s->word);
}

/* The number of a thread's callers, of which `frames' more than the first, 0 or
   2, belong to the key; 0: there is no room.  A site is looked up once all but
   the last frame are known, because the last would cost as much again.  Two
   sites of one cache line are looked at: often callers differ in the last frame
   only, and take turns. */
static inline __attribute__((always_inline)) uint32_t
hg_callers_of(struct hg_thread *t, const struct hg_record *from,
    unsigned frames)
{
	struct hg_frame f = hg_frame_of(from);
	struct hg_site *s;
	const uint64_t round = atomic_load_explicit(&hg_state.forgotten,
	    memory_order_relaxed) << 2 | frames;
	uint64_t sum = (f.pc + (round << 47)) * UINT64_C(0xff51afd7ed558ccd) ^
	    f.sp * UINT64_C(0xc4ceb9fe1a85ec53);
	bool outermost;

	if (frames > 0 && hg_frame_step(&f, &outermost))
		sum ^= f.pc * UINT64_C(0xd6e8feb86659fd93);
	s = hg_site_of(t, sum);
	if (frames == 0 ? s[0].sum == sum : hg_site_is(&s[0], sum, &f))
		return s[0].callers;
	if (frames == 0 ? s[1].sum == sum : hg_site_is(&s[1], sum, &f))
		return s[1].callers;
	return hg_site_learn(t, sum, from, frames);
}

/* The backtrace behind a number; 0 has an empty one. */
void hg_callers_stack(uint32_t callers, struct hg_stack *);

/* A hash that is the same in another run. */
uint64_t hg_callers_hash(uint32_t callers);

/* What is counted of their blocks. */
extern struct hg_calls {
	_Atomic uint32_t blocks;	/* that they have allocated */
	_Atomic uint32_t due;	/* the next number to look at; 0: none */
} *hg_calls __attribute__((visibility("hidden")));

/* Whether the callers' block of this number may be one to watch
   (hg_watch_wants); and set the next number to look at.  Numbers start again
   behind the largest. */
static inline bool
hg_callers_are_due(uint32_t callers, uint32_t number)
{
	const uint32_t next = atomic_load_explicit(&hg_calls[callers].due,
	    memory_order_relaxed);

	return next != 0 && (int32_t)(number - next) >= 0;
}
void hg_callers_set_due(uint32_t callers, uint32_t number);

/* The largest number of callers, and how many blocks they have allocated. */
uint32_t hg_callers_made(void);
uint32_t hg_callers_blocks(uint32_t callers);

/* Count one more block of these callers: the new number of all of them, and of
   those of this thread. */
static inline uint32_t
hg_callers_count(uint32_t callers)
{
	_Atomic uint32_t *blocks = &hg_calls[callers].blocks;
	uint32_t n;

	if (atomic_load_explicit(&hg_state.nthreads,
	    memory_order_relaxed) > 1)
		return atomic_fetch_add_explicit(blocks, 1,
		    memory_order_relaxed) + 1;
	n = atomic_load_explicit(blocks, memory_order_relaxed) + 1;
	atomic_store_explicit(blocks, n, memory_order_relaxed);
	return n;
}

static inline uint32_t
hg_callers_count_in(struct hg_thread *t, uint32_t callers)
{
	return ++t->count[callers];
}

/* The whole backtrace from a frame on. */
void hg_callers_walk(struct hg_frame, struct hg_stack *);

#endif
