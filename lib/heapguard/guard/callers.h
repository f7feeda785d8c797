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

/* The frame of the caller of the function that uses this macro, as it will
   continue. */
#define HG_CALLER ((struct hg_frame){					\
	(uintptr_t)__builtin_return_address(0),				\
	(uintptr_t)__builtin_frame_address(0) + 16,			\
	*(uint64_t *)__builtin_frame_address(0)})

/* Allocate the tables.  0 or -ENOMEM. */
int hg_callers_begin(void);

/* The number of the callers of a thread's frame, of which `frames' more, at
   most 2, belong to the key; 0: there is no room. */
uint32_t hg_callers_of(struct hg_thread *, const struct hg_frame *,
    unsigned frames);

/* The backtrace behind a number; 0 has an empty one. */
void hg_callers_stack(uint32_t callers, struct hg_stack *);

/* A hash that is the same in another run. */
uint64_t hg_callers_hash(uint32_t callers);

/* Whether the callers' block of this number may be one to watch
   (hg_watch_wants); and set the next number to look at. */
bool hg_callers_are_due(uint32_t callers, uint32_t number);
void hg_callers_set_due(uint32_t callers, uint32_t number);

/* The largest number of callers, and how many blocks they have allocated. */
uint32_t hg_callers_made(void);
uint32_t hg_callers_blocks(uint32_t callers);

/* Count one more block of these callers: the new number of all of them, and of
   those of this thread. */
uint32_t hg_callers_count(uint32_t callers);
uint32_t hg_callers_count_in(struct hg_thread *, uint32_t callers);

/* The whole backtrace from a frame on. */
void hg_callers_walk(const struct hg_frame *, struct hg_stack *);

#endif
