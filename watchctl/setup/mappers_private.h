/* mappers_private: what the files of mappers share. */
#ifndef MAPPERS_PRIVATE_H
#define MAPPERS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "ring/event_table.h"
#include "os/cause.h"
#include "setup/mappers.h"
#include "setup/pid_table.h"
#include "setup/shared_file.h"

struct options;
struct run;

struct place {
	size_t spec;
	size_t process;		/* its entry in the run, */
	pid_t pid;		/* of this one */
	uint64_t addr;
	uint64_t armed;		/* ns */
	bool mapped;		/* by a member, as it was looked at */
};

struct member {
	pid_t pid;
	size_t place;
	uint64_t since;		/* ns */
	bool moved;		/* perhaps: it has it elsewhere, unwatched, as
				   it was looked at */
};

struct mappers {
	const struct options *options;
	struct shared_file *file;	/* by SPEC */
	struct wp_rings *rings;
	struct wp_events events;
	struct stat exe;		/* --exe */
	struct {			/* all there ever were */
		struct place *at;
		size_t n, cap;
	} places;
	struct {
		struct member *at;
		size_t n, cap;
	} members;
	bool *chosen;		/* by pid: -p or the command, or a child with
				   -f; NULL: any process is */
	uint64_t began;			/* ns: what was there then was looked
					   for; */
	uint64_t known;			/* what was there then is watched */
	bool started;		/* the report has begun */
	bool look;		/* mappings are to be looked at now; */
	uint64_t looked;	/* that was done at this time, ns, */
	uint64_t took;		/* in so many */
	bool search;		/* records may have been lost since */
	bool lost;		/* they were, as reported */
	struct {
		pid_t pid;	/* before the report began, this one could not
				   be watched; 0: all could */
		size_t spec;
		struct wp_cause why;
	} denied;
	bool missed;		/* a place is not watched, as reported */
	bool parted;		/* a mapping has only a part, as reported */
	uint64_t foreign;	/* hits elsewhere */
	uint64_t unproved;	/* hits of which that is not known */
};

/* --- mapper_places.c --- */

/* A process has what is armed at a place, since this time, ns; whether it has.
   */
void mappers_add(struct run *, pid_t, size_t place, uint64_t since);
bool mappers_have(const struct mappers *, pid_t, size_t place);

/* A place was not watched, for this reason, or since the process has ended. */
void mappers_missed(struct run *, pid_t, size_t spec, const char *why);

/* What a process had before this time, ns, it has no more. */
void mappers_leave(struct mappers *, pid_t, uint64_t time);

/* Watch what a process has mapped, at the earliest at this time, ns, and is not
   watched yet.  0; or -errno with a cause, of what was found first: not all of
   it is. */
int mappers_look_at(struct run *, pid_t, uint64_t since, struct wp_cause *);

/* The same of all processes. */
int mappers_look_at_all(struct run *, struct wp_cause *);

/* Disarm what no member has mapped any more, and watch what has been moved. */
void mappers_look_again(struct run *);

#endif
