/*
 * object: programs that see what a function returns, and where that is ended.
 *
 * One runs when the function returns: what it returns is an object.  If a place
 * is open the object takes that, and its thread does not go on before the place
 * is said to be armed, but for half a millisecond at most.  The other one runs
 * where a function begins that ends what its first argument points to.
 */
#ifndef WP_OBJECT_H
#define WP_OBJECT_H

#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"

enum { WP_OBJECT_PLACES = 4 };

/* For so many ns a thread waits at most until its place is armed. */
#define WP_OBJECT_WAIT 500000

/* An address that no object has. */
#define WP_OBJECT_CLOSED 1

/* Shared with the programs, which change all but on, only and armed. */
struct wp_object_table {
	uint64_t on;		/* whether they run */
	uint64_t only;		/* only the object of this number counts; 0:
				   all do */
	uint64_t seen;		/* so many were returned; of these */
	uint64_t live;		/* so many are not ended that count, */
	uint64_t born, ended;	/* the sums of the times, ns; */
	uint64_t missed;	/* so many were returned again without an end,
				   or there was no memory for them */
	struct wp_object_place {
		uint64_t addr;	/* 0: it is open */
		uint64_t number;	/* of the object, from 1 */
		uint64_t ended;	/* when it was, ns; 0: it has not been */
		uint64_t armed;	/* its thread may go on, 2: and has done so
				   before it was armed */
	} place[WP_OBJECT_PLACES];
};

/* The type of a record. */
enum { WP_OBJECT_NEW = 1, WP_OBJECT_ENDED };

struct wp_object_record {
	struct perf_event_header header;
	uint32_t tid, place;
	uint64_t time;		/* ns */
	uint64_t addr, number;
};

/* Maps: of the table, of the objects that are not ended, and a ring buffer. */
struct wp_object_maps {
	int table, objects, ring;
	pid_t pid;
};

/* Load one, for the end of the function, or for the begin of one that ends
   objects: a descriptor or -errno. */
int wp_object_load_begin(const struct wp_object_maps *);
int wp_object_load_end(const struct wp_object_maps *);

#endif
