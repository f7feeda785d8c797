/*
 * broker: an explainer that has been taken over, which reads a recording: what
 * it may not do fails, and the report ends.
 */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/broker.h"
#include "command.h"
#include "explainers.h"
#include "made_recording.h"
#include "said.h"
#include "scratch.h"

enum { ADDR = 0x404090, BASE = 0x100000, HITS = 2 };

static char recording[PATH_MAX];

struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time, addr;
	uint32_t cpu, res;
};

struct mapping {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, len, pgoff;
	char file[PATH_MAX];
	struct sample_end {
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, res;
		uint64_t id;
	} end;
};

/* The victim `counter', whose code did it. */
static void
put_mapping(struct ex_perfwriter *w)
{
	struct mapping m = {
		.header = {PERF_RECORD_MMAP, PERF_RECORD_MISC_USER,
		    sizeof(m)},
		.pid = 7, .tid = 7, .start = BASE, .len = 0x1000,
		.pgoff = 0x1000, .end = {7, 7, 1, 0, 0, 1},
	};

	(void)snprintf(m.file, sizeof(m.file), "%s", victim("counter"));
	assert_int_equal(ex_perfwriter_record(w, &m), 0);
}

static int
make_recording(void **state)
{
	struct sample s = {
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
		    sizeof(s)},
		.id = 1, .ip = BASE + 0x200, .pid = 7, .tid = 7, .addr = ADDR,
	};
	struct ex_perfwriter *w;

	if (scratch_make(state) != 0)
		return -1;
	(void)snprintf(recording, sizeof(recording), "%s", scratch_path("p"));
	w = made_recording(recording, ADDR, 0);
	put_mapping(w);
	for (s.time = 1; s.time <= HITS; s.time++)
		assert_int_equal(ex_perfwriter_record(w, &s), 0);
	return ex_perfwriter_close(w);
}

#if !SANITIZED	/* whose library must come first, and calls what it likes */
/* Nothing that it tries works, and everything else does. */
TEST(what_the_explainer_may_not_do_fails)
{
	struct running w;
	struct outcome o;

	start_intruded("symbols-try", &w, LIST(watchctl(), "report",
	    recording));
	finish_status(&w, &o, 0);
	assert_lacks(o.err, "warning");
	assert_holds(o.err, "2 hits, 2 reported, 0 lost");
	assert_holds(o.out, "counter");
}

/* Hear one that reports without end.  Result: as of broker_hear. */
static int
hear_report(const char *what, struct broker *broker)
{
	const struct broker_message go = {.what = BROKER_GO};
	const struct broker_message more = {.what = BROKER_ANSWER};
	struct broker_message message;
	int err;

	intrude(what);
	assert_int_equal(broker_start(broker), 0);
	(void)unsetenv("LD_PRELOAD");
	(void)broker_post(broker, &go, -1);
	while ((err = broker_hear(broker, &message)) == 0) {
		assert_int_equal(message.what, BROKER_REPORT);
		(void)broker_post(broker, &more, -1);
	}
	return err;
}

/* Progress without end, of one that works or sleeps in between, is none: the
   next one reads no module, and is the last. */
TEST(a_report_has_to_end)
{
	static const char *const what[] = {
		"every-asks", "every-naps", "every-reports",
	};

	for (size_t i = 0; i < COUNT(what); i++) {
		char report[] = "report", *argv[] = {report, recording, NULL};
		struct broker broker = {
			.argv = argv, .answers.file = recording,
			.may_be_plain = true, .patience = 0.02,
		};
		char *said;

		said_begin(STDERR_FILENO);
		assert_int_equal(hear_report(what[i], &broker), -EDQUOT);
		assert_true(broker_survive(&broker, -EDQUOT, "lost"));
		assert_true(broker.plain);
		assert_int_equal(broker_start(&broker), 0);
		assert_false(broker_survive(&broker, -EDQUOT, "no more"));
		said = said_end(STDERR_FILENO);
		assert_holds(said, "was not done after 0 seconds: all "
		    "functions and lines are left out from here on");
		assert_holds(said, "was not done after 0 seconds: no more");
		broker_close(&broker);
	}
}
#endif

RUN_TESTS(.before_all = make_recording, .after_all = scratch_remove)
