/*
 * thread_local: one instance of a thread-local variable is watched
 * (victim/locals).
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

static struct running victim_run;
static char main_id[16], worker_id[16], main_addr[32], worker_addr[32],
    errno_addr[32];

static int
start_victim(void **state)
{
	char line[256];

	(void)state;
	start(&victim_run, LIST(victim("locals"), victim("plug")));
	hear(&victim_run, line, sizeof(line));
	assert_int_equal(sscanf(line, "%15s %15s %31s %31s %31s", main_id,
	    worker_id, main_addr, worker_addr, errno_addr), 5);
	return 0;
}

static int
end_victim(void **state)
{
	struct outcome o;

	(void)state;
	(void)close(victim_run.in);
	victim_run.in = -1;
	finish_status(&victim_run, &o, 7);
	return 0;
}

static void
have(const char *what)
{
	char line[64];

	say(&victim_run, what);
	hear(&victim_run, line, sizeof(line));
	assert_string_equal(line, "done");
}

/* "own@4711:8" */
static const char *
of(const char *name, const char *tid, const char *more)
{
	static char text[4][96];
	static unsigned turn;
	char *to = text[turn++ % 4];

	(void)snprintf(to, sizeof(text[0]), "%s@%s%s", name, tid, more);
	return to;
}

/* Watch one, which is to be there, until so many hits came. */
static void
watch_one(struct outcome *o, const char *spec, const char *addr,
    const char *hits, const char *const options[])
{
	const char *argv[ARGS];
	char place[64], line[4096];
	struct running w;
	size_t n = append(argv, 0, LIST(watchctl(), "-w", spec, "-n", hits,
	    "-o", "json", "-p", main_id));

	(void)append(argv, n, options);
	watch_hear(&w, argv, line);
	(void)snprintf(place, sizeof(place), "\"addr\":\"%s\",\"len\":", addr);
	if (strstr(line, place) == NULL)
		fail_msg("not at %s: %s", addr, line);
	have("w\n");
	finish_status(&w, o, 0);
}

static void
expect_hit(const struct outcome *o, size_t i, const char *tid, const char *new)
{
	const json_t *hit = hit_at(o, i);

	assert_int_equal(number_of(hit, "tid"), atoi(tid));
	if (new != NULL && strcmp(maybe_text(hit, "new"), new) != 0)
		fail_msg("%zu: '%s', not '%s'", i, maybe_text(hit, "new"), new);
}

/* Where a thread's storage is, is not in a sample: what a thread writes into
   its own is known when it stops. */
static void
expect_instances(const char *const options[], bool stops)
{
	struct outcome o;
	char second[32];

	watch_one(&o, of("own", main_id, ""), main_addr, "2", options);
	expect_hit(&o, 0, main_id, stops ? "0x2" : NULL);
	expect_hit(&o, 1, worker_id, "0x3");

	(void)snprintf(second, sizeof(second), "%#llx",
	    strtoull(worker_addr, NULL, 16) + 8);
	watch_one(&o, of("own+8", worker_id, ":8"), second, "1", options);
	expect_hit(&o, 0, worker_id, stops ? "0x1" : NULL);
}

TEST_WITH(one_instance_in_all_threads, start_victim, end_victim)
{
	expect_instances(LIST("--delivery", "ring"), false);
}

TEST_WITH(with_stops, start_victim, end_victim)
{
	expect_instances(LIST("--stop"), true);
}

TEST_WITH(of_a_library_that_it_was_started_with, start_victim, end_victim)
{
	struct outcome o;

	watch_one(&o, of("libc.so.6!errno", main_id, ""), errno_addr, "1",
	    LIST("--delivery", "bpf"));
	expect_hit(&o, 0, main_id, "0x9");
}

TEST_WITH(beside_a_module_to_come, start_victim, end_victim)
{
	struct outcome o;

	watch_one(&o, of("libc.so.6!errno", main_id, ""), errno_addr, "1",
	    LIST("-w", "nothing!word"));
	expect_hit(&o, 0, main_id, "0x9");
}

static void
expect_own(const struct outcome *o, size_t i, const char *tid, const char *addr,
    const char *new)
{
	const json_t *hit = hit_at(o, i);

	expect_hit(o, i, tid, new);
	assert_int_equal(hex_of(hit, "addr"), strtoull(addr, NULL, 16) + 8);
	assert_int_equal(number_of(hit, "watch"), 1);
}

/* Each thread's own is watched for what that thread does, from its first
   instruction on. */
TEST_WITH(each_thread_its_own, start_victim, end_victim)
{
	enum { MADE = 20 };
	struct running w;
	struct outcome o;
	char line[4096];
	json_t *begin, *watch;

	watch_hear(&w, LIST(watchctl(), "-w", "own", "--stop", "-o", "json",
	    "-n", "22", "-p", main_id), line);
	begin = json_loads(line, 0, NULL);
	watch = json_array_get(json_object_get(begin, "watches"), 0);
	assert_true(json_is_true(json_object_get(watch, "thread_local")));
	assert_null(json_object_get(watch, "addr"));
	assert_int_equal(number_of(watch, "len"), 16);
	json_decref(begin);
	have("w\n");
	for (unsigned i = 0; i < MADE; i++)
		have("a\n");
	finish_status(&w, &o, 0);
	expect_hits(&o, 2 + MADE);
	expect_own(&o, 0, worker_id, worker_addr, "0x1");
	expect_own(&o, 1, main_id, main_addr, "0x2");
	for (size_t i = 2; i < 2 + MADE; i++) {
		assert_string_equal(text_of(hit_at(&o, i), "new"), "0x9");
		assert_string_equal(text_of(hit_at(&o, i), "value_source"),
		    "immediate");
		expect_function(hit_at(&o, i), 0, "write_again");
	}
}

TEST_WITH(each_thread_its_own_as_text, start_victim, end_victim)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "-w", "own+8:8", "--stop", "-n", "1", "-p",
	    main_id));
	await(w.out, "watching own+8 (8 bytes, each thread's own) for writes");
	have("w\n");
	finish_status(&w, &o, 0);
	assert_holds(o.out, "#1   write  own+8 (8 bytes at ");
}

/* Watch its own variable while it writes and ends. */
static void
watch_worker(struct running *w, const char *const options[])
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl(), "-w", of("own", worker_id,
	    ""), "-o", "json", "-p", main_id));

	(void)append(argv, n, options);
	watch_start(w, argv);
	have("w\n");
	have("e\n");
}

/* Another thread gets its memory, and is not watched. */
static void
expect_end(const char *const options[])
{
	struct running w;
	struct outcome o;
	char line[8192];

	watch_worker(&w, options);
	do
		hear(&w, line, sizeof(line));
	while (strstr(line, "\"warning\"") == NULL);
	if (strstr(line, "has ended, and with it its 'own@") == NULL)
		fail_msg("%s", line);
	have("a\n");
	(void)end_victim(NULL);
	finish_status(&w, &o, 0);
	for (size_t i = 0; i < count_of(&o, "hit"); i++)
		assert_string_not_equal(text_of(hit_at(&o, i), "new"), "0x9");
}

TEST_WITH(until_its_thread_ends, start_victim, NULL)
{
	expect_end(LIST("--delivery", "ring"));
}

TEST_WITH(until_its_thread_ends_with_stops, start_victim, NULL)
{
	expect_end(LIST("--stop"));
}

static void
await_gone(const char *pid, const char *tid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/task/%s", pid, tid);
	for (unsigned ms = 0; access(path, F_OK) == 0; ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
}

/* Its memory is written before watchctl takes its end in: that is not reported,
   and nothing is lost. */
static void
expect_no_other(const char *const options[])
{
	struct running w;
	struct outcome o;

	watch_worker(&w, options);
	await_gone(main_id, worker_id);
	have("a\n");
	(void)end_victim(NULL);
	finish_status(&w, &o, 0);
	assert_holds(o.err, " 0 lost");
	assert_true(count_of(&o, "hit") > 0);
	for (size_t i = 0; i < count_of(&o, "hit"); i++)
		expect_hit(&o, i, worker_id, NULL);
}

TEST_WITH(not_what_soon_follows_its_end, start_victim, NULL)
{
	expect_no_other(LIST("--delivery", "ring"));
}

TEST_WITH(not_what_soon_follows_its_end_by_bpf, start_victim, NULL)
{
	expect_no_other(LIST("--delivery", "bpf"));
}

TEST_WITH(not_what_soon_follows_its_end_with_stops, start_victim, NULL)
{
	expect_no_other(LIST("--stop"));
}

/* Whether it is traced, or is no more. */
static bool
is_traced(const char *pid, const char *tid)
{
	char path[64], line[256];
	bool traced = true;
	int tracer;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%s/task/%s/status", pid, tid);
	if ((f = fopen(path, "r")) == NULL)
		return true;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			traced = tracer != 0;
	(void)fclose(f);
	return traced;
}

/* Its end is seen, if it is killed as its thread's storage is looked for: there
   is no other process for which this one could be left out. */
TEST_WITH(of_a_process_that_ends_meanwhile, start_victim, NULL)
{
	siginfo_t info = {.si_pid = 0};
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "-w", of("own", worker_id, ""), "-w",
	    "nothing!word", "-p", main_id));
	while (!is_traced(main_id, worker_id) && waitid(P_PID, (id_t)w.pid,
	    &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
		;
	assert_int_equal(kill(victim_run.pid, SIGKILL), 0);
	finish(&w, &o);
	if (strstr(o.err, "skipped") != NULL)
		fail_msg("status %d: %s", o.status, o.err);
	finish(&victim_run, &o);
}

static void
expect_refused(const char *spec, const char *why, const char *pid)
{
	struct outcome o;

	run_status(&o, 125, LIST(watchctl(), "-w", spec, "-t", "60", "-p",
	    pid));
	if (strstr(o.err, why) == NULL ||
	    strchr(o.err, '\n') != o.err + strlen(o.err) - 1)
		fail_msg("not '%s': %s", why, o.err);
}

TEST_WITH(what_has_no_place, start_victim, end_victim)
{
	struct target t;
	struct outcome o;

	expect_refused("own@1", "the process has no such thread", main_id);
	expect_refused("own@0", "no thread has this id at '0' (column 5)",
	    main_id);
	expect_refused(of("of_main", main_id, ""), "this is not thread-local",
	    main_id);
	expect_refused(of("own+16", main_id, ""), "beyond the symbol's end",
	    main_id);
	expect_refused(of("plug!plug_local", main_id, ""), "was opened later",
	    main_id);
	run_status(&o, 125, LIST(watchctl(), "-w", "plug!plug_local", "--stop",
	    "-t", "60", "-p", main_id));
	assert_holds(o.err, "its place in the threads cannot be "
	    "found: the module was opened later");
	run_status(&o, 125, LIST(watchctl(), "-w", "own@1", "--",
	    victim("locals")));
	assert_holds(o.err, "is watched with -p alone");
	run_status(&o, 125, LIST(watchctl(), "-x", of("own", main_id, ""), "-p",
	    main_id));
	assert_holds(o.err, "this is data");
	run(&o, LIST(watchctl(), "-w", of("own+8", main_id, ""), "-t", "0.1",
	    "-p", main_id));
	assert_holds(o.out, of("watching own+8", main_id, " (8 bytes at "));
	target_start(&t, LIST(victim("counter_static")));
	run(&o, LIST(watchctl(), "-w", of("local", t.pid, ""), "-t", "0.1",
	    "-p", t.pid));
	assert_holds(o.out, of("watching local", t.pid, " (8 bytes at "));
	target_end(&t, 7);
}

RUN_LIVE_TESTS()
