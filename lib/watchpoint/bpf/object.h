/*
 * object: programs that see when a function returns an object, when it is
 * freed, and when its memory is handed out again.
 *
 * One runs when the function returns: what it returns is an object.  If a place
 * is open the object takes that, and its thread does not go on before the place
 * is said to be armed, but for half a millisecond at most.  One runs where a
 * function begins that ends what an argument points to.  Two run where a
 * function of the allocator begins, and returns: what it returns is memory, and
 * whatever was there and is ended is there no longer.
 *
 * Each thing of a place is a record, and before it, where there is room, a
 * sample of the same thread.
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

/* Shared with the programs, which change all but on, only, part, len, stays and
   armed. */
struct wp_object_table {
	uint64_t on;		/* whether they run */
	uint64_t only;		/* only the object of this number counts; 0:
				   all do */
	uint64_t part, len;	/* of an object: so many bytes, from there on */
	uint64_t stays;		/* a place keeps an object that is ended until
				   its memory is handed out again, */
	uint64_t kept;		/* as so many do */
	uint64_t seen;		/* so many were returned; of these */
	uint64_t live;		/* so many are not ended that count, */
	uint64_t born, ended;	/* the sums of the times, ns; */
	uint64_t missed;	/* so many were returned again without an end,
				   or there was no memory for them */
	struct wp_object_place {
		uint64_t addr;	/* 0: it is open */
		uint64_t object;	/* the address that it had */
		uint64_t number;	/* of the object, from 1 */
		uint64_t ended;	/* when it was, ns; 0: it has not been */
		uint64_t reused;	/* when its memory was handed out, ns */
		uint64_t armed;	/* its thread may go on, 2: and has done so
				   before it was armed */
	} place[WP_OBJECT_PLACES];
};

/* The type of a record. */
enum { WP_OBJECT_NEW = 1, WP_OBJECT_ENDED, WP_OBJECT_REUSED };

struct wp_object_record {
	struct perf_event_header header;
	uint32_t tid;
	uint32_t place;		/* of what is handed out: a bit for each */
	uint64_t time;		/* ns */
	uint64_t addr, number;
};

/* Bytes of a call to the allocator. */
enum { WP_OBJECT_CALLED = 24 };

/* Maps: of the table, of the objects that are not ended, of the calls to the
   allocator, and a ring buffer; and what samples are like. */
struct wp_object_maps {
	int table, objects, calls, ring;
	pid_t pid;
	struct perf_event_attr attr;
};

/* Which of a function's arguments say what it hands out. */
enum wp_object_call {
	WP_OBJECT_SIZE,		/* (size) */
	WP_OBJECT_ALIGNED,	/* (alignment, size) */
	WP_OBJECT_RESIZED,	/* (pointer, size): and it ends that object,
				   when it returns, if there is memory */
	WP_OBJECT_PRODUCT,	/* (size, size) */
	WP_OBJECT_POINTED,	/* (where the pointer goes, alignment, size) */
};

/* Load one, for the end of the function; for the beginning of one that ends
   what one of its first n arguments is; for the beginning and the end of one of
   the allocator, of which both are needed: a descriptor or -errno. */
int wp_object_load_begin(const struct wp_object_maps *);
int wp_object_load_end(const struct wp_object_maps *, unsigned n);
int wp_object_load_call(const struct wp_object_maps *, enum wp_object_call);
int wp_object_load_handed(const struct wp_object_maps *, enum wp_object_call);

#endif
