/*
 * object: BPF programs that follow the objects that a function returns: when
 * one is returned, when it is freed, and when its memory is allocated again.
 *
 * One program runs when the function returns, and takes what it returns for an
 * object.  If a place (a slot for one object) is free, the object takes it.
 * Its thread then waits until user space has armed the place, but for half a
 * millisecond at most.  Another program runs at the entry of each function that
 * frees what an argument points to.  Two more run at entry and return of each
 * function of the allocator: an object that was freed earlier in the memory
 * that it returns is gone.
 *
 * The programs write a record of each such event of a place, preceded by a
 * sample of the same thread if the ring buffer has room for it.
 */
#ifndef WP_OBJECT_H
#define WP_OBJECT_H

#include <stdint.h>
#include <sys/types.h>

#include "os/perf_event.h"

enum { WP_OBJECT_PLACES = 4 };

/* The longest time, ns, that a thread waits until its place is armed. */
#define WP_OBJECT_WAIT 500000

/* An address that no object has. */
#define WP_OBJECT_CLOSED 1

/* Shared with the programs.  User space sets on, only, part, len and stays, and
   arms and frees places; the programs write the rest. */
struct wp_object_table {
	uint64_t on;		/* whether the programs run */
	uint64_t only;		/* the number of the only object that counts; 0:
				   all objects count */
	uint64_t part, len;	/* the watched bytes of an object: offset and
				   length */
	uint64_t stays;		/* nonzero: a place keeps a freed object until
				   its memory is allocated again */
	uint64_t kept;		/* places that keep a freed object now */
	uint64_t seen;		/* objects returned so far */
	uint64_t live;		/* counted objects that are not freed */
	uint64_t born, ended;	/* sums of the times at which objects were
				   returned and freed, ns */
	uint64_t missed;	/* objects returned a second time without having
				   been freed, or for which there was no
				   memory */
	struct wp_object_place {
		uint64_t addr;	/* the object's address; 0: the place is free;
				   WP_OBJECT_CLOSED: unused, or its object was
				   freed */
		uint64_t object;	/* the same, kept after it was freed */
		uint64_t number;	/* the object's number, from 1 */
		uint64_t ended;	/* when the object was freed, ns; 0: not yet */
		uint64_t reused;	/* when its memory was allocated again,
					   ns */
		uint64_t armed;	/* 1: armed, so the thread may go on; 2: the
				   thread went on before that */
	} place[WP_OBJECT_PLACES];
};

/* The type of a record. */
enum { WP_OBJECT_NEW = 1, WP_OBJECT_ENDED, WP_OBJECT_REUSED };

struct wp_object_record {
	struct perf_event_header header;
	uint32_t tid;
	uint32_t place;		/* the index; in REUSED, a bit for each place */
	uint64_t time;		/* ns */
	uint64_t addr, number;
};

/* The size of an element of the map of calls, bytes. */
enum { WP_OBJECT_CALLED = 24 };

/* The maps that the programs use: the table, the objects that are not freed,
   the calls to the allocator under way, and a ring buffer; and the attribute of
   samples. */
struct wp_object_maps {
	int table, objects, calls, ring;
	pid_t pid;
	struct perf_event_attr attr;
};

/* Which arguments of an allocator's function give the size. */
enum wp_object_call {
	WP_OBJECT_SIZE,		/* (size) */
	WP_OBJECT_ALIGNED,	/* (alignment, size) */
	WP_OBJECT_RESIZED,	/* (pointer, size): it frees the object at
				   pointer when it returns, if it found
				   memory */
	WP_OBJECT_PRODUCT,	/* (size, size) */
	WP_OBJECT_POINTED,	/* (where to store the pointer, alignment,
				   size) */
};

/* Load a program: for the return of the function; for the entry of one that
   frees what one of its first n arguments points to; and for entry and return
   of an allocator's function, which needs both.  Result: a descriptor or
   -errno. */
int wp_object_load_begin(const struct wp_object_maps *);
int wp_object_load_end(const struct wp_object_maps *, unsigned n);
int wp_object_load_call(const struct wp_object_maps *, enum wp_object_call);
int wp_object_load_handed(const struct wp_object_maps *, enum wp_object_call);

#endif
