/*
 * written_report: checks and writes the report that explainers produce.
 */
#ifndef WRITTEN_REPORT_H
#define WRITTEN_REPORT_H

#include "broker/broker.h"
#include "broker/written_sides.h"
#include "report/output.h"
#include "util/buffer.h"

struct written_report {
	struct output *output;	/* where the report goes */
	struct output_screen screen;	/* the screen of its reader */
	/* called with the number of written hits; NULL: none */
	void (*wrote)(struct written_report *, uint64_t hits);
	bool begun;		/* a part of the report is written, */
	uint64_t hits;		/* with these hits */
	struct buffer coming;	/* a piece that has not arrived completely */
	struct buffer pending;	/* complete pieces that are still to be
				   written, */
	uint64_t pending_hits;	/* and the number of hits including them */
	bool owed;		/* the explainer waits for this to be written */
	size_t written;		/* bytes of `pending' that were written; */
	size_t answered;	/* bytes that the explainer was already told
				   of */
	struct written_sides sides;	/* the side files */
};

/* Take a part of the report (BROKER_REPORT), and answer as soon as it is
   written, which may take ms milliseconds now (-1: any time).  Up to 64 MiB
   that the reader has not read are kept; beyond that the answer is -ENOBUFS,
   after a second at the soonest.  False: the message is invalid. */
bool written_report_take(struct written_report *, struct broker *,
    const struct broker_message *, int ms);

/* Whether something still waits to be written, because the reader does not
   read; and try again to write it.  0; -EAGAIN: the reader still does not read;
   or -errno: it can never be written. */
bool written_report_is_behind(const struct written_report *);
int written_report_go_on(struct written_report *, struct broker *, int ms);

/* Let the explainer continue, although its report is not written yet. */
void written_report_answer(struct written_report *, struct broker *);

/* The report has ended: write the side files.  0, or -errno after a line on
   stderr. */
int written_report_finish(struct written_report *);

/* An explainer has died: drop its incomplete piece.  The rest has to be written
   (written_report_go_on) before another explainer begins. */
void written_report_drop(struct written_report *);

/* The same after an error of broker_hear.  Result: whether another explainer
   shall continue after the last hit that will be written. */
bool written_report_survive(struct written_report *, struct broker *, int err);

void written_report_free(struct written_report *);

#endif
