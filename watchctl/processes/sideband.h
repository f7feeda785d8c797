/*
 * sideband: what programs do, other than accesses, that changes the bytes of
 * their watches or decides which processes can write them: children that may
 * share their memory (shared_vm.h), and mappings; and which children there are.
 * The kernel records all this in rings of this process.
 *
 * The kernel writes a record before the program can continue.  So reading the
 * rings after a hit finds everything that came before the hit, and reading them
 * after a program's end finds all children that it created.
 */
#ifndef SIDEBAND_H
#define SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring/event_table.h"
#include "os/cause.h"
#include "stop/shared_vm.h"

struct wp_rings;

/* Records of one kind, in rings of their own: many of one kind make none of
   another lost. */
struct sideband_stream {
	struct wp_rings *rings;		/* NULL: nothing is known */
	struct wp_events events;	/* with children */
	uint64_t format;		/* of what is read of them */
	bool lost;			/* records */
};

/* All zero: not open. */
struct sideband {
	pid_t pid;			/* whose it is, */
	struct sideband_stream tasks;	/* what is created, */
	struct sideband_stream maps;	/* what is mapped */
	struct wp_cause cause;		/* why one of them is not open ... */
	bool refused;			/* ... and nor is any other event */
	struct wp_shared_vm lent;
};

/* What has been mapped, or has another protection. */
struct sideband_mapping {
	pid_t pid;
	uint64_t start, end;
	bool shared, code;
	uint64_t time;			/* ns */
};

/* A process that another one made, by fork(2) or else. */
struct sideband_child {
	pid_t pid;
	pid_t parent, tid;		/* which process, and its thread */
	uint64_t time;			/* ns */
};

/* What is to be done when it becomes known. */
struct sideband_calls {
	/* a process has made a thread of its own, at that time, ns; NULL:
	   nothing is to be done */
	void (*thread)(void *arg, pid_t, uint64_t time);
	void (*mapped)(void *arg, const struct sideband_mapping *);
	void (*made)(void *arg, const struct sideband_child *);
	/* another process may have this one's memory, or had it since the last
	   look; NULL: nothing is to be done */
	void (*lent)(void *arg, pid_t);
	/* a process ended, and had executed no other program; or executes one,
	   which is not always said; NULL: nothing is to be done */
	void (*ended)(void *arg, pid_t);
	void (*executed)(void *arg, pid_t);
};

/* Of all threads of a program, and those to come; and of its children, until
   they execute another program.  Where that is not permitted nothing is known
   of it.  A process that is covered already is covered again. */
void sideband_open(struct sideband *, pid_t);
void sideband_close(struct sideband *);

/* Add a process, for what it creates only, not for what it maps.  All zero at
   first.  0; -ESRCH: it has ended; or -errno with a cause in the sideband:
   nothing is known of any process. */
int sideband_add(struct sideband *, pid_t);

/* Whether all threads and children are known that were created before the last
   look. */
bool sideband_knows_tasks(const struct sideband *);

/* Whether all is known that was mapped before the last look. */
bool sideband_knows_maps(const struct sideband *);

/* Look.  Result: whether all that was done is known. */
bool sideband_look(struct sideband *, const struct sideband_calls *, void *arg);

#endif
