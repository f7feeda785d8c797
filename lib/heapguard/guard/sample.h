/*
 * sample: chooses the blocks to be watched where the command runs only once.
 *
 * The first block of each callers is watched; of n blocks that they have
 * allocated the next one is with a probability of about 1 in n, but at least 1
 * in 16384.  When a block that was not watched is found damaged, all blocks of
 * the same callers are watched in those bytes, until the writer is seen.  A
 * freed block remains watched at its start.
 */
#ifndef HG_SAMPLE_H
#define HG_SAMPLE_H

#include "guard/evidence.h"
#include "guard/ledger.h"

/* Call these when a block that is due was allocated, and when a watched one was
   freed and filled. */
void hg_sample_allocated(struct hg_entry *, uint64_t block);
void hg_sample_freed(struct hg_entry *, uint64_t block);

/* Never watch blocks of these callers, which are libwatchpoint's own. */
void hg_sample_leave_out(uint32_t callers);

/* A block was found damaged. */
void hg_sample_damaged(const struct hg_finding *);

/* At the end of a program, count what has not been counted yet. */
void hg_sample_account(void);

/* Call this in a forked child: blocks that the parent allocated count as the
   parent's. */
void hg_sample_forked(void);

#endif
