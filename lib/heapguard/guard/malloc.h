/* malloc: the functions that allocate, in place of the allocator's own. */
#ifndef HG_MALLOC_H
#define HG_MALLOC_H

#include <stdlib.h>

#include "guard/callers.h"
#include "guard/evidence.h"

/* Allocate for this caller; align 0: as usual.  NULL: there is no memory. */
void *hg_alloc(size_t size, size_t align, enum hg_family,
    const struct hg_frame *);

/* Free what is no null pointer. */
void hg_free(void *, enum hg_family, const struct hg_frame *);

/* Whether new and delete are the C++ library's, and so may be ours. */
bool hg_cxx_is_ours(void);

/* What realloc(3) does beyond that. */
void *hg_realloc(void *, size_t, const struct hg_frame *);
void *hg_zeroed(size_t size, const struct hg_frame *);
size_t hg_size(void *);

#endif
