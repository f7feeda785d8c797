/*
 * written_sides: checks the side files that explainers produce with a report,
 * and writes them when the report has ended.
 */
#ifndef WRITTEN_SIDES_H
#define WRITTEN_SIDES_H

#include "broker/broker.h"
#include "report/side_files.h"
#include "util/buffer.h"

/* All zero: nothing has come. */
struct written_sides {
	struct buffer text[SIDES];
	bool whole[SIDES];	/* the text is complete */
};

/* Take a part of a side file (BROKER_REPORT, with value[2]), and answer.
   False: the message is invalid. */
bool written_sides_take(struct written_sides *, const struct side_files *,
    struct broker *, const struct broker_message *);

/* Write the files.  0, or -errno after a line on stderr. */
int written_sides_finish(struct written_sides *, struct side_files *);

/* Drop the texts: the explainer that made them has died, or the run is over. */
void written_sides_forget(struct written_sides *);

#endif
