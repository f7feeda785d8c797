/*
 * rotate: slots that move over objects wider than the slots (--slots rotate).
 *
 * Overview: an object is cut into parts, each as wide as a slot.  Each of its
 * slots is a separate watch of the target, which covers one part at a time.
 * After a while the slot moves to the next part that has none; it stays longer
 * where hits come.  Each run begins at another part, so that several runs find
 * what one misses.  An access to a part without a slot is missed, whether
 * threads run or are held during a move.
 *
 *	     +------+------+------+------+------+------+
 *	     | part | part | slot | part | slot | part |	-->
 *	     +------+------+------+------+------+------+
 *
 * A sample contains the address that its event had, and so shows the part.  A
 * part that has been hit is a watch of the session (session_part); its values
 * are valid until its slot leaves it.
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

/* Prepare.  0; or -ENOMEM after a line on stderr. */
int rotate_open(struct rotate **, struct run *);
void rotate_close(struct rotate *);

/* If the regions of a process's SPECs need more slots than there are, reduce
   those that are too wide to one of their parts, and add regions at the end for
   the remaining slots, up to WP_SLOTS_MAX in all; *n is their number.  NULL
   rotates nothing.  0 or -errno with a cause. */
int rotate_plan(struct rotate *, struct process *, struct wp_region *,
    size_t *n, struct wp_cause *);

/* Begin to count time, when all is armed and described; and end. */
void rotate_begin(struct rotate *);
void rotate_end(struct rotate *);

/* Whether it is time to move slots: rotate_turn moves them where threads run,
   rotate_held when a process is held. */
bool rotate_is_due(const struct rotate *);
void rotate_turn(struct rotate *);
void rotate_held(struct rotate *, pid_t);

/* To be called for each record before it is passed to the session. */
void rotate_take(struct rotate *, const struct ex_record *);

/* At the end: add to the session for how long each part was watched.  0 or
   -ENOMEM. */
int rotate_account(struct rotate *);

#endif
