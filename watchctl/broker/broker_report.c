/* broker_report: a recording, explained by one explainer after another. */
#include "broker/broker_report.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/broker.h"
#include "broker/written_report.h"
#include "report/output.h"
#include "report/report.h"
#include "util/complain.h"

struct boxed_report {
	struct broker broker;		/* must be first */
	const struct options *options;
	struct output output;
	struct written_report written;
	bool ended;		/* it has finished, */
	int status;		/* with this exit status */
};

/* Send the explainer the state of the report. */
static void
brief(struct broker *broker)
{
	const struct boxed_report *report = (const void *)broker;
	struct broker_message message = {
		.what = BROKER_BEGIN, .err = report->written.begun,
		.value = {report->written.hits, report->written.screen.colour,
		    report->written.screen.columns},
	};

	/* if it has died, that will be noticed soon */
	(void)broker_post(broker, &message, -1);
	message = (struct broker_message){.what = BROKER_GO};
	(void)broker_post(broker, &message, -1);
}

/* Returns false if the message is invalid. */
static bool
take_message(struct boxed_report *report, const struct broker_message *message)
{
	if (message->what == BROKER_REPORT)
		return written_report_take(&report->written, &report->broker,
		    message, -1);
	if (message->what != BROKER_END || message->value[0] > 255)
		return false;
	report->ended = true;
	report->status = (int)message->value[0];
	return true;
}

/* Whether the file being read has been truncated. */
static bool
is_cut_short(const struct boxed_report *report)
{
	struct stat st;

	return stat(report->options->file, &st) == 0 &&
	    st.st_size < report->broker.answers.size;
}

/* Whether another explainer is to continue. */
static bool
survive(struct boxed_report *report, int err)
{
	report->status = STATUS_OWN_FAILURE;
	if (!is_cut_short(report))
		return written_report_survive(&report->written, &report->broker,
		    err);
	(void)complain("%s was cut short while it was read: what comes after "
	    "hit #%llu is not reported", report->options->file,
	    (unsigned long long)report->written.hits);
	return broker_survive(&report->broker, err, NULL);
}

/* Run one explainer.  Returns whether another is to continue. */
static bool
run(struct boxed_report *report)
{
	struct broker_message message;
	int err;

	if (broker_start(&report->broker) < 0) {
		report->status = STATUS_OWN_FAILURE;
		return false;
	}
	do {
		err = broker_hear(&report->broker, &message);
		if (err == 0 && !take_message(report, &message))
			err = -EPROTO;
	} while (err == 0 && !report->ended);
	if (err < 0)
		return survive(report, err);
	(void)broker_wait(&report->broker);
	if (written_report_finish(&report->written) < 0)
		report->status = STATUS_OWN_FAILURE;
	return false;
}

int
broker_report(const struct options *options, char **argv)
{
	struct boxed_report report = {
		.options = options,
		.broker = {
			.argv = argv, .memory = options->explain_memory,
			.brief = brief, .may_be_plain = true,
			.answers.file = options->file,
			.answers.no_cache = options->no_cache,
			.answers.sources = options->form == FORM_HTML,
			.answers.policy = &options->policy,
		},
	};

	/* if the reader has gone, the write fails */
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
	broker_close(&report.broker);
	return complain_failed() ? STATUS_OWN_FAILURE : report.status;
}
