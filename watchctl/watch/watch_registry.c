/* watch_registry: the watches known to a session's report. */
#include "watch/watch_registry.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "proc/proc.h"

/* A watch.  In the session it has one slot for the whole region, followed by
   one for each debug register. */
struct watch_registry_watch {
	struct wp_cell_watch what;
	unsigned nth;		/* of those that are like it */
	size_t slot;		/* index of the first slot */
	size_t nslots;
	bool shared;		/* the region was mapped shared at some time */
	struct watch_registry_watch *next;
};

static int
compare_names(const struct wp_cell_watch *x, const struct wp_cell_watch *y)
{
	int order = ex_compare(x->addr, y->addr);

	if (order == 0)
		order = ex_compare(x->len, y->len);
	if (order == 0)
		order = ex_compare(x->access, y->access);
	return order != 0 ? order : strncmp(x->label, y->label,
	    sizeof(x->label));
}

bool
watch_registry_is_like(const struct wp_cell_watch *a,
    const struct wp_cell_watch *b)
{
	return compare_names(a, b) == 0;
}

static int
compare(const void *a, const void *b)
{
	const struct watch_registry_watch *x = a, *y = b;
	const int order = compare_names(&x->what, &y->what);

	return order != 0 ? order : ex_compare(x->nth, y->nth);
}

static int
add_slots(struct watch_registry_watch *w, struct session *s, int watch)
{
	const struct wp_region region = {
		.addr = w->what.addr, .len = w->what.len,
		.access = (enum wp_access)w->what.access,
	};
	struct wp_slot slot[WP_SLOTS_MAX];
	int n = wp_slot_plan(&region, &wp_slot_usual, slot, NULL);
	int err = session_add_slot(s, watch, region.addr, region.len);

	for (int i = 0; i < n && err == 0; i++)
		err = session_add_slot(s, watch, slot[i].addr,
		    wp_slot_bytes(slot[i].type, slot[i].len));
	return err;
}

static struct watch_registry_watch *
add(struct watch_registry *registry, struct session *s, pid_t pid,
    const struct watch_registry_watch *key, const char *spec,
    const char *symbol, bool find_symbol)
{
	struct watch_registry_watch *w = malloc(sizeof(*w));
	const struct wp_cell_watch *what = &key->what;
	int err;

	if (w == NULL)
		return NULL;
	*w = (struct watch_registry_watch){
		.what = *what, .nth = key->nth, .slot = s->nslots,
		.shared = wp_proc_shares(pid, what->addr, what->len),
	};
	err = find_symbol ? session_add_place(s, pid, spec, what->addr,
	    what->len, (enum wp_access)what->access, what->nslots) :
	    session_add_watch(s, spec, symbol, what->addr, what->len,
	    (enum wp_access)what->access, what->nslots);
	if (err == 0)
		err = add_slots(w, s, (int)s->nwatches - 1);
	w->nslots = s->nslots - w->slot;
	if (err < 0 || tsearch(w, &registry->tree, compare) == NULL) {
		free(w);
		return NULL;
	}
	w->next = registry->first;
	registry->first = w;
	return w;
}

int
watch_registry_add(struct watch_registry *registry, struct session *s,
    pid_t pid, const struct wp_cell_watch *what, unsigned nth,
    const char *spec, const char *symbol)
{
	const struct watch_registry_watch key = {.what = *what, .nth = nth};

	if (tfind(&key, &registry->tree, compare) != NULL)
		return 0;
	return add(registry, s, pid, &key, spec, symbol, false) == NULL ?
	    -ENOMEM : 0;
}

int
watch_registry_slots(struct watch_registry *registry, struct session *s,
    pid_t pid, const struct wp_cell_watch *what, unsigned nth, unsigned *n)
{
	const struct watch_registry_watch key = {.what = *what, .nth = nth};
	struct watch_registry_watch **found = tfind(&key, &registry->tree,
	    compare), *w;

	*n = 0;
	w = found != NULL ? *found : add(registry, s, pid, &key, what->label,
	    NULL, strncmp(what->label, "0x", 2) == 0);
	if (w == NULL)
		return -ENOMEM;
	*n = (unsigned)w->nslots;
	return (int)w->slot;
}

void
watch_registry_mapped(struct watch_registry *registry, uint64_t start,
    uint64_t end, bool shared)
{
	for (struct watch_registry_watch *w = registry->first; w != NULL;
	    w = w->next)
		if (w->what.addr < end && start < w->what.addr + w->what.len)
			w->shared = w->shared || shared;
}

bool
watch_registry_is_shared(struct watch_registry *registry,
    const struct wp_cell_watch *what, unsigned nth)
{
	const struct watch_registry_watch key = {.what = *what, .nth = nth};
	struct watch_registry_watch **found = tfind(&key, &registry->tree,
	    compare);

	return found == NULL || (*found)->shared;
}

void
watch_registry_free(struct watch_registry *registry)
{
	tdestroy(registry->tree, free);
	registry->first = NULL;
	registry->tree = NULL;
}
