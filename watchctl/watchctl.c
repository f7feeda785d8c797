/*
 * watchctl: who touched this memory?
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/cause.h"
#include "broker/broker_report.h"
#include "broker/symbolize_log.h"
#include "util/complain.h"
#include "util/debuginfod.h"
#include "complete.h"
#include "doctor.h"
#include "helper/helper.h"
#include "heap/run_heap.h"
#include "helper/run_inside.h"
#include "merge/merge.h"
#include "session/crash_account.h"
#include "option/option_table.h"
#include "option/options.h"
#include "proc/proc.h"
#include "watch.h"

static int
is(const char *word, const char *verb)
{
	return word != NULL && strcmp(word, verb) == 0;
}

/* Check that /proc belongs to this PID namespace.  What another one shows would
   be about other processes. */
static bool
has_proc(void)
{
	struct wp_cause cause;

	if (wp_proc_check(&cause) == 0)
		return true;
	(void)complain("%s", cause.text);
	return false;
}

/* Open /dev/null in place of closed standard descriptors.  Otherwise another
   file could get such a number, and reports would be written into it.  The
   command finds them closed. */
static void
fill_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int
main(int argc, char **argv)
{
	bool report = is(argv[1], "report");
	struct options options;
	int status;

	fill_standard();
	crash_account_install();
	if (is(argv[1], "doctor")) {
		if (!is(argv[2], "--help") && !is(argv[2], "-h"))
			return doctor(argc - 1, argv + 1,
			    "/proc/self/exe", stdout);
		argc--;		/* it is in the help of all */
		argv++;
	}
	if (is(argv[1], "debuginfod") && argv[2] != NULL)
		return debuginfod(argv[2]);
	if (is(argv[1], "__complete") && argv[2] != NULL)
		return complete(argv[2], argc - 3, argv + 3);
	if (is(argv[1], "__synopsis"))
		return option_synopsis(stdout), 0;
	if (is(argv[1], "helper"))
		return helper();
	status = report ? options_parse_report(argc - 1, argv + 1, &options) :
	    options_parse(argc, argv, &options);
	if (status != 0) {
		status = status > 0 ? 0 : STATUS_OWN_FAILURE;
	} else if (report) {
		status = merge_wanted(&options) ? merge(&options) :
		    symbolize_log_is_log(options.file) ?
		    symbolize_log(&options) : broker_report(&options, argv + 1);
	} else if (!has_proc()) {
		status = STATUS_OWN_FAILURE;
	} else if (options.heap) {
		status = run_heap(&options);
	} else if (options.inside) {
		status = run_inside(&options);
	} else {
		status = watch(&options);
	}
	options_free(&options);
	return status;
}
