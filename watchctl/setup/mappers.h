/*
 * mappers: processes that map the objects of SPECs with shm: and file:.
 *
 * Overview: an event of each processor records what all processes map, create
 * and execute.  It is there before the mappings are looked for that are there
 * now, so none is missed between.  Each place where a process has the bytes is
 * a watch of its own, which children inherit.  That a mapping goes leaves no
 * record: a hit says which physical memory it was in (shared_file.h), and
 * mappings are looked at again from time to time, to free slots.
 */
#ifndef MAPPERS_H
#define MAPPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ex_record;
struct mappers;
struct options;
struct run;

/* Begin to look.  0, or -EINVAL after a line on stderr. */
int mappers_open(struct mappers **, const struct options *);
void mappers_close(struct mappers *);

/* What to poll for POLLIN: so many descriptors (none of NULL), from 0. */
unsigned mappers_fds(const struct mappers *);
int mappers_fd(const struct mappers *, unsigned i);

/* A processor that runs and on which nothing is noticed, as of the last time
   that it was looked for one; -1: there is none, or it is NULL. */
int mappers_uncovered(struct mappers *, bool look);

/* Watch those places that there are.  0, or -EINVAL after a line on stderr. */
int run_begin_mappers(struct run *);

/* Whether a SPEC, by its index, is watched nowhere. */
bool mappers_lacks(const struct mappers *, size_t spec);

/* The report has begun: a command is let go. */
void run_start_mappers(struct run *);

/* Watch those that have come, and no longer those that have gone. */
void run_take_mappers(struct run *);

/* Whether a record is to be reported: all but hits elsewhere, which are
   counted, and what several watches of a process say alike. */
bool run_is_of_mappers(struct run *, const struct ex_record *);

/* As answers.read, of a run: an address of a hit may be something else's by
   now, and these bytes are read where they are certainly mapped. */
ssize_t run_read_mappers(void *, pid_t, uint64_t addr, void *to, size_t len);

/* Whether a process may still map something, although those have ended that
   were given.  NULL: none does. */
bool mappers_await(struct mappers *);

/* Hits that were elsewhere.  NULL: none. */
uint64_t mappers_foreign(const struct mappers *);

/* The last words on them. */
void run_settle_mappers(struct run *);

#endif
