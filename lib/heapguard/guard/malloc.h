/* malloc: the functions that allocate, in place of the allocator's own. */
#ifndef HG_MALLOC_H
#define HG_MALLOC_H

#include <stdlib.h>

#include "guard/callers.h"
#include "guard/evidence.h"
#include "guard/state.h"

/* Allocate for this caller; align 0: the usual alignment.  NULL: there is no
   memory. */
void *hg_alloc(size_t size, size_t align, enum hg_family,
    const struct hg_record *);

/* Free a block; the pointer is not null. */
void hg_free(void *, enum hg_family, const struct hg_record *);

/* What is done with new and delete. */
enum hg_cxx hg_cxx_look(void);

/* As realloc(3), calloc(3) and malloc_usable_size(3). */
void *hg_realloc(void *, size_t, const struct hg_record *);
void *hg_zeroed(size_t size, const struct hg_record *);
size_t hg_size(void *);

/* Whether what is not in the ledger is the allocator's. */
bool hg_is_unguarded(uint64_t block);

#endif
