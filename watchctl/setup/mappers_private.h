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
	bool mapped;		/* a member mapped it when last listed */
};

struct mapper {
	pid_t pid;
	size_t place;
	uint64_t since;		/* ns */
	bool moved;		/* it may have the object elsewhere, unwatched,
				   as last listed */
};

struct mappers {
	const struct options *options;
	struct shared_file *file;	/* by SPEC */
	struct wp_rings *rings;
	struct wp_events events;
	struct stat exe;		/* --exe */
	struct {			/* all places so far */
		struct place *at;
		size_t n, cap;
	} places;
	struct {
		struct mapper *at;
		size_t n, cap;
	} members;
	bool *chosen;		/* by pid: those of -p, the command, or a child
				   with -f; NULL: any process */
	uint64_t began;			/* ns: the listing covers everything
					   mapped until then */
	uint64_t known;			/* ns: mappings that existed then are
					   watched */
	bool started;		/* the report has begun */
	bool look;		/* list the mappings again now */
	uint64_t looked;	/* when they were last listed, ns */
	uint64_t took;		/* how long that took, ns */
	bool search;		/* records may have been lost since */
	bool lost;		/* they were lost, which was reported */
	struct {
		pid_t pid;	/* the process that could not be watched before
				   the report began; 0: none */
		size_t spec;
		struct wp_cause why;
	} denied;
	bool missed;		/* reported: a place is not watched */
	bool parted;		/* reported: a mapping has only a part */
	uint64_t foreign;	/* hits outside the objects */
	uint64_t unproved;	/* hits for which that is unknown */
};

/* --- mapper_places.c --- */

/* Note that a process has had what is armed at a place since this time, ns; or
   ask whether it has. */
void mappers_add(struct run *, pid_t, size_t place, uint64_t since);
bool mappers_have(const struct mappers *, pid_t, size_t place);

/* Note that a place was not watched, for this reason, or because the process
   has ended. */
void mappers_missed(struct run *, pid_t, size_t spec, const char *why);

/* Note that a process lost all mappings that it had before this time, ns. */
void mappers_leave(struct mappers *, pid_t, uint64_t time);

/* Watch what a process has mapped and is not watched yet; it was mapped at this
   time, ns, or later.  0; or -errno with the cause of the first failure: some
   of it is not watched. */
int mappers_look_at(struct run *, pid_t, uint64_t since, struct wp_cause *);

/* The same for all processes. */
int mappers_look_at_all(struct run *, struct wp_cause *);

/* Disarm places that no member maps any more, and watch moved mappings. */
void mappers_look_again(struct run *);

#endif
