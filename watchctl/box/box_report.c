/* box_report: a recording, explained by one explainer after the other. */
#include "box/box_report.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "box/box.h"
#include "report/output.h"
#include "report/report.h"
#include "util/buffer.h"
#include "util/complain.h"
#include "util/visible.h"

enum { PENDING_MAX = 64 << 20 };	/* bytes of a report in one piece */

struct boxed_report {
	struct box box;		/* first */
	const struct options *options;
	struct output output;
	bool colour;
	bool raw;		/* the report is passed on as it is */
	bool begun;		/* something is written of it, */
	uint64_t hits;		/* and these */
	struct buffer pending;	/* what is not written yet */
	bool ended;		/* it is done, */
	int status;		/* with this exit status */
};

/* How far the report is. */
static void
brief(struct box *box)
{
	const struct boxed_report *report = (const void *)box;
	struct box_message message = {
		.what = BOX_BEGIN, .err = report->begun,
		.value = {report->hits, report->colour},
	};

	/* if it is dead already, this shows soon */
	(void)box_tell(box, &message, -1);
	message = (struct box_message){.what = BOX_GO};
	(void)box_tell(box, &message, -1);
}

/* Write what is pending: whole lines. */
static int
write_pending(struct boxed_report *report, uint64_t hits)
{
	struct buffer *pending = &report->pending;
	int err = 0;

	if (pending->failed)
		return -ENOMEM;
	if (!report->raw && (pending->len == 0 ||
	    pending->bytes[pending->len - 1] != '\n' ||
	    !visible_is_harmless(pending->bytes, pending->len, report->colour)))
		return -EPROTO;
	if (!report->begun)
		err = output_begin(&report->output);
	report->begun = true;
	if (hits > report->hits)
		report->box.deaths = 0;
	report->hits = hits;
	return err < 0 ? err : buffer_write(pending, report->output.stream);
}

/* False: it lies. */
static bool
take_report(struct boxed_report *report, const struct box_message *message)
{
	const bool whole = message->err == 0;
	struct box_message answer = {.what = BOX_ANSWER};

	if (message->value[0] > sizeof(report->box.shared->report) ||
	    message->value[0] > PENDING_MAX - report->pending.len ||
	    message->value[1] < report->hits)
		return false;
	buffer_put(&report->pending, report->box.shared->report, message->value[0]);
	if (whole)
		answer.err = write_pending(report, message->value[1]);
	if (answer.err == -EPROTO)
		return false;
	(void)box_tell(&report->box, &answer, -1);
	return true;
}

/* False: it makes no sense. */
static bool
take_message(struct boxed_report *report, const struct box_message *message)
{
	if (message->what == BOX_REPORT)
		return take_report(report, message);
	if (message->what != BOX_END || message->value[0] > 255)
		return false;
	report->ended = true;
	report->status = (int)message->value[0];
	return true;
}

/* Whether what it was reading is not there any more. */
static bool
is_cut_short(const struct boxed_report *report)
{
	struct stat st;

	return stat(report->options->file, &st) == 0 &&
	    st.st_size < report->box.answers.size;
}

/* Whether another is to go on. */
static bool
survive(struct boxed_report *report, int err)
{
	char lost[96];

	(void)snprintf(lost, sizeof(lost), "what comes after hit #%llu is not "
	    "reported", (unsigned long long)report->hits);
	report->pending.len = 0;
	report->status = STATUS_OWN_FAILURE;
	if (!is_cut_short(report))
		return box_survive(&report->box, err, lost);
	(void)complain("%s was cut short while it was read: %s",
	    report->options->file, lost);
	return box_survive(&report->box, err, NULL);
}

/* One explainer.  Result: whether another is to go on. */
static bool
run(struct boxed_report *report)
{
	struct box_message message;
	int err;

	if (box_start(&report->box) < 0) {
		report->status = STATUS_OWN_FAILURE;
		return false;
	}
	do {
		err = box_hear(&report->box, &message);
		if (err == 0 && !take_message(report, &message))
			err = -EPROTO;
	} while (err == 0 && !report->ended);
	if (err < 0)
		return survive(report, err);
	(void)box_wait(&report->box);
	return false;
}

int
box_report(const struct options *options, char **argv)
{
	struct boxed_report report = {
		.options = options,
		.box = {
			.argv = argv, .memory = options->explain_memory,
			.brief = brief, .answers.file = options->file,
			.answers.no_cache = options->no_cache,
		},
	};

	/* a report whose reader has gone ends by its error */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (output_open(&report.output, options, stdout) < 0) {
		report.status = STATUS_OWN_FAILURE;
	} else {
		report.colour = options->form == FORM_TEXT &&
		    report_wants_colour(report.output.stream);
		while (run(&report))
			;
	}
	output_close(&report.output);
	buffer_free(&report.pending);
	box_close(&report.box);
	return complain_failed() ? STATUS_OWN_FAILURE : report.status;
}
