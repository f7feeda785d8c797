/*
 * sample: which blocks are watched where the command runs once.
 *
 * The first of each callers; then, of n that they allocate, the next one about
 * as likely as 1 to n, but 1 to 16384 at least.  Where the damage of a block
 * was found that was not watched, all of the same callers are, in those bytes,
 * until the writer is seen.  A freed block is watched on at its start.
 */
#ifndef HG_SAMPLE_H
#define HG_SAMPLE_H

#include "guard/evidence.h"
#include "guard/ledger.h"

/* A block that is due is there; and one that is watched is freed and filled. */
void hg_sample_allocated(struct hg_entry *, uint64_t block);
void hg_sample_freed(struct hg_entry *, uint64_t block);

/* These callers are the watch library's. */
void hg_sample_leave_out(uint32_t callers);

/* It was found damaged. */
void hg_sample_damaged(const struct hg_finding *);

/* An end: count what has not been counted yet. */
void hg_sample_account(void);

/* In the child of a fork: what its parent allocated is its parent's. */
void hg_sample_forked(void);

#endif
