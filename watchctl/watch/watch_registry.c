/* watch_registry: the watches known to a session's report. */
#include "watch/watch_registry.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "os/proc.h"

/* One; in the session it has a slot for the whole region, then those that the
   processor takes it by. */
struct watch_registry_watch {
	struct wp_cell_watch what;
	size_t slot;		/* index of the first */
	size_t nslots;
	bool shared;		/* mapped so, at some time */
	struct watch_registry_watch *next;
};

static int
compare(const void *a, const void *b)
{
	const struct wp_cell_watch *x =
	    &((const struct watch_registry_watch *)a)->what;
	const struct wp_cell_watch *y =
	    &((const struct watch_registry_watch *)b)->what;
	int order = ex_compare(x->addr, y->addr);

	if (order == 0)
		order = ex_compare(x->len, y->len);
	if (order == 0)
		order = ex_compare(x->access, y->access);
	return order != 0 ? order : strcmp(x->label, y->label);
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
    const struct wp_cell_watch *what, const char *spec, const char *symbol)
{
	struct watch_registry_watch *w = malloc(sizeof(*w));
	int err;

	if (w == NULL)
		return NULL;
	*w = (struct watch_registry_watch){
		.what = *what, .slot = s->nslots,
		.shared = wp_proc_shares(pid, what->addr, what->len),
	};
	err = session_add_watch(s, spec, symbol, what->addr, what->len,
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
    pid_t pid, const struct wp_cell_watch *what, const char *spec,
    const char *symbol)
{
	const struct watch_registry_watch key = {.what = *what};

	if (tfind(&key, &registry->tree, compare) != NULL)
		return 0;
	return add(registry, s, pid, what, spec, symbol) == NULL ? -ENOMEM : 0;
}

/* The name of what lies at a place that is given by its address; malloc'd,
   NULL: it has none. */
static char *
symbol_of(const struct session *s, pid_t pid, const struct wp_cell_watch *what)
{
	struct ex_process *process = ex_space_process(s->space, pid);
	struct spec_place place = {.symbol = NULL};
	char label[WP_LABEL_MAX];
	const struct spec spec = {
		.addr = what->addr, .len = what->len,
		.access = (enum wp_access)what->access, .text = label,
	};

	memcpy(label, what->label, sizeof(label));
	if (strncmp(label, "0x", 2) != 0 || process == NULL ||
	    spec_resolve(&spec, process, &place, NULL) < 0)
		return NULL;
	return place.symbol;
}

int
watch_registry_slot(struct watch_registry *registry, struct session *s,
    pid_t pid, const struct wp_cell_watch *what, int slot)
{
	const struct watch_registry_watch key = {.what = *what};
	struct watch_registry_watch **found = tfind(&key, &registry->tree,
	    compare), *w;
	char *symbol = NULL;

	if (found == NULL) {
		symbol = symbol_of(s, pid, what);
		w = add(registry, s, pid, what, what->label, symbol);
		free(symbol);
		if (w == NULL)
			return -ENOMEM;
	} else {
		w = *found;
	}
	return (int)w->slot + (slot >= 0 && (size_t)slot + 1 < w->nslots ?
	    slot + 1 : 0);
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
    const struct wp_cell_watch *what)
{
	const struct watch_registry_watch key = {.what = *what};
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
