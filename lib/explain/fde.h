/* fde: where functions begin, by the table of unwind entries that the linker
   sorts for the run-time unwinder (.eh_frame_hdr). */
#ifndef EX_FDE_H
#define EX_FDE_H

#include "module.h"

/* The start of the entry that holds vaddr; false: there is none. */
bool ex_fde_start(struct ex_module *, uint64_t vaddr, uint64_t *start);

#endif
