/* written_report: whoever does not read it is waited for, but not for ever. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "box/message.h"
#include "box/written_report.h"

enum { KEPT = 64 << 20, PART = 1 << 18 };	/* bytes */

static struct box_shared *shared;	/* where the explainer puts it */
static struct box box;
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
	box = (struct box){.socket = ends[0], .shared = shared};
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
	(void)close(box.socket);
	(void)close(explainer);
	free(shared);
	return 0;
}

/* A part of whole lines comes while somebody waits for what explains it.  What
   it is answered; 1: nothing yet. */
static int
take_part(void)
{
	const struct box_message part = {
		.what = BOX_REPORT, .value = {PART, 1},
	};
	struct box_message answer = {.what = BOX_END};

	assert_true(written_report_take(&report, &box, &part, 0));
	return recv(explainer, &answer, sizeof(answer), MSG_DONTWAIT) <= 0 ? 1 :
	    answer.what != BOX_ANSWER ? 2 : answer.err;
}

/* It is let go on while there is room for what it reports. */
TEST_WITH(what_nobody_reads_is_kept_up_to_a_limit, begin, end)
{
	memset(shared->report, '\n', PART);
	for (size_t kept = 0; kept < KEPT; kept += PART) {
		assert_int_equal(take_part(), 1);
		written_report_answer(&report, &box);
		assert_int_equal(recv(explainer, &(struct box_message){0},
		    sizeof(struct box_message), MSG_DONTWAIT) > 0, 1);
	}
	assert_int_equal(take_part(), -ENOBUFS);
	assert_true(written_report_is_behind(&report));
}

RUN_TESTS()
