/*
 * marks: the tickets that hits of a target took are compared regularly with the
 * kernel's counts (tickets.h), and the result is inserted among the records as
 * a mark.  Only a mark makes the conclusions from tickets certain, and shows
 * that no hit was missed.
 *
 * One thread uses them: that of the target, or another one.
 */
#ifndef WP_MARKS_H
#define WP_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/perf_event.h"

struct wp_marks;
struct wp_target;

/* Of all watches that it has, now and later.  NULL: out of memory. */
struct wp_marks *wp_marks_new(struct wp_target *);
void wp_marks_free(struct wp_marks *);

/* Compare, if it is time for it or now. */
void wp_marks_look(struct wp_marks *, bool now);

/* Whether a mark is to be given that horizons were too early for. */
bool wp_marks_wait(const struct wp_marks *);

/* The next record of a mark that comes behind all records up to this time, ns;
   NULL: there is none.  It stays until it is taken. */
const struct perf_event_header *wp_marks_next(struct wp_marks *,
    uint64_t horizon);
void wp_marks_take(struct wp_marks *);

#endif
