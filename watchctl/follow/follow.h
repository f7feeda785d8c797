/*
 * follow: watches that move when a pointer on the way to their object changes.
 *
 * Overview: each pointer on the way is watched too, by a target of its own with
 * events and rings.  A thread sleeps until one of these reports a write to a
 * pointer.  Then it determines where the pointers lead now, and changes the
 * addresses of the events, in all threads of the program without stopping
 * them.  It repeats that until nothing has changed in between.  With --stop the
 * thread that writes a pointer stops after the write, all others are held, and
 * the same is done while none runs.
 *
 *	first ---> [pointer] ---> [pointer] ---> object
 *	           more[0]        more[1]        of the place
 *
 * The run is told of the new place before the events are moved there, so a hit
 * there is never unknown.  Describing places and reporting moves is the run's
 * part.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <stdbool.h>

#include "os/cause.h"
#include "os/slot.h"
#include "spec/spec.h"

struct follow;
struct process;
struct run;
struct wp_sample;
struct wp_stops_held;

/* Prepare, when the run has its target.  0; or -errno after a line on
   stderr. */
int follow_open(struct follow **, struct run *);
void follow_close(struct follow *);

/* The present regions of the followed SPECs of a process whose SPECs are
   resolved; the address is 0 where a pointer leads nowhere.  0 or -errno with a
   cause. */
int follow_plan(struct follow *, const struct process *,
    struct wp_region *regions, struct wp_cause *);

/* The process's watches have been added to the target: watch the pointers on
   the way to them, before anything is armed.  0 or -errno with a cause, such as
   too few slots. */
int follow_arm(struct follow *, const struct process *, struct wp_cause *);

/* Begin to move watches, when all are armed and described.  0 or -errno. */
int follow_begin(struct follow *);

/* With --stop, as of struct wp_stops_calls: a pointer was written (NULL:
   unknown writes were lost); and all threads of a process are held, so its
   watches can be moved. */
void follow_scouted(struct follow *, const struct wp_sample *);
void follow_held(struct follow *, const struct wp_stops_held *);

/* A descriptor to poll for POLLIN; then report the moves, if there are any.
   Also call follow_report before passing on a record that was taken since. */
int follow_fd(const struct follow *);
void follow_report(struct follow *);

/* End all moves. */
void follow_end(struct follow *);

#endif
