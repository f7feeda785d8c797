/* written_report: whoever does not read it is waited for, but not for ever. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/message.h"
#include "broker/written_report.h"

enum { KEPT = 64 << 20, PART = 1 << 18 };	/* bytes */

static struct broker_shared *shared;	/* where the explainer puts it */
static struct broker broker;
static int explainer;			/* its end of the socket */
static struct output output;
static struct written_report report;
static int reader;			/* the other end of the output */

static int
begin(void **state)
{
	int ends[2];

	(void)state;
	shared = calloc(1, sizeof(*shared));
	assert_non_null(shared);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    ends), 0);
	explainer = ends[1];
	broker = (struct broker){.socket = ends[0], .shared = shared};
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	reader = ends[0];
	output = (struct output){
		.stream = fdopen(ends[1], "w"), .file = -1, .own = true,
	};
	assert_non_null(output.stream);
	report = (struct written_report){.output = &output, .begun = true};
	return 0;
}

static int
end(void **state)
{
	(void)state;
	(void)close(reader);
	written_report_free(&report);
	output_close(&output);
	(void)close(broker.socket);
	(void)close(explainer);
	free(shared);
	return 0;
}

/* A part of whole lines comes while somebody waits for what explains it.  What
   it is answered; 1: nothing yet. */
static int
take_part(void)
{
	const struct broker_message part = {
		.what = BROKER_REPORT, .value = {PART, 1},
	};
	struct broker_message answer = {.what = BROKER_END};

	assert_true(written_report_take(&report, &broker, &part, 0));
	return recv(explainer, &answer, sizeof(answer), MSG_DONTWAIT) <= 0 ? 1 :
	    answer.what != BROKER_ANSWER ? 2 : answer.err;
}

/* It is let go on while there is room for what it reports. */
TEST_WITH(what_nobody_reads_is_kept_up_to_a_limit, begin, end)
{
	memset(shared->report, '\n', PART);
	for (size_t kept = 0; kept < KEPT; kept += PART) {
		assert_int_equal(take_part(), 1);
		written_report_answer(&report, &broker);
		assert_int_equal(recv(explainer, &(struct broker_message){0},
		    sizeof(struct broker_message), MSG_DONTWAIT) > 0, 1);
	}
	assert_int_equal(take_part(), -ENOBUFS);
	assert_true(written_report_is_behind(&report));
}

RUN_TESTS()
