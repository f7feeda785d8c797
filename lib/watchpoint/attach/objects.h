/*
 * objects: follows the objects that a function of a process returns, until they
 * are freed, by uprobes.
 *
 * Overview: BPF programs (bpf/object.h) track all objects that are not freed,
 * and give new ones to the places that are free.  The caller arms a place when
 * it reads the record that an object took it.  It frees the place after the
 * record that the object was freed, or that its memory was allocated again:
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

/* Which objects to follow. */
struct wp_objects_what {
	uint64_t function;	/* the address of the function that returns
				   them */
	struct {
		uint64_t addr;	/* a function that frees what one of its first
				   arguments points to; their number is: */
		unsigned arguments;
	} end[WP_OBJECT_ENDS];
	size_t nends;
	struct {
		uint64_t addr;	/* a function of the allocator */
		enum wp_object_call which;
	} call[WP_OBJECT_CALLS];
	size_t ncalls;		/* only functions that resize memory; with
				   stays, all */
	bool stays;		/* a place keeps a freed object until its memory
				   is allocated again */
	uint64_t only;		/* follow only the object of this number; 0:
				   all */
	unsigned places;
	uint64_t part, len;	/* the watched bytes of each object: offset and
				   length */
	struct perf_event_attr attr;	/* of samples */
};

/* Open the uprobes, turned off.  0 or -errno with a cause. */
int wp_objects_open(struct wp_objects **, pid_t,
    const struct wp_objects_what *, struct wp_cause *);
void wp_objects_close(struct wp_objects *);

/* Turn the uprobes on, or off. */
void wp_objects_turn(struct wp_objects *, bool on);

/* The descriptor to poll for POLLIN; and the next record, a struct
   wp_object_record or a sample, which is valid until the next call.  NULL:
   there is none. */
int wp_objects_fd(const struct wp_objects *);
const struct perf_event_header *wp_objects_next(struct wp_objects *);

/* Report that a place is armed, so the thread that made its object goes on.
   False: it had waited too long, and went on before. */
bool wp_objects_go_on(struct wp_objects *, unsigned place);

/* Free a place, whose object was freed; kept: the place kept it until now. */
void wp_objects_reuse(struct wp_objects *, unsigned place, bool kept);

/* When the object of this number in a place was freed, and when its memory was
   allocated again, ns; 0: not yet, or the place has another object by now. */
uint64_t wp_objects_ended(const struct wp_objects *, unsigned place,
    uint64_t number);
uint64_t wp_objects_reused(const struct wp_objects *, unsigned place,
    uint64_t number);

/* Totals. */
struct wp_objects_sum {
	uint64_t seen;		/* objects returned */
	uint64_t lives;		/* the sum of the lifetimes of all counted
				   objects up to now, ns */
	uint64_t missed;	/* objects freed by an unknown function, or not
				   noted for want of memory: then lives is
				   unknown */
};
void wp_objects_sum(const struct wp_objects *, struct wp_objects_sum *);

/* Whether the uprobes see nothing any more, because the thread on which they
   were opened has ended. */
bool wp_objects_have_ended(const struct wp_objects *);

#endif
