/*
 * preload: `watchctl --inside`, which loads libwatchpoint into programs that
 * were not written to be watched.
 */
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "beside.h"
#include "handler/channel.h"
#include "live.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"

enum { STRAY = 66 };

static char guest[PATH_MAX];		/* the victim */
static bool refused;			/* are perf events */

/* --- runs --- */

/* watchctl --inside OPTIONS -- COMMAND, as an argument vector. */
static void
make_command(const char *argv[ARGS], const char *const *options,
    const char *const *command)
{
	size_t n = append(argv, 0, LIST(watchctl(), "--inside"));

	n = append(argv, n, options);
	n = append(argv, n, LIST("--"));
	(void)append(argv, n, command);
}

static void
run_inside(struct outcome *o, const char *const *options,
    const char *const *command)
{
	const char *argv[ARGS];

	make_command(argv, options, command);
	run(o, argv);
}

/* The same; the report, in JSON, becomes the lines. */
static void
run_told(struct outcome *o, const char *const *options,
    const char *const *command)
{
	const char *with[ARGS];
	size_t n = append(with, 0, LIST("-o", "json", "-O",
	    scratch_path("report")));

	(void)append(with, n, options);
	(void)unlink(scratch_path("report"));
	run_inside(o, with, command);
	outcome_take(o, scratch_path("report"));
	if (o->lines == NULL)
		fail_msg("no report in JSON: %s", o->err);
}

static void
expect_said(const struct outcome *o, const char *text)
{
	if (strstr(o->err, text) == NULL)
		fail_msg("no \"%s\" in: %s", text, o->err);
}

static unsigned
count_said(const struct outcome *o, const char *text)
{
	unsigned n = 0;

	for (const char *at = o->err; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

/* --- what is reported --- */

/* The constructor's store and those of main, each before what the program says
   next; both say it on stderr. */
TEST(a_hit_is_reported_before_the_next_instruction)
{
	static const char *const order[] = {
		"watching state", "#1   write  state", "mark prepared",
		"#2   write  state", "mark stored", "#3   write  state",
		"mark stored", "state: 3 hits", "3 hits, 3 reported, 0 lost",
	};
	const char *at;
	struct outcome o;

	run_inside(&o, LIST("-w", "state"), LIST(guest, "store", "store"));
	assert_int_equal(o.status, 7);
	at = o.err;
	for (size_t i = 0; i < COUNT(order); i++) {
		const char *found = strstr(at, order[i]);

		if (found == NULL)
			fail_msg("no \"%s\" where it should be: %s", order[i],
			    o.err);
		at = found + 1;
	}
}

TEST(the_report_has_its_usual_form)
{
	const json_t *start, *watch;
	struct outcome o;

	run_told(&o, LIST("-w", "state", "-w", "text:8"),
	    LIST(guest, "store", "thread", "fill"));
	assert_int_equal(o.status, 7);
	expect_hits(&o, live_features.kernel ? 4 : 3);
	start = json_array_get(o.lines, 0);
	assert_string_equal(text_of(start, "type"), "start");
	assert_string_equal(text_of(start, "mode"), "inside");
	assert_string_equal(text_of(start, "comm"), "guest");
	assert_int_equal(number_of(start, "threads"), 1);
	watch = json_array_get(json_object_get(start, "watches"), 1);
	assert_string_equal(text_of(watch, "spec"), "text:8");
	assert_string_equal(text_of(watch, "symbol"), "text");
	assert_int_equal(number_of(watch, "len"), 8);
	assert_int_equal(count_of(&o, "watch"), 0);
	expect_function(hit_at(&o, 0), 0, "prepare");
	expect_complete(hit_at(&o, 0));
	expect_function(hit_at(&o, 1), 0, "store");
	expect_function(hit_at(&o, 1), 1, "main");
	expect_complete(hit_at(&o, 1));
	expect_function(hit_at(&o, 2), 1, "store_in_thread");
	assert_int_not_equal(number_of(hit_at(&o, 2), "tid"),
	    number_of(start, "pid"));
	if (live_features.kernel) {
		assert_int_equal(number_of(hit_at(&o, 3), "watch"), 2);
		assert_string_equal(text_of(hit_at(&o, 3), "syscall"), "read");
	}
	if (!live_features.kernel)
		return;
	run_told(&o, LIST("-w", "text:8", "--user-only"), LIST(guest, "fill"));
	expect_hits(&o, 0);
}

TEST(watches_of_the_same_name_are_two)
{
	struct outcome o;
	unsigned n[3] = {0};

	run_told(&o, LIST("-w", "state", "-w", "state"), LIST(guest, "store"));
	expect_hits(&o, 4);
	for (size_t i = 0; i < 4; i++)
		n[number_of(hit_at(&o, i), "watch") % 3]++;
	assert_int_equal(n[1], 2);
	assert_int_equal(n[2], 2);
}

/* A library's constructor, which runs before the program's own. */
TEST(libraries_are_watched_from_the_beginning)
{
	struct outcome o;

	scratch_run("%s -g -O1 -shared -fPIC -o libplug.so "
	    "%s/tests/victim/plug.c", getenv("CC"), getenv("TOP"));
	scratch_run("echo 'extern long plug_state; int main(void) "
	    "{ return plug_state != 42; }' > plugged.c && "
	    "%s -g -o plugged plugged.c -L. -lplug -Wl,-rpath,'%s'",
	    getenv("CC"), scratch_path("."));
	run_told(&o, LIST("-w", "plug_state"), LIST(scratch_path("plugged")));
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.err);
	expect_hits(&o, 1);
	expect_function(hit_at(&o, 0), 0, "plug_prepare");
}

TEST(a_hit_outlives_its_program)
{
	static const struct {
		const char *act;
		int status;
	} ends[] = {{"crash", 128 + SIGSEGV}, {"leave", 3}};

	for (size_t i = 0; i < COUNT(ends); i++) {
		struct outcome o;

		run_told(&o, LIST("-w", "state"), LIST(guest, ends[i].act));
		assert_int_equal(o.status, ends[i].status);
		expect_hits(&o, 2);
		expect_function(hit_at(&o, 1), 0, ends[i].act);
		assert_int_equal(number_of(account_of(&o), "status"),
		    ends[i].status);
	}
}

/* --- the program's own --- */

TEST(the_program_notices_nothing)
{
	const char *nothing = scratch_path("libnothing.so");
	struct outcome with, without;
	char *old = getenv("LD_PRELOAD");

	if (old != NULL)	/* the sanitizers' */
		skip();
	scratch_run("echo 'int nothing;' > nothing.c && "
	    "%s -shared -fPIC -o libnothing.so nothing.c", getenv("CC"));
	for (int i = 0; i < 2; i++) {
		const char *const *command = LIST(guest, "environment",
		    "auxiliary", "inherited", "descriptors", "children");

		run(&without, command);
		run_inside(&with, LIST("-w", "state"), command);
		assert_int_equal(with.status, 7);
		assert_string_equal(with.out, without.out);
		/* the same with a library that is meant to stay */
		assert_int_equal(setenv("LD_PRELOAD", nothing, 1), 0);
	}
	(void)unsetenv("LD_PRELOAD");
}

TEST(a_signal_is_for_the_command)
{
	const char *argv[ARGS];
	struct running r;
	struct outcome o;
	char line[64];

	make_command(argv, LIST("-w", "state"), LIST(guest, "wait"));
	start(&r, argv);
	hear(&r, line, sizeof(line));
	assert_string_equal(line, "waiting");
	assert_int_equal(kill(r.pid, SIGTERM), 0);
	finish(&r, &o);
	assert_int_equal(o.status, 128 + SIGTERM);
	expect_said(&o, "1 hit, 1 reported, 0 lost");
}

TEST(the_watch_may_end_before)
{
	struct outcome o;

	run_told(&o, LIST("-w", "state", "-n", "2"),
	    LIST(guest, "store", "store", "store"));
	assert_int_equal(o.status, 7);
	expect_hits(&o, 2);
	assert_string_equal(text_of(account_of(&o), "reason"), "count");
	run_told(&o, LIST("-w", "state", "-t", "0.1"), LIST(guest, "time"));
	assert_int_equal(o.status, 7);
	assert_true(number_of(account_of(&o), "hits") < 100);
	assert_string_equal(text_of(account_of(&o), "reason"), "time");
	run_told(&o, LIST("-w", "state"), LIST(guest, "store"));
	assert_string_equal(text_of(account_of(&o), "reason"), "exit");
}

/* Nobody reads the report: the command goes on. */
TEST(a_report_that_nobody_reads)
{
	const char *argv[ARGS];
	struct running r;
	struct outcome o;

	make_command(argv, LIST("-w", "state", "-O", "/dev/full"),
	    LIST(guest, "store", "store"));
	run_status(&o, 125, argv);
	expect_said(&o, "mark stored");
	expect_said(&o, "the report is incomplete");
	make_command(argv, LIST("-w", "state", "-O", "/proc/self/fd/1"),
	    LIST(guest, "time"));
	start(&r, argv);
	(void)close(r.out);
	r.out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	finish_status(&r, &o, 7);
}

/* --- whether it can be vouched for --- */

TEST(strays_and_unseen_accesses)
{
	static const struct {
		const char *allow, *act[2];
		int status;
		const char *why;
	} runs[] = {
		{"prepare", {"store"}, STRAY, "1 stray by 1 writer"},
		{"guest.c", {"store"}, 7, "0 stray"},
		{"guest.c", {"deaf", "store"}, 120, "1 hit was lost"},
		{"guest.c", {"deaf", "leave"}, 120, "1 hit was lost"},
		{"guest.c", {"become_another"}, 120, "another program"},
		{"guest.c", {"fork"}, 120, "created a child by fork(2)"},
		{"prepare", {"disable_events", "store"}, STRAY,
		    "1 stray by 1 writer"},
	};

	for (size_t i = 0; i < COUNT(runs); i++) {
		struct outcome o;

		run_told(&o, LIST("-w", "state", "--allow", runs[i].allow,
		    "--error-exitcode", "66"), LIST(guest, runs[i].act[0],
		    runs[i].act[1]));
		if (o.status != runs[i].status)
			fail_msg("%zu: status %d: %s", i, o.status, o.err);
		expect_said(&o, runs[i].why);
		/* another program is doubted anyway */
		assert_int_equal(strstr(o.err,
		    "may not have been noticed") != NULL,
		    refused && strcmp(runs[i].act[0], "become_another") != 0);
		assert_int_equal(number_of(account_of(&o), "status"),
		    o.status);
	}
}

/* --- children --- */

/* What hits have in common that are of the program itself, or of none but
   it. */
static unsigned
count_hits(const struct outcome *o, bool own)
{
	const json_int_t pid = number_of(json_array_get(o->lines, 0), "pid");
	unsigned n = 0;
	size_t i;
	json_t *line;

	json_array_foreach(o->lines, i, line)
		n += is_hit(line) && (number_of(line, "pid") == pid) == own;
	return n;
}

/* All that they do is in one account, and judged by one policy; also what a
   child does when its parent has ended.  A child that executes another program
   is no matter; nor is one that is killed.  Where events are refused it is said
   that others may not have been noticed, and nothing else. */
TEST(children_are_watched_too)
{
	static const char *const deliveries[] = {"ptrace", "sigtrap", "async"};
	const size_t n = refused ? 1 : COUNT(deliveries);
	static const struct {
		const char *act;
		unsigned own, of_children;
		const char *allow;
		int status;
	} runs[] = {
		{"fork", 1, 1, "guest.c", 7},
		{"fork", 1, 1, "prepare", STRAY},
		{"forks", 1, 80, "guest.c", 7},
		{"fork_in_thread", 1, 1, "prepare", STRAY},
		{"fork_and_execute", 1, 1, "guest.c", 7},
		{"fork_and_die", 1, 2, "guest.c", 7},
		{"outlive", 1, 2, "prepare", STRAY},
	};

	for (size_t i = 0; i < COUNT(runs) * n; i++) {
		const char *delivery = deliveries[i % n];
		const size_t k = i / n;
		struct outcome o;

		if (!refused)
			(void)setenv("WATCHPOINT_DELIVERY", delivery, 1);
		run_told(&o, LIST("-w", "state", "-f", "--user-only",
		    "--allow", runs[k].allow, "--error-exitcode", "66"),
		    LIST(guest, runs[k].act));
		(void)unsetenv("WATCHPOINT_DELIVERY");
		if (o.status != runs[k].status ||
		    count_hits(&o, true) != runs[k].own ||
		    count_hits(&o, false) != runs[k].of_children ||
		    count_said(&o, "warning: ") != refused)
			fail_msg("%s, %s: status %d, %u hits, of children %u: "
			    "%s", delivery, runs[k].act, o.status,
			    count_hits(&o, true), count_hits(&o, false), o.err);
		assert_int_equal(number_of(account_of(&o), "lost"), 0);
	}
}

/* It is waited for, though its program has ended, until it can be watched:
   another library's handler of pthread_atfork(3) keeps it.  If it is not to be
   watched, it is noticed. */
TEST(a_child_that_begins_slowly_is_watched)
{
	struct outcome o;

	if (getenv("LD_PRELOAD") != NULL)	/* the sanitizers' */
		skip();
	scratch_run("printf '#include <pthread.h>\\n#include <unistd.h>\\n"
	    "static void doze(void) { usleep(300000); }\\n"
	    "__attribute__((constructor)) static void begin(void) "
	    "{ pthread_atfork(0, 0, doze); }\\n' > slow.c && "
	    "%s -shared -fPIC -Wl,-z,initfirst -o libslow.so slow.c",
	    getenv("CC"));
	(void)setenv("LD_PRELOAD", scratch_path("libslow.so"), 1);
	run_told(&o, LIST("-w", "state", "-f", "--user-only", "--allow",
	    "prepare", "--error-exitcode", "66"), LIST(guest, "outlive"));
	if (o.status != STRAY || count_hits(&o, false) != 2)
		fail_msg("status %d: %s", o.status, o.err);
	run_told(&o, LIST("-w", "state", "--user-only", "--allow", "guest.c",
	    "--error-exitcode", "66"), LIST(guest, "outlive"));
	(void)unsetenv("LD_PRELOAD");
	if (o.status != 120 || strstr(o.err, "created a child by fork(2), "
	    "which is not watched") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

/* The helper killed, the family goes on, and each of it reports by itself what
   it does: each child stores twice, its program before and after. */
TEST(children_survive_the_helper)
{
	static const char *const deliveries[] = {"ptrace", "sigtrap", "async"};

	for (size_t i = 0; i < (refused ? 1 : COUNT(deliveries)); i++) {
		const char *argv[ARGS];
		struct running r;
		struct outcome o;
		char line[64];

		if (!refused)
			(void)setenv("WATCHPOINT_DELIVERY", deliveries[i], 1);
		make_command(argv, LIST("-w", "state", "-f", "-O", "/dev/null"),
		    LIST(guest, "forks_wait"));
		start(&r, argv);
		(void)unsetenv("WATCHPOINT_DELIVERY");
		for (int n = 0; n < 3; n++) {	/* children and their parent */
			hear(&r, line, sizeof(line));
			assert_string_equal(line, "waiting");
		}
		assert_int_equal(kill(r.pid, SIGKILL), 0);
		(void)waitid(P_PID, (id_t)r.pid, &(siginfo_t){0}, WEXITED |
		    WNOWAIT);
		say(&r, "go\n");
		finish(&r, &o);
		assert_int_equal(o.status, 128 + SIGKILL);
		if (count_said(&o, "mark stored") != 5 ||
		    count_said(&o, "mark survived") != 1 ||
		    count_said(&o, " write state (8 bytes at ") != 3)
			fail_msg("%s: %s", deliveries[i], o.err);
	}
}

/* Where the C library has such functions; here another library has. */
TEST(children_of_pidfd_spawn_are_known)
{
	static const char *const acts[] = {"pidfd_spawn", "pidfd_spawnp"};

	if (getenv("LD_PRELOAD") != NULL)	/* the sanitizers' */
		skip();
	scratch_run("%s -shared -fPIC -o libpidfd.so '%s/tests/victim/"
	    "pidfd_spawn.c'", getenv("CC"), getenv("TOP"));
	for (size_t i = 0; i < COUNT(acts) * 2; i++) {
		const bool there = i < COUNT(acts);
		struct outcome o;

		if (there)
			(void)setenv("LD_PRELOAD", scratch_path("libpidfd.so"),
			    1);
		run_told(&o, LIST("-w", "state", "--user-only", "-f", "--allow",
		    "guest.c", "--error-exitcode", "66"),
		    LIST(guest, acts[i % COUNT(acts)]));
		(void)unsetenv("LD_PRELOAD");
		if (o.status != 7 || strstr(o.err, there ? "mark spawned" :
		    "mark unknown") == NULL)
			fail_msg("%zu: status %d: %s", i, o.status, o.err);
	}
}

/* What a program watches by macros is not watched in its children, who can do
   so themselves; what it is run to watch is. */
TEST(macros_and_children)
{
	static const struct {
		const char *act;
		unsigned own, of_children;
		int status;
		bool less;		/* is watched in the child */
	} runs[] = {
		{"frozen", 3, 1, STRAY, true}, {"permitted", 1, 1, 120, true},
		{"watched", 3, 1, 120, true}, {"freezes", 3, 3, STRAY},
	};

	if (getenv("LD_PRELOAD") != NULL)	/* the sanitizers' */
		skip();
	scratch_run("%s -g -O1 -o forker -I'%s/lib/watchpoint' "
	    "'%s/tests/victim/forker.c' '%s' -Wl,-rpath,\"$(dirname '%s')\"",
	    getenv("CC"), getenv("TOP"), getenv("TOP"),
	    getenv("WATCHPOINT_LIBRARY"), getenv("WATCHPOINT_LIBRARY"));
	for (size_t i = 0; i < COUNT(runs); i++) {
		struct outcome o;

		run_told(&o, LIST("-w", "other", "-f", "--user-only",
		    "--allow", "forker.c", "--error-exitcode", "66"),
		    LIST(scratch_path("forker"), runs[i].act));
		if (o.status != runs[i].status ||
		    count_hits(&o, true) != runs[i].own ||
		    count_hits(&o, false) != runs[i].of_children ||
		    (strstr(o.err, "in which not all of its watches are open")
		    != NULL) != runs[i].less)
			fail_msg("%s: status %d, %u hits, of children %u: %s",
			    runs[i].act, o.status, count_hits(&o, true),
			    count_hits(&o, false), o.err);
		assert_int_equal(number_of(account_of(&o), "lost"), 0);
	}
}

/* A child that the library does not notice: it may have written, even in the
   program's own memory, and even before it executes a program.  But nothing of
   the program's runs in children that only execute another one.  Where events
   are refused, none of them is noticed. */
TEST(children_that_are_not_watched)
{
	static const char *const follow[] = {"--user-only", "-f"};
	static const struct {
		const char *act;
		int status;
	} runs[] = {
		{"vfork", 120}, {"vfork_and_execute", 120},
		{"fork_by_call", 120}, {"clone", 120},
		{"spawn", 7}, {"system", 7},
	};

	for (size_t i = 0; i < COUNT(runs) * COUNT(follow); i++) {
		const size_t k = i / COUNT(follow);
		struct outcome o;

		run_told(&o, LIST("-w", "state", "--user-only",
		    follow[i % COUNT(follow)], "--allow", "guest.c",
		    "--error-exitcode", "66"), LIST(guest, runs[k].act));
		if (o.status != (refused ? 7 : runs[k].status) ||
		    (strstr(o.err, "which is not watched") != NULL) !=
		    (o.status == 120) ||
		    (strstr(o.err, "may not have been noticed: not permitted: "
		    "perf_event_open") != NULL) != refused)
			fail_msg("%s: status %d: %s", runs[k].act, o.status,
			    o.err);
	}
}

/* A child may be among them. */
TEST(children_of_which_records_were_lost)
{
	struct outcome o;

	run_told(&o, LIST("-w", "state", "--user-only", "-f", "--allow",
	    "guest.c", "--error-exitcode", "66"), LIST(guest,
	    "threads_behind_back"));
	assert_int_equal(o.status, 120);
	expect_said(&o, "records of them were lost");
}

/* A ring is refused as where there is no more memory to lock. */
static void
refuse_rings(void)
{
	/* shared: a library's segment may be as long */
	const struct refuse_arg ring[] = {
		{1, (uint32_t)sysconf(_SC_PAGESIZE) + (64 << 10), false},
		{3, MAP_SHARED, false},
	};

	if (!refuse_call(SYS_mmap, EPERM, ring, 2))
		_exit(1);
}

TEST(accesses_without_a_report)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct outcome o;

		refuse_rings();
		run_told(&o, LIST("-w", "state", "--user-only", "-f",
		    "--allow", "guest.c", "--error-exitcode", "66"),
		    LIST(guest, "vfork"));
		if (o.status != 120)
			(void)fprintf(stderr, "%d: %s", o.status, o.err);
		_exit(o.status != 120 || strstr(o.err,
		    "may not have been noticed: "
		    "no ring buffer") == NULL || strstr(o.err, "maps is not "
		    "known: no ring buffer") == NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* With -n, hits of all together; and the children go on. */
TEST(the_watch_of_children_may_end_before)
{
	struct outcome o;

	run_told(&o, LIST("-w", "state", "-f", "-n", "10", "--user-only"),
	    LIST(guest, "forks"));
	assert_int_equal(o.status, 7);
	assert_int_equal(number_of(account_of(&o), "hits"), 10);
	assert_string_equal(text_of(account_of(&o), "reason"), "count");
	if (strstr(o.err, "warning") != NULL)
		fail_msg("%s", o.err);
}

/* All of it, not the one access whose signal is pending. */
TEST(what_a_program_does_with_signals_blocked_is_counted)
{
	static const char *const deliveries[] = {"sigtrap", "async", "ptrace"};
	static const char *const ends[] = {"store", "leave"};

	for (size_t i = 0; i < COUNT(deliveries) * COUNT(ends); i++) {
		const char *end = ends[i / COUNT(deliveries)];
		struct outcome o;

		(void)setenv("WATCHPOINT_DELIVERY",
		    deliveries[i % COUNT(deliveries)], 1);
		run_inside(&o, LIST("-w", "state", "--user-only"), LIST(guest,
		    "deaf", "store", "store", "store", "store", end));
		(void)unsetenv("WATCHPOINT_DELIVERY");
		expect_said(&o, ", 5 lost");
	}
}

/* By descriptors, as it may do with events of its own. */
TEST(a_program_that_disables_all_descriptors)
{
	struct outcome o;

	run_told(&o, LIST("-w", "state", "--allow", "guest.c",
	    "--error-exitcode", "66"), LIST(guest, "disable_descriptors",
	    "store"));
	assert_int_equal(o.status, 120);
	expect_said(&o, "state was not watched for ");
	assert_true(number_of(account_of(&o), "gap_ns") > 0);
}

/* Nor is an access that was not reported taken for one that another watch's
   hits made: their instructions show what they touched. */
TEST(unreported_accesses_are_not_made_up_for)
{
	static const char *const with[] = {"alone", "together"};

	for (size_t i = 0; i < COUNT(with); i++) {
		struct outcome o;

		(void)setenv("WATCHPOINT_DELIVERY", "sigtrap", 1);
		run_inside(&o, LIST("-w", "words:8", "-w", "words+520:8",
		    "--allow", "taken.c", "--error-exitcode", "66"),
		    LIST(victim("taken"), with[i]));
		(void)unsetenv("WATCHPOINT_DELIVERY");
		expect_said(&o, "6 hits, 5 reported, 1 lost");
		expect_said(&o, "1 hit was lost");
		assert_int_equal(o.status, 120);
	}
}

/* --- programs that use the signals of hits --- */

/* They find what they would find without a watch, and each hit is reported;
   behind whose back a handler was replaced, it is not vouched for. */
TEST(a_program_has_its_own_signals)
{
	static const struct {
		const char *act;
		int status;
	} runs[] = {
		{"own_handlers", 0}, {"for_one_signal", 0}, {"every_signal", 0},
		{"signals_of_no_effect", 0}, {"urgent", 0},
		{"interrupted_calls", 0}, {"children", 0},
		{"changes_elsewhere", 0}, {"die", 128 + SIGTRAP},
		    {"ignored", 0},
	};
	static const char *const deliveries[] = {"sigtrap", "async", "ptrace"};
	const size_t n = COUNT(deliveries);

	for (size_t i = 0; i < COUNT(runs) * n; i++) {
		const char *act = runs[i / n].act;
		struct outcome o;

		(void)setenv("WATCHPOINT_DELIVERY", deliveries[i % n], 1);
		run_inside(&o, LIST("-w", "word"), LIST(victim("traps"), act));
		(void)unsetenv("WATCHPOINT_DELIVERY");
		if (o.status != runs[i / n].status ||
		    strstr(o.err, "reported, 0 lost") == NULL)
			fail_msg("%s, %s: status %d: %s", deliveries[i % n],
			    act, o.status, o.err);
	}
}

TEST(a_handler_replaced_behind_our_back)
{
	struct outcome o;

	(void)setenv("WATCHPOINT_DELIVERY", "sigtrap", 1);
	run_inside(&o, LIST("-w", "word", "--allow", "traps.c",
	    "--error-exitcode", "66"), LIST(victim("traps"), "raw",
	    "every_signal"));
	(void)unsetenv("WATCHPOINT_DELIVERY");
	expect_said(&o, "handled by the program itself");
	expect_said(&o, "3 hits, 0 reported, 3 lost");
	assert_int_equal(o.status, 120);
}

/* As daemons do: the helper has the events, too. */
TEST(a_program_that_closes_all_descriptors)
{
	struct outcome o;

	run_inside(&o, LIST("-w", "state"), LIST(guest, "close_all", "store"));
	expect_said(&o, "watchctl: 2 hits, 2 reported, 0 lost");
	assert_lacks(o.err, "warning");
	run_inside(&o, LIST("-w", "state", "--allow", "guest.c",
	    "--error-exitcode", "66"), LIST(guest, "close_all", "deaf",
	    "store"));
	assert_int_equal(o.status, 120);
	expect_said(&o, "1 hit was lost");
}

/* It writes to the same address, and the kernel clears it at execve(2), which
   reads what it is to execute: of none of that may a signal come, which it has
   no handler for. */
TEST(another_program_lives)
{
	static const struct {
		const char *delivery, *option, *spec;
		const char *said;
	} cases[] = {
		{"", "-w", "word", "watchctl: 5 hits, 5 reported, 0 lost"},
		{"async", "-w", "word", "watchctl: 5 hits, 5 reported, 0 lost"},
		{"ptrace", "-w", "word",
		    "watchctl: 5 hits, 5 reported, 0 lost"},
		{"", "-a", "self:8", "executed another program"},
		{"async", "-a", "self:8", "executed another program"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *argv[ARGS];
		struct running r;
		struct outcome o;

		if (cases[i].delivery[0] != '\0')
			(void)setenv("WATCHPOINT_DELIVERY", cases[i].delivery,
			    1);
		make_command(argv, LIST(cases[i].option, cases[i].spec),
		    LIST(victim("acts"), "become_another"));
		start(&r, argv);
		(void)unsetenv("WATCHPOINT_DELIVERY");
		say(&r, "go\ngo\nend\n");
		finish(&r, &o);
		if (o.status != 7)
			fail_msg("%zu: status %d: %s", i, o.status, o.err);
		assert_holds(o.out, "\ndone 100\n");
		expect_said(&o, "executed another program");
		expect_said(&o, cases[i].said);
	}
}

/* Neither is a program another one because it takes long to end, or to begin: a
   loader that audits keeps the library waiting. */
TEST(a_program_is_unchanged_from_beginning_to_end)
{
	static const struct {
		const char *audit, *act, *end;
		bool another;
	} cases[] = {
		{"", "end_slowly", "store", false},
		{"", "store", "end_first", false},
		{"slow.so", "store", "store", false},
		{"slow.so", "store", "become_another", true},
	};

	scratch_run("echo '#include <unistd.h>\n"
	    "unsigned la_version(unsigned v) "
	    "{ if (getenv(\"WATCHPOINT_WATCH\") != 0) usleep(500000); "
	    "return v; }' > slow.c && "
	    "%s -include stdlib.h -shared -fPIC -o slow.so slow.c",
	    getenv("CC"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct outcome o;

		if (cases[i].audit[0] != '\0')
			(void)setenv("LD_AUDIT",
			    scratch_path(cases[i].audit), 1);
		run_inside(&o, LIST("-w", "state", "--allow", "guest.c",
		    "--error-exitcode", "66"), LIST(guest, cases[i].act,
		    cases[i].end));
		(void)unsetenv("LD_AUDIT");
		if (o.status != (cases[i].another ? 120 : 7) ||
		    (strstr(o.err, "executed another program") != NULL) !=
		    cases[i].another)
			fail_msg("%zu: status %d: %s", i, o.status, o.err);
	}
}

/* A library that does not do what ours does. */
TEST(a_command_that_never_joins)
{
	char *library = strdup(getenv("WATCHPOINT_LIBRARY"));
	struct outcome o;

	scratch_run("echo 'int nothing;' > nothing.c && "
	    "%s -shared -fPIC -o libnothing.so nothing.c", getenv("CC"));
	(void)setenv("WATCHPOINT_LIBRARY", scratch_path("libnothing.so"), 1);
	run_inside(&o, LIST("-w", "state"), LIST(guest, "store"));
	assert_int_equal(o.status, 125);
	expect_said(&o, "without having loaded libwatchpoint");
	run_inside(&o, LIST("-w", "state", "--error-exitcode", "66"),
	    LIST(guest, "store"));
	assert_int_equal(o.status, 120);
	(void)setenv("WATCHPOINT_LIBRARY", library, 1);
	free(library);
}

/* A maker of a channel, which never serves it. */
static pid_t
make_maker(int fd, struct wp_channel **channel)
{
	char path[64];
	pid_t maker;

	assert_int_equal(wp_channel_map(fd, channel), 0);
	if ((maker = fork()) == 0)
		for (;;)
			(void)pause();
	assert_true(maker > 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", maker, fd);
	(void)setenv("LD_PRELOAD", getenv("WATCHPOINT_LIBRARY"), 1);
	(void)setenv("WATCHPOINT_WATCH", "w:state\n", 1);
	(void)setenv("WATCHPOINT_CHANNEL", path, 1);
	return maker;
}

static void
no_maker(void)
{
	(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("WATCHPOINT_WATCH");
	(void)unsetenv("WATCHPOINT_CHANNEL");
}

/* watchctl, killed when the command has been started and waits for it, or
   before: the command goes on. */
TEST(killed_before_it_serves)
{
	if (getenv("LD_PRELOAD") != NULL)	/* the sanitizers' */
		skip();
	for (int waits = 0; waits < 2; waits++) {
		int fd = wp_channel_make(0);
		struct wp_channel *channel;
		struct running r;
		struct outcome o;
		pid_t maker;

		assert_true(fd >= 0);
		maker = make_maker(fd, &channel);
		if (!waits) {
			(void)kill(maker, SIGKILL);
			(void)waitpid(maker, NULL, 0);
		}
		start(&r, LIST(guest, "store"));
		no_maker();
		for (int i = 0; waits && i < COMMAND_PATIENCE_MS &&
		    atomic_load(&channel->program) == 0; i++)
			(void)usleep(1000);
		(void)kill(maker, SIGKILL);
		finish(&r, &o);
		if (o.status != 7)
			fail_msg("%d: status %d: %s", waits, o.status, o.err);
		expect_said(&o, "mark stored");
		expect_said(&o, "not watched");
		if (waits)
			(void)waitpid(maker, NULL, 0);
		wp_channel_unmap(channel);
		(void)close(fd);
	}
}

/* --- what is refused --- */

/* A line, and the program has not begun. */
static void
expect_refused(const char *const *options, const char *const *command,
    int status, const char *why)
{
	struct outcome o;

	run_inside(&o, options, command);
	if (o.status != status || strstr(o.err, "mark") != NULL ||
	    strchr(o.err, '\n') != o.err + strlen(o.err) - 1)
		fail_msg("status %d: %s", o.status, o.err);
	expect_said(&o, why);
	assert_string_equal(o.out, "");
}

TEST(an_impossible_watch_starts_no_command)
{
	expect_refused(LIST("-w", "nosuch"), LIST(guest), 125,
	    "no symbol 'nosuch'");
	expect_refused(LIST("-w", "guest!nosuch"), LIST(guest), 125,
	    "no symbol 'nosuch'");
	expect_refused(LIST("-w", "0xffff800000000000:8"), LIST(guest), 125,
	    "lies in the kernel");
	expect_refused(LIST("-w", "state", "-w", "text:16", "-w", "text",
	    "-w", "state"), LIST(guest), 125, "no free slot");
	expect_refused(LIST("-w", "state"), LIST("/no/such/command"), 127,
	    "no such command");
	expect_refused(LIST("-w", "state"), LIST("/etc/passwd"), 126,
	    "cannot be executed");
	expect_refused(LIST("-w", "state"), LIST(victim("counter_static")),
	    125, "statically linked");
	expect_refused(LIST("-w", "state", "--count"), LIST(guest), 125,
	    "--count");
	expect_refused(LIST("-w", "state", "-o", "perf", "-O", "/dev/null"),
	    LIST(guest), 125, "no recording");
	expect_refused(LIST("-w", "state", "--stack", "20000"), LIST(guest),
	    125, "at most 16384");
}

/* Programs that take no library. */
TEST(programs_of_another_kind)
{
	const char *copy = scratch_path("copy");
	const struct passwd *nobody = getpwnam("nobody");
	const char class32 = ELFCLASS32;
	int fd;

	scratch_run("cp '%s' copy", guest);
	assert_true((fd = open(copy, O_WRONLY | O_CLOEXEC)) >= 0);
	assert_int_equal(pwrite(fd, &class32, 1, EI_CLASS), 1);
	assert_int_equal(close(fd), 0);
	expect_refused(LIST("-w", "state"), LIST(copy), 125, "not a 64-bit");
	if (geteuid() != 0 || nobody == NULL)
		return;
	scratch_run("cp '%s' copy", guest);
	assert_int_equal(chown(copy, nobody->pw_uid, (gid_t)-1), 0);
	assert_int_equal(chmod(copy, 04755), 0);
	expect_refused(LIST("-w", "state"), LIST(copy), 125, "set-user-ID");
}

/* --- programs that were not made for tests --- */

TEST(a_script_is_its_interpreter)
{
	struct outcome o;

	scratch_write("script", "#!/bin/sh\necho \"told $1\"\n");
	scratch_run("chmod 755 script");
	run_inside(&o, LIST("-w", "environ"), LIST(scratch_path("script"),
	    "so"));
	assert_int_equal(o.status, 0);
	assert_string_equal(o.out, "told so\n");
	expect_said(&o, "write  environ");
}

TEST(python_and_its_environment)
{
	struct outcome o;

	if (access("/usr/bin/python3", X_OK) != 0)
		skip();
	/* it would set a variable where no locale is set */
	(void)setenv("PYTHONCOERCECLOCALE", "0", 1);
	run_told(&o, LIST("-w", "environ", "-o", "json"),
	    LIST("/usr/bin/python3", "-c", "import os, threading\n"
	    "t = threading.Thread(target=lambda: os.putenv('A', 'b'))\n"
	    "t.start(); t.join(); print('done')"));
	assert_int_equal(o.status, 0);
	assert_string_equal(o.out, "done\n");
	/* the C library's own beginning, then the thread */
	expect_hits(&o, 2);
	assert_int_not_equal(number_of(hit_at(&o, 1), "tid"),
	    number_of(hit_at(&o, 0), "tid"));
}

#if !SANITIZED	/* whose runtime would be in the program twice */
/* The library that is linked into a program, and the one that is preloaded,
   have watches of their own, and each its own hits; the helper that the program
   starts is no child of the program's. */
TEST(copies_of_the_library_keep_apart)
{
	static const char *const deliveries[] = {"sigtrap", "async"};

	for (size_t i = 0; i < COUNT(deliveries); i++) {
		struct outcome o;

		(void)setenv("WATCHPOINT_DELIVERY", deliveries[i], 1);
		run_told(&o, LIST("-w", "state", "--allow", "store_state",
		    "--error-exitcode", "66"), LIST(victim("copies")));
		(void)unsetenv("WATCHPOINT_DELIVERY");
		if (o.status != 7 || strstr(o.err, "warning") != NULL)
			fail_msg("%s: status %d: %s", deliveries[i], o.status,
			    o.err);
		expect_hits(&o, 6);
		for (unsigned k = 0; k < 6; k++)
			expect_function(hit_at(&o, k), 0, "store_state");
	}
}
#endif

TEST(other_tools_work_under_it)
{
	static const struct {
		const char *command[3], *watch;
	} tools[] = {
		{{"/bin/ls", "-d", "/"}, "libc.so.6!optind"},
		{{"/usr/bin/sort", "/etc/passwd"}, "stdout"},
		{{"/usr/bin/env"}, "libc.so.6!stderr"},
	};

	for (size_t i = 0; i < COUNT(tools); i++) {
		struct outcome with, without;
		const char *const *command = LIST(tools[i].command[0],
		    tools[i].command[1], tools[i].command[2]);

		if (access(command[0], X_OK) != 0)
			continue;
		run(&without, command);
		run_told(&with, LIST("-w", tools[i].watch), command);
		assert_int_equal(with.status, without.status);
		assert_string_equal(with.out, without.out);
		(void)account_of(&with);
	}
}

static int
begin(void **state)
{
	if (scratch_make(state) < 0)
		return -1;
	(void)snprintf(guest, sizeof(guest), "%s", victim("guest"));
	return 0;
}

static int
begin_refused(void **state)
{
	refused = true;
	return be_refused(state) < 0 ? -1 : begin(state);
}

/* The second part has debug registers, and nothing else that would show it. */
static int
run_part(unsigned part)
{
	const CMUnitTestFunction by_registers[] = {
		strays_and_unseen_accesses, children_are_watched_too,
		a_child_that_begins_slowly_is_watched, macros_and_children,
		children_survive_the_helper, children_that_are_not_watched,
		the_watch_of_children_may_end_before, NULL,
	};

	return part == 0 ? run_live_tests(.before_all = begin,
	    .after_all = scratch_remove) : run_live_tests(.only = by_registers,
	    .before_all = begin_refused, .after_all = scratch_remove);
}

int
main(void)
{
	return run_beside(2, run_part);
}
