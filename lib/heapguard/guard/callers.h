/*
 * callers: where blocks are allocated and freed, each distinct backtrace kept
 * once and named by a number.
 *
 * What is looked up each time is a key of few words (the stack pointer, and the
 * innermost return addresses); the whole backtrace is walked when a key is
 * seen for the first time.
 */
#ifndef HG_CALLERS_H
#define HG_CALLERS_H

#include "guard/cfi.h"
#include "guard/evidence.h"
#include "guard/state.h"

/* Of the function that calls this: its caller, as it goes on. */
#define HG_CALLER ((struct hg_frame){					\
	(uintptr_t)__builtin_return_address(0),				\
	(uintptr_t)__builtin_frame_address(0) + 16,			\
	*(uint64_t *)__builtin_frame_address(0)})

/* Have room for them.  0 or -ENOMEM. */
int hg_callers_begin(void);

/* The number of a thread's callers, by so many more frames, at most 2; 0: there
   is no room. */
uint32_t hg_callers_of(struct hg_thread *, const struct hg_frame *,
    unsigned frames);

/* The backtrace behind a number; with 0: an empty one. */
void hg_callers_stack(uint32_t callers, struct hg_stack *);

/* A hash that is the same in another run. */
uint64_t hg_callers_hash(uint32_t callers);

/* Whether their block of this number may be to be watched (hg_watch_wants); and
   which is to be looked at next. */
bool hg_callers_are_due(uint32_t callers, uint32_t number);
void hg_callers_set_due(uint32_t callers, uint32_t number);

/* The largest number of callers, and how many blocks they have allocated. */
uint32_t hg_callers_made(void);
uint32_t hg_callers_blocks(uint32_t callers);

/* One block more of these callers: how many there are, and how many of this
   thread. */
uint32_t hg_callers_count(uint32_t callers);
uint32_t hg_callers_count_in(struct hg_thread *, uint32_t callers);

/* The whole backtrace from a frame on. */
void hg_callers_walk(const struct hg_frame *, struct hg_stack *);

#endif
