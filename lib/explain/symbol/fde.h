/* fde: finds the extent of functions by unwind entries: by the table of them
   that the linker sorts for the run-time unwinder (.eh_frame_hdr), or where
   there is none, as in static programs, by .eh_frame itself. */
#ifndef EX_FDE_H
#define EX_FDE_H

#include "module/module.h"

/* The entry that contains vaddr: its start, and an upper bound of its end,
   which is the start of the next one, or the last one's own end.  False: there
   is none. */
bool ex_fde_find(struct ex_module *, uint64_t vaddr, uint64_t *start,
    uint64_t *end);

/* Call fn with the start of each entry. */
void ex_fde_each(struct ex_module *, void (*fn)(void *arg, uint64_t start),
    void *arg);

#endif
