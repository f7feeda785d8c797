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

/* This process executes a program; say which.  Result: what to give to undo
   that, if it could not; NULL: nothing.  And one that this process has made has
   executed one. */
struct hg_program *hg_report_exec(const char *path);
void hg_report_spawned(pid_t, const char *path);
void hg_report_exec_failed(struct hg_program *);

/* It has executed one. */
void hg_report_hello(enum hg_hello);

#endif
