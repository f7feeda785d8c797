/*
 * uptime: for how long, and in how many threads, watches were on; and the
 * report if one was not, because somebody disabled its events.
 */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <time.h>

#include "attach/samplers.h"
#include "live.h"
#include "proc/proc.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"

enum {
	NOT_VOUCHED = 120,
	SHARE = 4,		/* of a process's time that has to be found
				   again: the scheduler's clock is another */
};

/* What a process has run so far, ns. */
static uint64_t
has_run(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Let it run for a while.  Result: how long it did, ns. */
static uint64_t
let_run(pid_t pid)
{
	const uint64_t before = has_run(pid);

	while (has_run(pid) < before + 50000000)
		(void)usleep(1000);
	return has_run(pid) - before;
}

/* The kernel says of which type an event is. */
static bool
is_breakpoint(int fd)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
	};

	return wp_perf_modify(fd, &attr) == -EINVAL;
}

static bool
is_event(pid_t pid, const char *fd)
{
	char path[300], target[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	    strcmp(target, "anon_inode:[perf_event]") == 0;
}

/* Take all watches that a process has opened, and do this to them.  Result: how
   many. */
static unsigned
seize(pid_t pid, int (*act)(int fd))
{
	const int pidfd = pidfd_open(pid, 0);
	const struct dirent *entry;
	unsigned n = 0;
	char path[64];
	DIR *dir;

	assert_true(pidfd >= 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	assert_non_null(dir = opendir(path));
	while ((entry = readdir(dir)) != NULL) {
		int fd = !is_event(pid, entry->d_name) ? -1 :
		    pidfd_getfd(pidfd, atoi(entry->d_name), 0);

		if (fd >= 0 && is_breakpoint(fd))
			n += act(fd) == 0;
		if (fd >= 0)
			(void)close(fd);
	}
	(void)closedir(dir);
	(void)close(pidfd);
	return n;
}

/* Who traces the one child of a process. */
static pid_t
tracer_of_command(pid_t pid)
{
	char path[64], line[512];
	pid_t child = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid,
	    pid);
	assert_non_null(f = fopen(path, "re"));
	while (fgets(line, sizeof(line), f) != NULL)
		for (char *at = line, *end; (child = (pid_t)strtol(at, &end,
		    10)) > 0; at = end)
			if (wp_proc_tracer(child) != 0)
				break;
	(void)fclose(f);
	assert_true(child > 0);
	return wp_proc_tracer(child);
}

/* Watch what nobody writes, of a process with threads that calculate, sleep,
   and come and go. */
static void
watch_busy(struct running *w, const struct target *t, const char *option)
{
	watch_start(w, LIST(watchctl(), "-w", "wrong", "-o", "json",
	    "--error-exitcode", "66", "-p", t->pid, option));
}

static void
watch_end(struct running *w, struct outcome *o)
{
	assert_int_equal(kill(w->pid, SIGINT), 0);
	finish(w, o);
}

/* It has not noticed anything. */
static void
busy_end(struct target *t)
{
	struct outcome o;

	say(&t->run, "end\n");
	finish_status(&t->run, &o, 7);
}

static const char *const ways[] = {NULL, "--stop", "-f", "--count"};

/* Watch in the i-th way, with a gap or without.  Result: for how long it ran
   since, ns. */
static uint64_t
watch_once(struct outcome *o, size_t i, bool gap, int status)
{
	struct running w;
	struct target t;
	uint64_t ran;

	target_start(&t, LIST(victim("busy"), "alone"));
	watch_busy(&w, &t, ways[i]);
	ran = let_run(t.run.pid);
	if (gap) {
		assert_true(seize(w.pid, wp_perf_disable) > 0);
		ran = let_run(t.run.pid);
	}
	watch_end(&w, o);
	busy_end(&t);
	if (o->status != status)
		fail_msg("%zu: status %d: %s", i, o->status, o->err);
	return ran;
}

TEST(watches_are_on_all_the_time)
{
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct outcome o;
		const uint64_t ran = watch_once(&o, i, false, 0);
		const json_t *end = first_of(&o, "end");

		assert_int_equal(number_of(end, "gap_ns"), 0);
		assert_true(number_of(end, "watched_ns") >=
		    (json_int_t)ran / SHARE);
		/* all of busy's, and those that it made meanwhile */
		if (ways[i] == NULL || strcmp(ways[i], "--count") != 0)
			assert_true(number_of(end, "threads") > 6);
		else
			assert_null(json_object_get(end, "threads"));
		assert_holds(o.err, "\nwatchctl: the watches were on "
		    "for the ");
	}
}

static int
halve(int fd)
{
	return wp_perf_period(fd, 2);
}

/* Hits are counted, and every other one is delivered to nobody. */
static void
watch_halved(const char *delivery, struct outcome *account)
{
	struct running w;
	struct target t;
	struct outcome o;

	target_start(&t, LIST(victim("counter"), "1", "10"));
	watch_start(&w, LIST(watchctl(), "--delivery", delivery, "-w", t.addr,
	    "-o", "json", "--error-exitcode", "9", "--allow", "*", "-p",
	    t.pid));
	assert_true(seize(w.pid, halve) > 0);
	say(&t.run, "go\nend\n");
	finish(&t.run, &o);
	assert_string_equal(o.out, "done\n");
	finish(&w, account);
	assert_int_equal(number_of(account_of(account), "hits"), 10);
	assert_int_equal(number_of(account_of(account), "lost"), 5);
	assert_int_equal(account->status, NOT_VOUCHED);
}

/* The kernel says nothing where it runs no program: then what the hit before
   left is not what was found, and what was reported is taken back. */
TEST(hits_that_no_program_gets_take_values_back)
{
	static const char back[] = "old values in this report may be wrong";
	struct wp_cause cause;
	struct wp_options options = {0};
	struct wp_rings *rings;
	struct outcome o;
	json_t *hit;
	size_t i;

	watch_halved("ring", &o);
	assert_lacks(o.err, back);
	if (wp_samplers_rings(&rings, &options, true, 128 << 10,
	    NULL, &cause) < 0) {
		print_message("%s\n", cause.text);
		skip();
	}
	wp_rings_close(rings);
	watch_halved("bpf", &o);
	each_hit(&o, i, hit)
		if (json_object_get(hit, "old") != NULL)
			assert_int_equal(hex_of(hit, "new"),
			    hex_of(hit, "old") + 1);
	assert_holds(o.err, back);
	assert_holds(text_of(first_of(&o, "warning"), "text"), back);
}

TEST(a_gap_is_no_green_exit)
{
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct outcome o;
		const uint64_t ran = watch_once(&o, i, true, NOT_VOUCHED);
		const json_t *end = first_of(&o, "end");

		assert_true(number_of(end, "gap_ns") >=
		    (json_int_t)ran / SHARE);
		assert_true(number_of(end, "watched_ns") > 0);
		assert_holds(o.err, "wrong was not watched for ");
		assert_holds(o.err, " in thread ");
	}
}

/* What a report in a file says at its end. */
static void
take_report(struct outcome *o)
{
	outcome_take(o, scratch_path("report"));
	if (first_of(o, "end") == NULL)
		fail_msg("no report: %s", o->err);
}

/* A program with a library of ours, that calculates until it is told to end, or
   until it is watched no more. */
static void
watch_inside(struct running *w, const char *seconds)
{
	char address[32];

	(void)unlink(scratch_path("report"));
	start(w, LIST(watchctl(), "--inside", "-w", "wrong", "--error-exitcode",
	    "66", "-t", seconds, "-o", "json", "-O", scratch_path("report"),
	    "--", victim("busy")));
	hear_address(w, address);
}

static const char *const deliveries[] = {"ptrace", "sigtrap", "async"};
static bool refused;			/* are perf events */

enum { DELIVERIES = sizeof(deliveries) / sizeof(deliveries[0]) };

static void
deliver(const char *how)
{
	(void)(how != NULL && !refused ? setenv("WATCHPOINT_DELIVERY", how, 1) :
	    unsetenv("WATCHPOINT_DELIVERY"));
}

TEST(inside_too_they_are_on_all_the_time)
{
	static const char *const seconds[] = {"60", "0.1"};
	const size_t n = refused ? 1 : DELIVERIES;

	for (size_t i = 0; i < COUNT(seconds) * n; i++) {
		const char *time = seconds[i / n];
		struct running w;
		struct outcome o;
		const json_t *end;

		deliver(deliveries[i % n]);
		watch_inside(&w, time);
		(void)usleep(200000);
		say(&w, "end\n");
		finish(&w, &o);
		take_report(&o);
		end = first_of(&o, "end");
		/* busy makes children, which is a reason of its own; and it may
		   not have run yet when the time is over */
		if (number_of(end, "gap_ns") != 0 ||
		    number_of(end, "watched_ns") < (i < n) ||
		    strstr(o.err, "was not watched for") != NULL)
			fail_msg("%s, %s: status %d: %s", deliveries[i % n],
			    time, o.status, o.err);
	}
	deliver(NULL);
}

static void
run_guest(struct outcome *o, const char *const acts[2])
{
	(void)unlink(scratch_path("report"));
	run(o, LIST(watchctl(), "--inside", "-f", "-w", "state", "--user-only",
	    "--allow", "guest.c", "--error-exitcode", "66", "-o", "json", "-O",
	    scratch_path("report"), "--", victim("guest"), acts[0], acts[1]));
	take_report(o);
}

/* And of children; but not of one that has executed another program. */
TEST(threads_inside_are_counted)
{
	static const struct {
		const char *acts[2];
		unsigned threads;
		bool unknown;
	} runs[] = {
		{{"thread", "thread"}, 3}, {{"fork", "fork_in_thread"}, 4},
		{{"forks"}, 41}, {{"fork_and_die"}, 2},
		{{"fork_and_execute", "thread"}, 2, true},
	};
	const size_t n = refused ? 1 : DELIVERIES;

	for (size_t i = 0; i < COUNT(runs) * n; i++) {
		const size_t k = i / n;
		struct outcome o;
		const json_t *end;

		deliver(deliveries[i % n]);
		run_guest(&o, runs[k].acts);
		end = first_of(&o, "end");
		if (o.status != 7 || number_of(end, "gap_ns") != 0 ||
		    number_of(end, "watched_ns") <= 0 ||
		    number_of(end, "threads") != runs[k].threads ||
		    (json_object_get(end, "unmeasured") != NULL) !=
		    runs[k].unknown)
			fail_msg("%s, %s: %d threads, status %d: %s",
			    deliveries[i % n], runs[k].acts[0],
			    (int)number_of(end, "threads"), o.status, o.err);
		assert_int_equal(strstr(o.err, "; of 1 process that is not "
		    "known") != NULL, runs[k].unknown);
	}
	deliver(NULL);
}

/* The child alone is not watched, and makes no hit. */
TEST(a_gap_in_a_child_is_no_green_exit)
{
	struct outcome o;

	deliver("sigtrap");
	run_guest(&o, (const char *[2]){"disable_in_child"});
	deliver(NULL);
	if (o.status != NOT_VOUCHED ||
	    number_of(first_of(&o, "end"), "gap_ns") <= 0 ||
	    strstr(o.err, "state was not watched for ") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

TEST(a_gap_inside_is_reported)
{
	for (size_t i = 1; i < DELIVERIES; i++) {	/* by events */
		const bool traced = strcmp(deliveries[i], "async") == 0;
		struct running w;
		struct outcome o;
		pid_t owner;

		deliver(deliveries[i]);
		watch_inside(&w, "60");
		owner = traced ? tracer_of_command(w.pid) : w.pid;
		assert_true(seize(owner, wp_perf_disable) > 0);
		(void)usleep(20000);
		say(&w, "end\n");
		finish(&w, &o);
		take_report(&o);
		if (o.status != NOT_VOUCHED ||
		    number_of(first_of(&o, "end"), "gap_ns") <= 0 ||
		    strstr(o.err, "wrong was not watched for ") == NULL)
			fail_msg("%s: status %d: %s", deliveries[i], o.status,
			    o.err);
	}
	deliver(NULL);
}

/* Threads that come and go are in it from their first instruction to their
   last. */
TEST(debug_registers_are_on_all_the_time)
{
	struct running w;
	struct outcome o;
	struct target t;
	const json_t *end;
	uint64_t ran;

	target_start(&t, LIST(victim("busy"), "alone"));
	watch_busy(&w, &t, "--stop");
	ran = let_run(t.run.pid);
	watch_end(&w, &o);
	busy_end(&t);
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.err);
	end = first_of(&o, "end");
	assert_int_equal(number_of(end, "gap_ns"), 0);
	assert_true(number_of(end, "watched_ns") >= (json_int_t)ran / SHARE);
	assert_true(number_of(end, "threads") > 6);
}

/* watchctl cannot look at the program's events, as for want of descriptors. */
TEST(an_unknown_time_is_no_green_exit)
{
	char call[16], err[16];
	struct outcome o;

	(void)snprintf(call, sizeof(call), "%d", SYS_pidfd_getfd);
	(void)snprintf(err, sizeof(err), "%d", EMFILE);
	(void)unlink(scratch_path("report"));
	deliver("sigtrap");
	run(&o, LIST(victim("refused"), call, err, watchctl(), "--inside", "-w",
	    "state", "--user-only", "--allow", "guest.c", "--error-exitcode",
	    "66", "-o", "json", "-O", scratch_path("report"), "--",
	    victim("guest"), "store"));
	deliver(NULL);
	take_report(&o);
	if (o.status != NOT_VOUCHED || strstr(o.err, "were on is not known: "
	    "looking at its events: Too many open files; raise the limit") ==
	    NULL || strstr(o.err, "but for how long it was watched is not "
	    "known") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
	assert_null(json_object_get(first_of(&o, "end"), "watched_ns"));
}

static int
begin_refused(void **state)
{
	refused = true;
	return be_refused(state) < 0 ? -1 : scratch_make(state);
}

static const CMUnitTestFunction without_events[] = {
	inside_too_they_are_on_all_the_time, threads_inside_are_counted,
	debug_registers_are_on_all_the_time, NULL,
};

int
main(void)
{
	int failed = run_live_tests(.except = (const CMUnitTestFunction[]){
	    debug_registers_are_on_all_the_time, NULL},
	    .before_all = scratch_make, .after_all = scratch_remove);

	return failed + run_live_tests(.only = without_events,
	    .before_all = begin_refused, .after_all = scratch_remove);
}
