/*
 * sideband: what a program does that is not an access and yet changes its
 * watches' bytes, or which processes can write them: children that may have its
 * memory (lent.h), and what it maps.  The kernel records it, in rings of this
 * process.
 *
 * The record is there before the program can go on, so a look that follows a
 * hit finds everything that came before that hit.
 */
#ifndef SIDEBAND_H
#define SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/event.h"
#include "stop/lent.h"

struct wp_rings;

/* All zero: not open. */
struct sideband {
	pid_t pid;
	struct wp_rings *rings;		/* NULL: nothing is known */
	struct wp_events events;
	struct wp_lent lent;
	bool lost;			/* records */
	uint64_t since;			/* ns: threads made later are counted,
					   ...; 0: not yet */
	unsigned made;			/* ... as far as they are known */
};

/* What has been mapped, or has another protection. */
struct sideband_mapping {
	uint64_t start, end;
	bool shared;
	uint64_t time;			/* ns */
};

/* Of all threads of a program, and those to come.  Where that is not permitted
   nothing is known of it. */
void sideband_open(struct sideband *, pid_t);
void sideband_close(struct sideband *);

/* For how long, in ns, its threads have run since, on all processors together;
   0: nothing is known. */
uint64_t sideband_ran(const struct sideband *);

/* In how many threads it ran, if there was one when since was set, and everything
   has been looked at; 0: that is not known. */
unsigned sideband_threads(const struct sideband *);

/* Look: fn is called for each new mapping.  Result: whether nothing happened
   since the last look that others could have written by, nor can they now. */
bool sideband_is_quiet(struct sideband *,
    void (*fn)(void *arg, const struct sideband_mapping *), void *arg);

#endif
