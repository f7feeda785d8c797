/*
 * watchctl: who touched this memory?
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cause.h"
#include "complain.h"
#include "doctor.h"
#include "helper.h"
#include "inside_run.h"
#include "options.h"
#include "plain.h"
#include "proc.h"
#include "replay.h"
#include "watch.h"

static int
is(const char *word, const char *verb)
{
	return word != NULL && strcmp(word, verb) == 0;
}

/* Without /proc all that could be said of a process would be wrong. */
static bool
has_proc(void)
{
	struct wp_cause cause;

	if (wp_proc_mounted())
		return true;
	(void)wp_cause_set(&cause, WP_CAUSE_NO_PROC);
	(void)complain("%s", cause.text);
	return false;
}

int
main(int argc, char **argv)
{
	bool report = is(argv[1], "report");
	struct options options;
	int status;

	if (is(argv[1], "doctor"))
		return doctor(argc - 1, argv + 1, stdout);
	if (is(argv[1], "helper"))
		return helper();
	status = report ? options_parse_report(argc - 1, argv + 1, &options) :
	    options_parse(argc, argv, &options);
	if (status != 0) {
		status = status > 0 ? 0 : STATUS_OWN_FAILURE;
	} else if (report) {
		status = plain_is_log(options.file) ? plain(&options) :
		    replay(&options);
	} else if (!has_proc()) {
		status = STATUS_OWN_FAILURE;
	} else if (options.inside) {
		status = inside_run(&options);
	} else {
		status = watch(&options);
	}
	options_free(&options);
	return status;
}
