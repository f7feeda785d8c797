/* box_report: a recording, explained by one explainer after the other. */
#include "box/box_report.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "box/box.h"
#include "box/written_report.h"
#include "report/output.h"
#include "report/report.h"
#include "util/complain.h"

struct boxed_report {
	struct box box;		/* first */
	const struct options *options;
	struct output output;
	struct written_report written;
	bool ended;		/* it is done, */
	int status;		/* with this exit status */
};

/* How far the report is. */
static void
brief(struct box *box)
{
	const struct boxed_report *report = (const void *)box;
	struct box_message message = {
		.what = BOX_BEGIN, .err = report->written.begun,
		.value = {report->written.hits, report->written.screen.colour,
		    report->written.screen.columns},
	};

	/* if it is dead already, this shows soon */
	(void)box_tell(box, &message, -1);
	message = (struct box_message){.what = BOX_GO};
	(void)box_tell(box, &message, -1);
}

/* False: it makes no sense. */
static bool
take_message(struct boxed_report *report, const struct box_message *message)
{
	if (message->what == BOX_REPORT)
		return written_report_take(&report->written, &report->box,
		    message, -1);
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
	report->status = STATUS_OWN_FAILURE;
	if (!is_cut_short(report))
		return written_report_survive(&report->written, &report->box,
		    err);
	(void)complain("%s was cut short while it was read: what comes after "
	    "hit #%llu is not reported", report->options->file,
	    (unsigned long long)report->written.hits);
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
	if (written_report_finish(&report->written) < 0)
		report->status = STATUS_OWN_FAILURE;
	return false;
}

int
box_report(const struct options *options, char **argv)
{
	struct boxed_report report = {
		.options = options,
		.box = {
			.argv = argv, .memory = options->explain_memory,
			.brief = brief, .may_be_plain = true,
			.answers.file = options->file,
			.answers.no_cache = options->no_cache,
			.answers.sources = options->form == FORM_HTML,
			.answers.policy = &options->policy,
		},
	};

	/* a report whose reader has gone ends by its error */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (output_open(&report.output, options, stdout) < 0) {
		report.status = STATUS_OWN_FAILURE;
	} else {
		report.written.output = &report.output;
		if (options_text(options))
			report.written.screen =
			    output_screen(report.output.stream);
		while (run(&report))
			;
	}
	output_close(&report.output);
	written_report_free(&report.written);
	box_close(&report.box);
	return complain_failed() ? STATUS_OWN_FAILURE : report.status;
}
