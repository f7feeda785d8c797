/* process: what is remembered of programs that are looked at. */
#include "test.h"

#include <unistd.h>

#include "run/run.h"

/* Each program that is executed is learnt: whoever explains has it then, and
   nothing else of it grows. */
static void
learn_often(struct run *run, struct remote_session *remote)
{
	struct process process = {.pid = getpid()};
	struct wp_cause cause = {0};

	run->remote = remote;
	live_broker_make(&run->live, 0, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(run_learn(run, &process, true, &cause), 0);
	assert_string_equal(process.comm, "process_test");
	live_broker_close(&run->live);
}

TEST(what_is_learnt_is_kept_for_recordings_only)
{
	static const struct run_ops ops = {.mode = "ring"};
	struct run run = {.ops = &ops}, recorded = {.ops = &ops};

	learn_often(&run, (struct remote_session *)&run);
	assert_int_equal(run.synthetic.len, 0);
	learn_often(&recorded, NULL);
	assert_true(recorded.synthetic.len > 0);
	synthetic_records_free(&run.synthetic);
	synthetic_records_free(&recorded.synthetic);
}

RUN_TESTS()
