/* report: puts the findings of this process into the evidence. */
#ifndef HG_REPORT_H
#define HG_REPORT_H

#include "guard/block.h"
#include "guard/cfi.h"

/* Check a block, and report damage once. from: where it was noticed; NULL: at
   the end of a program, where no backtrace is of use. */
void hg_report_block(struct hg_entry *, uint64_t block, enum hg_when,
    const struct hg_record *from);

/* Report a wrong free; entry NULL: the address is no block. */
void hg_report_free(enum hg_kind, struct hg_entry *, uint64_t block,
    enum hg_family, const struct hg_record *from);

/* Check all blocks.  If another thread is giving one back and does not finish,
   that is impossible, and recorded as such. */
void hg_report_sweep(enum hg_when);

/* Call this in a forked child. */
void hg_report_forked(void);

#endif
