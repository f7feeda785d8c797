/*
 * watch_registry: the watches known to a session's report.  A program opens and
 * closes watches as it likes, and the report learns of one when it is first
 * hit.  A watch that is opened again with the same name and place is the same
 * one, and so is that of a child.
 */
#ifndef WATCH_REGISTRY_H
#define WATCH_REGISTRY_H

#include "handler/channel.h"
#include "session/session.h"

/* All zero: none. */
struct watch_registry {
	void *tree;		/* by label, region and access */
	struct watch_registry_watch *first;	/* of all that are in it */
};

/* Make a watch known, as a process has it, and how the report is to call it.  0
   or -ENOMEM. */
int watch_registry_add(struct watch_registry *, struct session *, pid_t,
    const struct wp_cell_watch *, const char *spec, const char *symbol);

/* The index of the session's slot for the region of this watch, and with it how
   many there are, its own behind it; the watch becomes known if it is not.
   -ENOMEM. */
int watch_registry_slots(struct watch_registry *, struct session *, pid_t,
    const struct wp_cell_watch *, unsigned *n);

/* Something was mapped there. */
void watch_registry_mapped(struct watch_registry *, uint64_t start,
    uint64_t end, bool shared);

/* Whether others may have a known watch's bytes mapped, too. */
bool watch_registry_is_shared(struct watch_registry *,
    const struct wp_cell_watch *);

void watch_registry_free(struct watch_registry *);

#endif
