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
	uint64_t format;		/* the sample format of its records */
	bool lost;			/* records were lost */
};

/* All zero: not open. */
struct sideband {
	pid_t pid;			/* the process that it was opened for */
	struct sideband_stream tasks;	/* creations of processes and threads */
	struct sideband_stream maps;	/* mappings */
	struct wp_cause cause;		/* why one of the streams is not open
					   ... */
	bool refused;			/* ... and no other event can be opened
					   either */
	struct wp_shared_vm lent;
};

/* A new mapping, or one with a new protection. */
struct sideband_mapping {
	pid_t pid;
	uint64_t start, end;
	bool shared, code;
	uint64_t time;			/* ns */
};

/* A process that another one created, by fork(2) or otherwise. */
struct sideband_child {
	pid_t pid;
	pid_t parent, tid;		/* the creator, and its thread */
	uint64_t time;			/* ns */
};

/* Called when something becomes known; a function that may be NULL is not
   needed. */
struct sideband_calls {
	/* a process created a thread of its own at this time, ns; may be
	   NULL */
	void (*thread)(void *arg, pid_t, uint64_t time);
	void (*mapped)(void *arg, const struct sideband_mapping *);
	void (*made)(void *arg, const struct sideband_child *);
	/* another process may share this one's memory, or did since the last
	   call; may be NULL */
	void (*lent)(void *arg, pid_t);
	/* a process ended that had executed no other program; or one executes a
	   program, which is not always reported; may be NULL */
	void (*ended)(void *arg, pid_t);
	void (*executed)(void *arg, pid_t);
	/* the kernel has made a thread of this process for its io_uring(7); may
	   be NULL */
	void (*worker)(void *arg, pid_t);
};

/* Whether a thread that is not its process's first has a name that the kernel
   gives to those that it makes for io_uring(7). */
bool sideband_is_worker(const char *comm);

/* Record for all threads of a program, present and future, and for its
   children, until they execute another program.  Where that is not permitted
   nothing is known.  A process that is already covered is covered twice. */
void sideband_open(struct sideband *, pid_t);
void sideband_close(struct sideband *);

/* Record only what another process creates, not what it maps.  All zero at
   first.  0; -ESRCH: it has ended; or -errno with a cause in the sideband:
   nothing is known of any process. */
int sideband_add(struct sideband *, pid_t);

/* Whether all threads and children are known that were created before the last
   sideband_look. */
bool sideband_knows_tasks(const struct sideband *);

/* Whether all mappings are known that were made before the last
   sideband_look. */
bool sideband_knows_maps(const struct sideband *);

/* Read the records.  Result: whether everything is known that was done. */
bool sideband_look(struct sideband *, const struct sideband_calls *, void *arg);

#endif
