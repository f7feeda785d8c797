/*
 * objects: slots on the objects that a function returned, until these are freed
 * (alloc:FUNCTION).
 *
 * Overview: uprobes see what the function returns and what is freed
 * (attach/objects.h).  Each slot is a watch of the target of its own, on the
 * same bytes of one object at a time.  A thread sleeps until an object has been
 * given to a slot, moves that there, and only then lets go on whoever made the
 * object, so that nothing is missed; if that takes too long, there is a gap,
 * which is reported.  When the object is freed its slot is on nowhere, until it
 * is given the next one.
 *
 *	FUNCTION returns --> slot --> frees --> (pause) --> next object
 *
 * Each object is a part of the watch (session_part): its own hits have its
 * address, and are of a time at which it was there.  What hits the same bytes
 * later is the allocator, or whoever has the memory then, and no hit.
 */
#ifndef OBJECTS_H
#define OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/cause.h"
#include "os/slot.h"

struct ex_record;
struct live_broker;
struct objects;
struct process;
struct run;
struct spec;
struct spec_place;

/* Be ready.  0; or -errno after a line on stderr. */
int objects_open(struct objects **, struct run *);
void objects_close(struct objects *);

/* Find the functions of a SPEC in a process.  As live_broker_resolve. */
int objects_resolve(struct objects *, const struct process *,
    const struct spec *, bool early, struct spec_place *, struct wp_cause *);

/* The region of the SPEC, which is the only one: have as many as there are
   slots, counted by *n.  NULL has none.  0 or -errno with a cause. */
int objects_plan(struct objects *, struct process *, struct wp_region *,
    size_t *n, struct wp_cause *);

/* Begin to look for objects, which are not seen yet; first: the first of these
   watches.  NULL has none.  0 or -errno with a cause. */
int objects_open_probes(struct objects *, size_t first, struct wp_cause *);

/* The process is about to be armed: objects are seen from now on; and it is:
   they are watched. */
void objects_expect(struct objects *);
int objects_begin(struct objects *);

/* Describe and report what there is; before a record is passed on that was
   taken since. */
void objects_report(struct objects *);

/* Whether a record is to be passed on: it is no hit of an object that has
   ended. */
bool objects_take(struct objects *, const struct ex_record *);
uint64_t objects_foreign(const struct objects *);	/* that are not */

/* No more objects; and the account of them.  0 or -ENOMEM. */
void objects_end(struct objects *);
int objects_account(struct objects *);

#endif
