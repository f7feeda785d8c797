/*
 * written_sides: the side files that explainers produce with a report: they are
 * checked, and written when the report has ended.
 */
#ifndef WRITTEN_SIDES_H
#define WRITTEN_SIDES_H

#include "broker/broker.h"
#include "report/side_files.h"
#include "util/buffer.h"

/* All zero: nothing has come. */
struct written_sides {
	struct buffer text[SIDES];
	bool whole[SIDES];	/* this is all of it */
};

/* Take a part of one (BROKER_REPORT, with value[2]), and answer.  False: the
   message lies. */
bool written_sides_take(struct written_sides *, const struct side_files *,
    struct broker *, const struct broker_message *);

/* Write them.  0, or -errno after a line on stderr. */
int written_sides_finish(struct written_sides *, struct side_files *);

/* The explainer that made them has died, or it is all over. */
void written_sides_forget(struct written_sides *);

#endif
