/*
 * objects: what a function of a process returns, from there on until it is
 * freed, by uprobes.
 *
 * Overview: their programs (bpf/object.h) know each object that is not ended,
 * and give the next ones to the places that are open.  Whoever has places arms
 * each, when there is a record that it has an object, and opens it anew after
 * the record that this is ended:
 *
 *	wp_objects_open -> wp_objects_turn_on -> wp_objects_next
 *	    -> NEW: wp_objects_go_on ... ENDED: wp_objects_reuse
 *
 * One thread takes records.
 */
#ifndef WP_OBJECTS_H
#define WP_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/object.h"
#include "os/cause.h"

struct wp_objects;

/* The function that returns objects, and n that end what their first argument
   is, by their addresses; only: the object of this number alone, 0: all; so
   many places.  Nothing is seen yet.  0 or -errno with a cause. */
int wp_objects_open(struct wp_objects **, pid_t, uint64_t function,
    const uint64_t *ends, size_t n, uint64_t only, unsigned places,
    struct wp_cause *);
void wp_objects_close(struct wp_objects *);

/* From now on; and no longer. */
void wp_objects_turn(struct wp_objects *, bool on);

/* What to poll for POLLIN; and the next record, which holds until the next
   call.  NULL: there is none. */
int wp_objects_fd(const struct wp_objects *);
const struct wp_object_record *wp_objects_next(struct wp_objects *);

/* A place is armed, and the thread that made its object goes on.  False: it did
   not wait so long. */
bool wp_objects_go_on(struct wp_objects *, unsigned place);

/* Its object is ended: it may have the next one. */
void wp_objects_reuse(struct wp_objects *, unsigned place);

/* When the object of this number at a place was ended, ns; 0: it has not been,
   or the place has another one by now. */
uint64_t wp_objects_ended(const struct wp_objects *, unsigned place,
    uint64_t number);

/* What there was. */
struct wp_objects_sum {
	uint64_t seen;		/* so many */
	uint64_t lives;		/* ns, of all that count, up to now */
	uint64_t missed;	/* so many were ended by something else, or
				   were not noted for want of memory: then
				   lives is not known */
};
void wp_objects_sum(const struct wp_objects *, struct wp_objects_sum *);

/* The thread that the uprobes were opened on has ended: nothing is seen any
   more. */
bool wp_objects_are_blind(const struct wp_objects *);

#endif
