/*
 * mappers: processes that map the objects of SPECs with shm: and file:.
 *
 * Overview: an event on each processor records what processes map, create and
 * execute.  These events are opened before existing mappings are listed, so no
 * mapping is missed in between.  Each place where a process maps the bytes is a
 * separate watch, which children inherit.  Unmapping leaves no record.  So the
 * physical address of a hit shows whether it was in the object (shared_file.h),
 * and mappings are listed again at intervals to free slots.
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

/* Open the events.  0, or -EINVAL after a line on stderr. */
int mappers_open(struct mappers **, const struct options *);
void mappers_close(struct mappers *);

/* The descriptors to poll for POLLIN, numbered from 0 (NULL: none). */
unsigned mappers_fds(const struct mappers *);
int mappers_fd(const struct mappers *, unsigned i);

/* The rings of its events (NULL: none); look: after opening those that a
   processor that came online lacks. */
struct wp_rings *mappers_rings(struct mappers *, bool look);

/* Watch the places that exist now.  0, or -EINVAL after a line on stderr. */
int run_begin_mappers(struct run *);

/* Whether a SPEC, by its index, has no watch. */
bool mappers_lacks(const struct mappers *, size_t spec);

/* Note that the report has begun, and let a command continue. */
void run_start_mappers(struct run *);

/* Watch new mappings, and stop watching those that are gone. */
void run_take_mappers(struct run *);

/* Whether a record is to be reported: all but hits outside the objects, which
   are counted, and repetitions by other watches of the same process. */
bool run_is_of_mappers(struct run *, const struct ex_record *);

/* As answers.read, for a run.  The address of a hit may be mapped to something
   else by now, so the bytes are read from a mapping that is certainly the
   object. */
ssize_t run_read_mappers(void *, pid_t, uint64_t addr, void *to, size_t len);

/* Whether a process may still map something, after the end of those that were
   given.  NULL: none can. */
bool mappers_await(struct mappers *);

/* Number of hits outside the objects.  NULL: none. */
uint64_t mappers_foreign(const struct mappers *);

/* Print the final notes about them. */
void run_settle_mappers(struct run *);

#endif
