/* written_report: a report that explainers make, checked and written. */
#include "box/written_report.h"

#include <errno.h>
#include <stdio.h>

#include "util/visible.h"

enum { PENDING_MAX = 64 << 20 };	/* bytes of a report in one piece */

/* Write what is pending: whole lines. */
static int
write_pending(struct written_report *report, struct box *box, uint64_t hits)
{
	struct buffer *pending = &report->pending;
	int err = 0;

	if (pending->failed)
		return -ENOMEM;
	if (pending->len == 0 || pending->bytes[pending->len - 1] != '\n' ||
	    !visible_is_harmless(pending->bytes, pending->len,
	    report->screen.colour))
		return -EPROTO;
	if (!report->begun)
		err = output_begin(report->output);
	report->begun = true;
	if (err == 0)
		err = buffer_write(pending, report->output->stream);
	if (err < 0)
		return err;
	if (hits > report->hits)
		box->deaths = 0;
	report->hits = hits;
	if (report->wrote != NULL)
		report->wrote(report, hits);
	return 0;
}

bool
written_report_take(struct written_report *report, struct box *box,
    const struct box_message *message)
{
	const bool whole = message->err == 0;
	struct box_message answer = {.what = BOX_ANSWER};

	if (message->value[0] > sizeof(box->shared->report) ||
	    message->value[0] > PENDING_MAX - report->pending.len ||
	    message->value[1] < report->hits)
		return false;
	buffer_put(&report->pending, box->shared->report, message->value[0]);
	if (whole)
		answer.err = write_pending(report, box, message->value[1]);
	answer.value[0] = report->pending.written;
	if (answer.err == -EPROTO)
		return false;
	(void)box_tell(box, &answer, -1);
	return true;
}

bool
written_report_survive(struct written_report *report, struct box *box, int err)
{
	char lost[96];

	(void)snprintf(lost, sizeof(lost), "what comes after hit #%llu is not "
	    "reported", (unsigned long long)report->hits);
	report->pending.len = 0;
	return box_survive(box, err, lost);
}
