/*
 * rotate: slots that move over objects wider than the slots (--slots rotate).
 *
 * Overview: an object is cut into parts, each as wide as a slot.  Each slot
 * that it gets is a watch of the target of its own, which is on one part at a
 * time.  After a while it moves on to the next part that has none, and stays
 * longer where hits come.  The first part is another one in each run, so that
 * several runs find what one does not.  Whether the threads run or are held
 * meanwhile makes no difference to what is missed: an access to a part that has
 * no slot.
 *
 *	     +------+------+------+------+------+------+
 *	     | part | part | slot | part | slot | part |	-->
 *	     +------+------+------+------+------+------+
 *
 * A sample says at which address its event was.  That is the part; each is a
 * watch of the session (session_part), once it has been hit.  Its values hold
 * until its slot leaves it.
 */
#ifndef ROTATE_H
#define ROTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "os/cause.h"
#include "os/slot.h"

struct ex_record;
struct process;
struct rotate;
struct run;

/* Be ready.  0; or -ENOMEM after a line on stderr. */
int rotate_open(struct rotate **, struct run *);
void rotate_close(struct rotate *);

/* Regions of a process's SPECs: if they take more slots than there are, have
   those that are too wide begin at one of their parts, with regions for more
   slots behind all, up to WP_SLOTS_MAX in all, counted by *n.  NULL rotates
   nothing.  0 or -errno with a cause. */
int rotate_plan(struct rotate *, struct process *, struct wp_region *,
    size_t *n, struct wp_cause *);

/* All is armed and described: the time begins; and it ends. */
void rotate_begin(struct rotate *);
void rotate_end(struct rotate *);

/* Whether slots are to be moved now; where threads run, rotate_turn moves them,
   and when a process is held, rotate_held does. */
bool rotate_is_due(const struct rotate *);
void rotate_turn(struct rotate *);
void rotate_held(struct rotate *, pid_t);

/* Before a record is passed on to the session. */
void rotate_take(struct rotate *, const struct ex_record *);

/* At the end: tell the session for how long each part was watched.  0 or
   -ENOMEM. */
int rotate_account(struct rotate *);

#endif
