/*
 * known: the watches that a session's report knows of.  A program opens and
 * closes watches as it likes; the report learns of one when it is first hit, and
 * one that is opened anew, with the same name and place, is the same; so is that
 * of a child.
 */
#ifndef KNOWN_H
#define KNOWN_H

#include "handler/channel.h"
#include "report/session.h"

/* All zero: none. */
struct known {
	void *tree;		/* by label, region and access */
	struct known_watch *first;	/* of all that are in it */
};

/* Make a watch known, as a process has it, and how the report is to call it.  0 or
   -ENOMEM. */
int known_add(struct known *, struct session *, pid_t,
    const struct wp_cell_watch *, const char *spec, const char *symbol);

/* The index of the session's slot for a hit of this watch, by one of its own slots
   or (slot < 0) any; the watch becomes known if it is not.  -ENOMEM. */
int known_slot(struct known *, struct session *, pid_t,
    const struct wp_cell_watch *, int slot);

/* Something was mapped there. */
void known_mapped(struct known *, uint64_t start, uint64_t end, bool shared);

/* Whether others may have a known watch's bytes mapped, too. */
bool known_is_shared(struct known *, const struct wp_cell_watch *);

void known_free(struct known *);

#endif
