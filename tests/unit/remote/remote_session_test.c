/* remote_session: threads go on, whoever explains, and whatever has no room. */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote/remote_session.h"
#include "broker/live_broker.h"
#include "child.h"
#include "said.h"

/* Where the watched region is; nothing is ever there. */
enum { WORD = 0x10000, SAMPLES = 20000, PAST = 300, LARGE = 60000 };

static struct options options;
static struct session s;
static struct live_broker live;
static struct remote_session *remote;
static FILE *out;

static const struct perf_event_attr attr = {
	.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
	    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
	.sample_id_all = 1, .bp_addr = WORD, .bp_len = 8,
};

static bool
put_sample(uint64_t time)
{
	const struct {
		struct perf_event_header header;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
	} bytes = {
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
		    sizeof(bytes)},
		.id = 7, .ip = 4096, .pid = 10, .tid = 11, .time = time,
	};
	const struct ex_record record = {
		.type = PERF_RECORD_SAMPLE, .misc = bytes.header.misc,
		.size = sizeof(bytes), .bytes = (const uint8_t *)&bytes,
		.pid = 10, .tid = 11, .time = time, .sample = {.ip = 4096},
	};

	return session_record(&s, &record);
}

/* A record of an unknown type. */
static bool
put_large(void)
{
	static union {
		struct perf_event_header header;
		uint8_t bytes[LARGE];
	} large = {.header = {1000, 0, LARGE}};
	const struct ex_record record = {
		.type = 1000, .size = LARGE, .bytes = large.bytes, .attr = -1,
	};

	return session_record(&s, &record);
}

/* A session that has begun, and whose explainer is stopped. */
static int
begin(void **state)
{
	static char name[] = "watchctl", what[] = "-w", spec[] = "0x10000:8",
	    o[] = "-o", json[] = "json", command[] = "true";
	static char *argv[] = {name, what, spec, o, json, command, NULL};
	static const uint64_t id = 7;
	struct report_start start = {
		.pid = 10, .comm = "victim", .mode = "stop", .threads = 1,
		.frozen_ms = 1, .time = 1,
	};

	(void)state;
	options = (struct options){.form = FORM_JSON};
	if ((out = tmpfile()) == NULL || session_open(&s, &options, out) < 0)
		return -1;
	live = (struct live_broker){0};
	live_broker_make(&live, 0, argv);
	if (remote_session_open(&remote, &s, &live.broker) < 0 ||
	    session_add_watch(&s, "word", "word", WORD, 8, WP_WRITE, 1) < 0 ||
	    session_add_slot(&s, 0, WORD, 8) < 0)
		return -1;
	session_format(&s, &attr, &id, 1);
	if (session_ready(&s) < 0)
		return -1;
	session_start(&s, &start);
	(void)session_flush(&s, 0);
	remote_session_round(remote, false);
	return live.broker.pid > 0 ? kill(live.broker.pid, SIGSTOP) : -1;
}

static int
finish(void **state)
{
	(void)state;
	session_close(&s);
	remote_session_close(remote);
	live_broker_close(&live);
	return fclose(out);
}

static unsigned
hits_in_report(void)
{
	unsigned n = 0;
	char *line = NULL;
	size_t size = 0;

	rewind(out);
	while (getline(&line, &size, out) > 0)
		n += strstr(line, "{\"type\":\"hit\",") != NULL;
	free(line);
	return n;
}

/* It goes on, and all is there; the first explainer has seen to that. */
static void
expect_all(unsigned hits)
{
	char *said;

	assert_int_equal(live.broker.starts, 1);
	assert_int_equal(kill(live.broker.pid, SIGCONT), 0);
	said_begin(STDERR_FILENO);
	assert_int_equal(session_end(&s, "exit", 7, NULL), 7);
	said = said_end(STDERR_FILENO);
	assert_lacks(said, "the process that explains");
	assert_int_equal(live.broker.starts, 1);
	assert_int_equal(s.err, 0);
	assert_int_equal(s.reported, hits);
	assert_int_equal(s.lost, 0);
	assert_int_equal(hits_in_report(), hits);
}

/* Its memory is full several times over, and there are more samples than it has
   numbers for.  A hit that waits for room is passed, too, once. */
TEST_WITH(a_thread_goes_on_without_room, begin, finish)
{
	for (unsigned i = 0; i < 3 * PAST; i++)
		assert_true(put_large());
	assert_true(put_sample(1000));
	assert_true(remote_session_pass(remote, 11));
	assert_false(remote_session_pass(remote, 11));
	for (unsigned i = 1; i < SAMPLES; i++)
		assert_true(put_sample(1000 + i));
	expect_all(SAMPLES);
}

/* What it is told waits, until it listens. */
TEST_WITH(it_is_told_without_waiting, begin, finish)
{
	static struct broker_message message = {
		.what = BROKER_LEARN, .len = BROKER_BYTES_MAX,
	};

	for (unsigned i = 0; i < PAST; i++)
		assert_int_equal(broker_post(&live.broker, &message, -1), 0);
	assert_true(put_sample(1000));
	expect_all(1);
}

/* An explainer says so of what it was to read. */
static void
say_last_hit(int explainer, uint64_t time)
{
	const struct broker_message taken = {
		.what = BROKER_TAKEN, .value = {0, 0, time},
	};

	assert_int_equal(broker_send(explainer, &taken, -1), 0);
	assert_true(put_sample(time));
	(void)session_flush(&s, time);
}

/* Of one that was taken over, what it said before is kept. */
TEST_WITH(a_last_hit_does_not_go_back, begin, finish)
{
	const int its = live.broker.socket;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	live.broker.socket = fd[0];
	say_last_hit(fd[1], 500);
	assert_int_equal(s.last_hit, 500);
	say_last_hit(fd[1], 100);
	assert_int_equal(s.last_hit, 500);
	say_last_hit(fd[1], 501);
	assert_int_equal(s.last_hit, 501);
	live.broker.socket = its;
	(void)close(fd[0]);
	(void)close(fd[1]);
}

static bool
know(void *arg, const struct wp_known_stack *stack)
{
	(void)arg;
	(void)stack;
	return true;
}

static void
forget(void *arg, pid_t pid)
{
	assert_int_equal(pid, 0);
	++*(unsigned *)arg;
}

/* The next one would not say when a backtrace is to be forgotten. */
TEST_WITH(backtraces_go_with_one_that_dies_at_a_question, begin, finish)
{
	unsigned forgotten = 0;
	char *said;

	remote_session_know(remote, know, forget, &forgotten);
	assert_int_equal(kill(live.broker.pid, SIGKILL), 0);
	said_begin(STDERR_FILENO);
	assert_int_equal(live_broker_loader_hook(&live, 10), 0);
	said = said_end(STDERR_FILENO);
	assert_holds(said, "the process that explains");
	assert_int_equal(live.broker.starts, 2);
	assert_true(put_sample(1000));
	assert_int_equal(session_end(&s, "exit", 7, NULL), 7);
	assert_int_equal(forgotten, 1);
	assert_int_equal(s.reported, 1);
}

RUN_TESTS()
