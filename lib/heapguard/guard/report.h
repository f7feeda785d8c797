/* report: findings, from this process into the evidence. */
#ifndef HG_REPORT_H
#define HG_REPORT_H

#include "guard/block.h"
#include "guard/cfi.h"

/* Look at a block; what is damaged is told once.  from: where it was noticed;
   NULL: at an end, where there are no callers to show. */
void hg_report_block(struct hg_entry *, uint64_t block, enum hg_when,
    const struct hg_frame *from);

/* A free that is wrong; entry NULL: of what is no block. */
void hg_report_free(enum hg_kind, struct hg_entry *, uint64_t block,
    enum hg_family, const struct hg_frame *from);

/* Look at all blocks.  Where another thread is in the middle of giving one back
   and does not go on, that is not possible, and noted. */
void hg_report_sweep(enum hg_when);

/* In the child of a fork. */
void hg_report_forked(void);

#endif
