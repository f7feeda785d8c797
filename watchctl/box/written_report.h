/*
 * written_report: a report that explainers make, checked and written.
 */
#ifndef WRITTEN_REPORT_H
#define WRITTEN_REPORT_H

#include "box/box.h"
#include "report/output.h"
#include "util/buffer.h"

struct written_report {
	struct output *output;	/* where it goes */
	struct output_screen screen;	/* what it is read on */
	/* so many hits are written now; NULL: nobody is told */
	void (*wrote)(struct written_report *, uint64_t hits);
	bool begun;		/* something is written of it, */
	uint64_t hits;		/* and these */
	struct buffer pending;	/* what is not written yet */
};

/* Take a part of it (BOX_REPORT), and answer.  False: the message lies. */
bool written_report_take(struct written_report *, struct box *,
    const struct box_message *);

/* An explainer has died (box_hear): drop what it had not made whole.  Whether
   another is to go on behind the last hit that is written. */
bool written_report_survive(struct written_report *, struct box *, int err);

#endif
