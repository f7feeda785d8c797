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
	struct output *output;	/* where it goes */
	struct output_screen screen;	/* what it is read on */
	/* called with the number of written hits; NULL: none */
	void (*wrote)(struct written_report *, uint64_t hits);
	bool begun;		/* something is written of it, */
	uint64_t hits;		/* and these */
	struct buffer coming;	/* what is not whole yet */
	struct buffer pending;	/* what is, and is not written yet, */
	uint64_t pending_hits;	/* and with it these */
	bool owed;		/* its explainer waits for that */
	size_t written;		/* bytes of it that were; */
	size_t answered;	/* the number for which no thread waits */
	struct written_sides sides;	/* what goes beside it */
};

/* Take a part of it (BROKER_REPORT), and answer as soon as it is written, which
   may take so many ms (-1: any time) now.  What its reader has not read is kept
   up to 64 MiB, and then the answer is -ENOBUFS, a second later at the soonest.
   False: the message lies. */
bool written_report_take(struct written_report *, struct broker *,
    const struct broker_message *, int ms);

/* Whether something waits to be written, because its reader does not read; go
   on with that.  0; -EAGAIN: it still does; or -errno: it never will be. */
bool written_report_is_behind(const struct written_report *);
int written_report_go_on(struct written_report *, struct broker *, int ms);

/* Have the explainer go on, though what it reported is not written yet. */
void written_report_answer(struct written_report *, struct broker *);

/* The report has ended: write what goes beside it.  0, or -errno after a line
   on stderr. */
int written_report_finish(struct written_report *);

/* An explainer has died: drop what it had not made whole.  The rest is to be
   written (written_report_go_on) before another begins. */
void written_report_drop(struct written_report *);

/* The same (broker_hear).  Whether another is to go on behind the last hit that
   will be written. */
bool written_report_survive(struct written_report *, struct broker *, int err);

void written_report_free(struct written_report *);

#endif
