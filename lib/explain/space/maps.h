/*
 * maps: records which modules are mapped where in one address space.
 *
 * Only executable mappings of files are kept.  Such a mapping shows where its
 * module was loaded (its base), and so where all segments of the module are:
 * data is found by these, because mappings of data are usually not recorded.
 *
 * Life-cycle: counted references.  A forked child shares its parent's table
 * until one of the two changes; ex_maps_own makes a table its holder's alone.
 */
#ifndef EX_MAPS_H
#define EX_MAPS_H

#include "module/module_private.h"
#include "module/range.h"

/* An executable mapping of a module. */
struct ex_mapping {
	uint64_t start, end;	/* the remaining part */
	uint64_t first;		/* its start when it was mapped, */
	uint64_t pgoff;		/* and that start's offset in the file */
	struct ex_module *module;
	bool writable;		/* the program can write its code, */
	bool doubtful;		/* or may have written it since it was mapped */
	bool unseen;		/* unknown how it was mapped */
	bool placed;		/* base is known: what to add to a vaddr */
	uint64_t base;
};

/* A module at its place. */
struct ex_image {
	struct ex_module *module;
	uint64_t base;		/* what to add to a vaddr */
};

struct ex_maps {
	unsigned refs;
	struct ex_mapping *at;	/* sorted, not overlapping */
	size_t n, cap;
	struct ex_module *executable;	/* mapped first; NULL: none yet */

	bool placed;		/* the following is derived from at */
	struct ex_image *image;	/* each module and base once, by address */
	size_t nimages;
	struct ex_ranges segments;	/* theirs; what: index in image */
};

/* Drop a reference, and free the table with the last one.  NULL is fine. */
void ex_maps_release(struct ex_maps *);

/* Make *maps (NULL: an empty one) an unshared table, which can be changed.
   False: out of memory, and *maps is unchanged. */
bool ex_maps_own(struct ex_maps **);

/* Change an unshared table: remove start..end from all mappings; and, if its
   module is not NULL, add this mapping. */
bool ex_maps_set(struct ex_maps *, const struct ex_mapping *);

/* Where the last two look-ups led: of hits, one of code and one of data. */
struct ex_maps_hint {
	size_t last, other;
};

/* The first mapping that ends above addr; at + n: none. *hint, kept by the
   caller, makes look-ups of neighbours cheap. */
const struct ex_mapping *ex_maps_above(const struct ex_maps *, uint64_t addr,
    struct ex_maps_hint *hint);

/* The module at an address; false: not known. */
bool ex_maps_find(struct ex_maps *, uint64_t addr, struct ex_maps_hint *,
    struct ex_image *out);

/* All images, by address. */
size_t ex_maps_images(struct ex_maps *, const struct ex_image **);

#endif
