/* maps: which modules are mapped where in one address space. */
#include "space/maps.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define PAGE ((uint64_t)4096)	/* segments are rounded to this */

static void
maps_forget_places(struct ex_maps *maps)
{
	free(maps->image);
	maps->image = NULL;
	maps->nimages = 0;
	ex_ranges_free(&maps->segments);
	maps->placed = false;
}

void
ex_maps_release(struct ex_maps *maps)
{
	if (maps == NULL || --maps->refs > 0)
		return;
	maps_forget_places(maps);
	free(maps->at);
	free(maps);
}

bool
ex_maps_own(struct ex_maps **owned)
{
	struct ex_maps *old = *owned, *maps;

	if (old != NULL && old->refs == 1)
		return true;
	if ((maps = calloc(1, sizeof(*maps))) == NULL)
		return false;
	maps->refs = 1;
	if (old != NULL && old->n > 0) {
		if ((maps->at = calloc(old->n, sizeof(*maps->at))) == NULL) {
			free(maps);
			return false;
		}
		memcpy(maps->at, old->at, old->n * sizeof(*maps->at));
		maps->n = maps->cap = old->n;
		maps->executable = old->executable;
	}
	ex_maps_release(old);
	*owned = maps;
	return true;
}

static size_t
maps_above(const struct ex_maps *maps, uint64_t addr)
{
	return EX_ARRAY_UPTO(maps->at, maps->n, end, addr);
}

/* Whether mapping i is the first that ends above addr. */
static bool
is_above(const struct ex_maps *maps, size_t i, uint64_t addr)
{
	return i < maps->n && addr < maps->at[i].end &&
	    (addr >= maps->at[i].start || i == 0 ||
	    addr >= maps->at[i - 1].end);
}

const struct ex_mapping *
ex_maps_above(const struct ex_maps *maps, uint64_t addr,
    struct ex_maps_hint *hint)
{
	if (!is_above(maps, hint->last, addr)) {
		const size_t i = is_above(maps, hint->other, addr) ?
		    hint->other : maps_above(maps, addr);

		*hint = (struct ex_maps_hint){i, hint->last};
	}
	return maps->at + hint->last;
}

static void
maps_insert(struct ex_maps *maps, size_t i, struct ex_mapping mapping)
{
	memmove(&maps->at[i + 1], &maps->at[i],
	    (maps->n - i) * sizeof(*maps->at));
	maps->at[i] = mapping;
	maps->n++;
}

/* Remove start..end.  Returns the index of the gap.  There must be room for one
   more mapping, in case one is split. */
static size_t
maps_cut(struct ex_maps *maps, uint64_t start, uint64_t end)
{
	size_t i = maps_above(maps, start), gone = 0;

	if (i < maps->n && maps->at[i].start < start) {
		struct ex_mapping left = maps->at[i];

		left.end = start;
		maps->at[i].start = start;
		maps_insert(maps, i++, left);
	}
	while (i + gone < maps->n && maps->at[i + gone].end <= end)
		gone++;
	memmove(&maps->at[i], &maps->at[i + gone],
	    (maps->n - i - gone) * sizeof(*maps->at));
	maps->n -= gone;
	if (i < maps->n && maps->at[i].start < end)
		maps->at[i].start = end;
	return i;
}

bool
ex_maps_set(struct ex_maps *maps, const struct ex_mapping *mapping)
{
	size_t i;

	/* one may be split in two, and the new one is added */
	if (!ex_array_room(&maps->at, maps->n, 2, &maps->cap,
	    sizeof(*maps->at), SIZE_MAX))
		return false;
	maps_forget_places(maps);
	i = maps_cut(maps, mapping->start, mapping->end);
	if (mapping->module == NULL)
		return true;
	maps_insert(maps, i, *mapping);
	if (maps->executable == NULL)
		maps->executable = mapping->module;
	return true;
}

/* The module of a mapping, and its base. */
static struct ex_image
mapping_image(struct ex_mapping *mapping)
{
	/* if the file cannot be read, at least offsets can be shown */
	if (!mapping->placed && !ex_module_base(mapping->module,
	    mapping->first, mapping->pgoff, &mapping->base))
		mapping->base = mapping->first - mapping->pgoff;
	mapping->placed = true;
	return (struct ex_image){mapping->module, mapping->base};
}

static uint64_t
page_up(uint64_t addr)
{
	return (addr + PAGE - 1) & ~(PAGE - 1);
}

/* Add the segments of an image.  The file contents of an executable one are a
   mapping that is or was known. */
static bool
maps_place_segments(struct ex_maps *maps, size_t which)
{
	const struct ex_image *image = &maps->image[which];

	for (unsigned i = 0; i < image->module->nsegments; i++) {
		const struct ex_segment *s = &image->module->segment[i];
		uint64_t start = image->base + s->vaddr;
		uint64_t end = page_up(start + s->memsz);

		if ((s->flags & PF_X) != 0)
			start = page_up(start + s->filesz);
		if (!ex_ranges_add(&maps->segments, start & ~(PAGE - 1), end,
		    which))
			return false;
	}
	return true;
}

/* The index of an image, or nimages if it is new.  Mappings of one module are
   almost always neighbours, so search from the end. */
static size_t
maps_image(const struct ex_maps *maps, struct ex_image image)
{
	for (size_t i = maps->nimages; i-- > 0; ) {
		if (maps->image[i].module == image.module &&
		    maps->image[i].base == image.base)
			return i;
	}
	return maps->nimages;
}

/* Determine where each module is loaded.  If there is no memory, fewer are
   known. */
static void
maps_place(struct ex_maps *maps)
{
	if (maps->placed)
		return;
	maps->placed = true;
	maps->image = calloc(maps->n + 1, sizeof(*maps->image));
	if (maps->image == NULL)
		return;
	for (size_t i = 0; i < maps->n; i++) {
		struct ex_image image = mapping_image(&maps->at[i]);
		size_t k = maps_image(maps, image);

		if (k < maps->nimages)
			continue;
		maps->image[maps->nimages++] = image;
		if (!maps_place_segments(maps, k))
			break;
	}
	ex_ranges_sort(&maps->segments);
}

bool
ex_maps_find(struct ex_maps *maps, uint64_t addr, struct ex_maps_hint *hint,
    struct ex_image *out)
{
	const struct ex_mapping *at = ex_maps_above(maps, addr, hint);
	const struct ex_range *segment;

	if (at < maps->at + maps->n && at->start <= addr) {
		*out = mapping_image(&maps->at[at - maps->at]);
		return true;
	}
	maps_place(maps);
	if ((segment = ex_ranges_find(&maps->segments, addr)) == NULL)
		return false;
	*out = maps->image[segment->what];
	return true;
}

size_t
ex_maps_images(struct ex_maps *maps, const struct ex_image **images)
{
	maps_place(maps);
	*images = maps->image;
	return maps->nimages;
}
