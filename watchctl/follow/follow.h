/*
 * follow: watches that move when a pointer on the way to their object changes.
 *
 * Overview: each pointer on the way is watched too, by events and rings of
 * their own.  A thread sleeps on these.  When a pointer has been written, it
 * looks where the pointers lead now and changes the addresses of the events, in
 * all threads of the program, none of which is stopped.  Then it looks again,
 * until nothing has changed in between.  With --stop the thread that writes a
 * pointer stops behind that, all others are held, and the same is done while
 * none runs.
 *
 *	first ---> [pointer] ---> [pointer] ---> object
 *	           more[0]        more[1]        of the place
 *
 * Before the events of an object are changed, it is said where to: a hit there
 * cannot come before that is known.  The rest is the run's own: to describe the
 * places, and to report the moves.
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

/* Be ready, when the run has its target.  0; or -errno after a line on
   stderr. */
int follow_open(struct follow **, struct run *);
void follow_close(struct follow *);

/* Of a process whose SPECs are resolved: where the regions of those that are
   followed are now, at address 0 for nowhere.  0 or -errno with a cause. */
int follow_plan(struct follow *, const struct process *,
    struct wp_region *regions, struct wp_cause *);

/* Its watches are the target's; watch the pointers on the way to them, before
   they are armed.  0 or -errno with a cause: they take more slots than there
   are, ... */
int follow_arm(struct follow *, const struct process *, struct wp_cause *);

/* All is armed and described: begin to move.  0 or -errno. */
int follow_begin(struct follow *);

/* With --stop: a write to a pointer, NULL: some that are not known; and all
   threads of a process are held, in which watches are moved.  As of struct
   wp_stops_calls. */
void follow_scouted(struct follow *, const struct wp_sample *);
void follow_held(struct follow *, const struct wp_stops_held *);

/* What to poll for POLLIN; and report the moves, of which there may be some.
   To be called before a record is passed on that was taken since. */
int follow_fd(const struct follow *);
void follow_report(struct follow *);

/* No more moves. */
void follow_end(struct follow *);

#endif
