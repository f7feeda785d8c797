/* written_report: checks and writes the report that explainers produce. */
#include "broker/written_report.h"

#include <errno.h>
#include <stdio.h>

#include "top/top.h"
#include "util/visible.h"

enum {
	PENDING_MAX = 64 << 20,	/* bytes of one piece of a report, and of
				   what its reader has not read */
	ROOM_MS = 1000,		/* least time to wait for that */
};

/* Whether the piece consists of whole lines without control characters. */
static bool
is_sound(const struct written_report *report)
{
	const struct buffer *coming = &report->coming;

	return coming->len > 0 && coming->bytes[coming->len - 1] == '\n' &&
	    visible_is_harmless(coming->bytes, coming->len,
	    report->screen.colour);
}

static void
answer(struct written_report *report, struct broker *broker, int err)
{
	const struct broker_message message = {
		.what = BROKER_ANSWER, .err = err,
		.value = {report->written > report->answered ?
		    report->written - report->answered : 0},
	};

	report->owed = false;
	(void)broker_post(broker, &message, -1);
}

void
written_report_answer(struct written_report *report, struct broker *broker)
{
	if (!report->owed)
		return;
	answer(report, broker, 0);
	report->answered = report->written + report->pending.len;
}

bool
written_report_is_behind(const struct written_report *report)
{
	return report->pending.len > 0 && !top_is_on();	/* otherwise it waits */
}

int
written_report_go_on(struct written_report *report, struct broker *broker,
    int ms)
{
	int err = 0;

	if (!report->begun)
		err = output_begin(report->output);
	report->begun = true;
	if (err == 0)
		err = buffer_write_for(&report->pending,
		    report->output->stream, ms);
	report->written += report->pending.written;
	if (err == -EAGAIN)
		return err;
	report->pending.len = 0;
	if (err == 0 && report->pending_hits > report->hits)
		broker->deaths = 0;
	if (err == 0)
		report->hits = report->pending_hits;
	if (err == 0 && report->wrote != NULL)
		report->wrote(report, report->hits);
	if (report->owed)
		answer(report, broker, err);
	report->written = report->answered = 0;
	return err;
}

/* Copied only if `to' is not empty; otherwise the buffers are exchanged. */
static void
move(struct buffer *to, struct buffer *from)
{
	const struct buffer empty = *to;

	if (to->len > 0) {
		buffer_put(to, from->bytes, from->len);
	} else {
		*to = *from;
		*from = empty;
	}
	from->len = 0;
}

/* A piece is complete.  Returns 0, -ENOMEM, or -EPROTO if the message is
   wrong. */
static int
make_pending(struct written_report *report, uint64_t hits)
{
	struct buffer *coming = &report->coming;
	int err = 0;

	if (coming->failed)
		err = -ENOMEM;
	else if (!is_sound(report))
		return -EPROTO;
	else if (!top_frame(coming->bytes, coming->len))
		move(&report->pending, coming);
	if (report->pending.failed) {
		report->pending.failed = false;
		err = -ENOMEM;
	}
	if (err == 0)
		report->pending_hits = hits;
	if (coming->failed)
		buffer_free(coming);
	coming->len = 0;
	return err;
}

static bool
has_room(const struct written_report *report)
{
	return report->coming.len <= PENDING_MAX - report->pending.len;
}

/* If the explainer was allowed to continue before, there may be more than the
   buffer holds; threads must not wait forever for a reader that does not
   read. */
static bool
make_room(struct written_report *report, struct broker *broker, int ms)
{
	if (!has_room(report))
		(void)written_report_go_on(report, broker, ms < 0 ? -1 :
		    ms > ROOM_MS ? ms : ROOM_MS);
	return has_room(report);
}

bool
written_report_take(struct written_report *report, struct broker *broker,
    const struct broker_message *message, int ms)
{
	const struct broker_message more = {.what = BROKER_ANSWER};
	struct buffer *coming = &report->coming;
	int err;

	if (message->value[2] != 0)
		return written_sides_take(&report->sides,
		    &report->output->sides, broker, message);
	if (message->value[0] > sizeof(broker->shared->report) ||
	    message->value[0] > PENDING_MAX - coming->len ||
	    message->value[1] < report->hits)
		return false;
	buffer_put(coming, broker->shared->report, message->value[0]);
	if (message->err != 0) {
		(void)broker_post(broker, &more, -1);
		return true;
	}
	if (!make_room(report, broker, ms)) {
		buffer_free(coming);
		answer(report, broker, -ENOBUFS);
		return true;
	}
	if ((err = make_pending(report, message->value[1])) == -EPROTO)
		return false;
	report->owed = true;
	if (err < 0 || top_is_on())
		answer(report, broker, err);
	else
		(void)written_report_go_on(report, broker, ms);
	return true;
}

int
written_report_finish(struct written_report *report)
{
	return written_sides_finish(&report->sides, &report->output->sides);
}

void
written_report_drop(struct written_report *report)
{
	report->owed = false;
	buffer_free(&report->coming);
	written_sides_forget(&report->sides);
}

bool
written_report_survive(struct written_report *report, struct broker *broker,
    int err)
{
	char lost[96];

	written_report_drop(report);
	(void)snprintf(lost, sizeof(lost), "what comes after hit #%llu is not "
	    "reported", (unsigned long long)(report->pending.len > 0 ?
	    report->pending_hits : report->hits));
	return broker_survive(broker, err, lost);
}

void
written_report_free(struct written_report *report)
{
	buffer_free(&report->coming);
	buffer_free(&report->pending);
	written_sides_forget(&report->sides);
}
