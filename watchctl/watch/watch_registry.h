/*
 * watch_registry: the watches known to a session's report.  A program opens and
 * closes watches as it likes, and the report learns of one when it is first
 * hit.  A watch that is opened again with the same name and place counts as the
 * same, and so does that of a child.  Several that are open at once do not: nth
 * is the number of those before this one, from 0.
 */
#ifndef WATCH_REGISTRY_H
#define WATCH_REGISTRY_H

#include "handler/channel.h"
#include "session/session.h"

/* All zero: no watches. */
struct watch_registry {
	void *tree;		/* by label, region, access and nth */
	struct watch_registry_watch *first;	/* list of all */
};

/* Register a process's watch, with its names in the report.  0 or -ENOMEM. */
int watch_registry_add(struct watch_registry *, struct session *, pid_t,
    const struct wp_cell_watch *, unsigned nth, const char *spec,
    const char *symbol);

/* The index of the session's slot for the region of this watch, which is
   registered if necessary; its processor slots follow, and *n counts all of
   them.  Or -ENOMEM. */
int watch_registry_slots(struct watch_registry *, struct session *, pid_t,
    const struct wp_cell_watch *, unsigned nth, unsigned *n);

/* Whether a name for both would not tell these watches apart. */
bool watch_registry_is_like(const struct wp_cell_watch *,
    const struct wp_cell_watch *);

/* Process a new mapping. */
void watch_registry_mapped(struct watch_registry *, uint64_t start,
    uint64_t end, bool shared);

/* Whether other processes may have the bytes of a registered watch mapped,
   too. */
bool watch_registry_is_shared(struct watch_registry *,
    const struct wp_cell_watch *, unsigned nth);

void watch_registry_free(struct watch_registry *);

#endif
