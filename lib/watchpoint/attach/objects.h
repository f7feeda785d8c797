/*
 * objects: the objects that a function of a process returns, until they are
 * freed, by uprobes.
 *
 * Overview: their programs (bpf/object.h) know each object that is not ended,
 * and give the next ones to the places that are open.  Whoever has places arms
 * each, when there is a record that it has an object, and opens it anew after
 * the record that this is ended, or that its memory is handed out again:
 *
 *	wp_objects_open -> wp_objects_turn -> wp_objects_next
 *	    -> NEW: wp_objects_go_on ... ENDED, REUSED: wp_objects_reuse
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

enum { WP_OBJECT_ENDS = 48, WP_OBJECT_CALLS = 32 };

/* Which. */
struct wp_objects_what {
	uint64_t function;	/* its address: it returns them */
	struct {
		uint64_t addr;	/* it ends what one of its first so many
				   arguments is */
		unsigned arguments;
	} end[WP_OBJECT_ENDS];
	size_t nends;
	struct {
		uint64_t addr;	/* it hands out memory */
		enum wp_object_call which;
	} call[WP_OBJECT_CALLS];
	size_t ncalls;		/* of those that resize; or, stays: all */
	bool stays;		/* places keep what is ended */
	uint64_t only;		/* the object of this number alone; 0: all */
	unsigned places;
	uint64_t part, len;	/* the bytes of each that are watched */
	struct perf_event_attr attr;	/* of samples */
};

/* Nothing is seen yet.  0 or -errno with a cause. */
int wp_objects_open(struct wp_objects **, pid_t,
    const struct wp_objects_what *, struct wp_cause *);
void wp_objects_close(struct wp_objects *);

/* From now on; and no longer. */
void wp_objects_turn(struct wp_objects *, bool on);

/* What to poll for POLLIN; and the next record, a struct wp_object_record or a
   sample, which holds until the next call.  NULL: there is none. */
int wp_objects_fd(const struct wp_objects *);
const struct perf_event_header *wp_objects_next(struct wp_objects *);

/* A place is armed, and the thread that made its object goes on.  False: it did
   not wait so long. */
bool wp_objects_go_on(struct wp_objects *, unsigned place);

/* Its object is ended, and was kept until then: it may have the next one. */
void wp_objects_reuse(struct wp_objects *, unsigned place, bool kept);

/* When the object of this number at a place was ended, and its memory handed
   out again, ns; 0: it has not been, or the place has another one by now. */
uint64_t wp_objects_ended(const struct wp_objects *, unsigned place,
    uint64_t number);
uint64_t wp_objects_reused(const struct wp_objects *, unsigned place,
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
