/*
 * objects: watches the objects that a function returns, until they are freed
 * (alloc:FUNCTION).
 *
 * Overview: uprobes report what the function returns and what is freed
 * (attach/objects.h).  Each slot is a separate watch of the target, on the same
 * bytes of one object at a time.  A thread of watchctl waits until an object
 * was given to a slot, moves the slot there, and only then lets the thread that
 * made the object continue, so that no access is missed.  If that takes too
 * long, there is a gap, which is reported.  When the object is freed, its slot
 * watches nothing until it gets the next object.
 *
 *	FUNCTION returns --> slot --> frees --> (pause) --> next object
 *
 * Each object is a part of the watch (session_part): only hits at its address
 * and in its lifetime belong to it.  A later access to the same bytes is made
 * by the allocator, or by the next owner of the memory, and is no hit.
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

/* Prepare for a run.  0; or -errno after a line on stderr. */
int objects_open(struct objects **, struct run *);
void objects_close(struct objects *);

/* Find the functions of a SPEC in a process.  See live_broker_resolve. */
int objects_resolve(struct objects *, const struct process *,
    const struct spec *, bool early, struct spec_place *, struct wp_cause *);

/* Turn the region of the SPEC, which is the only one, into one for each slot,
   and count them in *n.  NULL: nothing to do.  0 or -errno with a cause. */
int objects_plan(struct objects *, struct process *, struct wp_region *,
    size_t *n, struct wp_cause *);

/* Open the uprobes, which are still off; first: the first of these watches.
   NULL: nothing to do.  0 or -errno with a cause. */
int objects_open_probes(struct objects *, size_t first, struct wp_cause *);

/* objects_expect enables the uprobes, before the process is armed.
   objects_begin begins to watch objects, after that. */
void objects_expect(struct objects *);
int objects_begin(struct objects *);

/* Describe and report what happened to objects since the last call; to be
   called before a later record is passed on. */
void objects_report(struct objects *);

/* Whether a record is to be passed on: it is not if its object was freed before
   the hit. */
bool objects_take(struct objects *, const struct ex_record *);
uint64_t objects_foreign(const struct objects *);	/* number of records
							   that were not passed
							   on */

/* Stop following objects; and print the account of them.  0 or -ENOMEM. */
void objects_end(struct objects *);
int objects_account(struct objects *);

#endif
