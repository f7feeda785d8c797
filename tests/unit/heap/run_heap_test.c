/*
 * What --heap finds in a program's heap in its first run, which takes no
 * breakpoints, and that it finds nothing else.
 */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "heap_bugs.h"
#include "probe/probe.h"
#include "refuse.h"
#include "scratch.h"

/* Guard a command that is not run again. */
static void
guard_once(struct outcome *o, const char *const more[],
    const char *const command[])
{
	const char *argv[ARGS] = {"--heap-runs", "0"};

	argv[append(argv, 2, more)] = NULL;
	guard(o, argv, command);
}

TEST(each_bug_is_found_and_the_program_is_as_it_was)
{
	for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		struct outcome o;
		const json_t *finding;

		guard_once(&o, LIST("--no-cache"), LIST(victim("heap"),
		    bugs[i].name));
		finding = expect_bug(&bugs[i], &o);
		assert_null(json_object_get(finding, "hits"));
		assert_int_equal(count_of(&o, "hit"), 0);
	}
}

/* --- where there is nothing to watch with --- */

/* A command that notes in a file that it runs. */
static const char noting[] = "echo again >> runs; \"$0\" one-past; exit 4";

/* A sanitizer that looks for leaks traces, too. */
static bool
be_without_watches(int unused)
{
	(void)unused;
	return setenv("ASAN_OPTIONS", "exitcode=86:detect_leaks=0", 1) == 0 &&
	    chdir(scratch_dir) == 0 &&
	    refuse_call(SYS_perf_event_open, EPERM, NULL, 0) &&
	    refuse_call(SYS_ptrace, EPERM, NULL, 0);
}

static bool
be_there(int unused)
{
	(void)unused;
	return chdir(scratch_dir) == 0;
}

/* Run it; what it says, and how often it ran. */
static size_t
count_runs(struct outcome *o, bool (*prepare)(int))
{
	struct running w;
	size_t len;

	(void)unlink(scratch_path("runs"));
	start_prepared(&w, LIST(watchctl(), "--heap", "--error-exitcode", "66",
	    "--no-cache", "--", "/bin/sh", "-c", noting, victim("heap")),
	    prepare, 0);
	finish_status(&w, o, 66);
	assert_string_equal(o->out, "done\n");
	assert_holds(o->err, "overflow  1 byte, 3 bytes past the end of a "
	    "40-byte block");
	assert_lacks(o->err, "the order of threads may have differed");
	(void)scratch_read("runs", &len);
	return len / strlen("again\n");
}

/* One run shows it, where it cannot be known before. */
TEST(where_nothing_may_be_watched_the_reason_is_said)
{
	struct outcome o;

	if (count_runs(&o, be_without_watches) > 2)
		fail_msg("again and again: %s", o.err);
	assert_holds(o.err, "could not be watched: ");
	assert_holds(o.err, "the writers of 1 of the findings are not known");
}

TEST(where_breakpoints_do_not_fire_the_command_runs_once)
{
	struct wp_probe_cpus cpus;
	struct outcome o;

	wp_probe_cpus(&cpus);
	if (cpus.silent < 0)
		skip();
	assert_int_equal(count_runs(&o, be_there), 1);
	assert_holds(o.err, "the command is not run again to find the writers: "
	    "breakpoints are accepted on processor ");
}

/* A library that says that it watches, and does not: as one that is not
   permitted to watch the kernel, for what the kernel writes. */
static const char fake[] =
    "int wp_open(const void *a, void **w) { (void)a; *w = &w; return 0; }\n"
    "void wp_close(void *w) { (void)w; }\n"
    "int wp_disable(void *w) { (void)w; return 0; }\n"
    "const char *wp_cause(void) { return \"\"; }\n";

static bool
be_without_kernel(int unused)
{
	return setenv("WATCHPOINT_LIBRARY", scratch_path("libfake.so"), 1) == 0
	    && be_without_watches(unused);
}

/* Run the victim twice with it. */
static void
run_unwatched(struct outcome *o, const char *act)
{
	struct running w;

	scratch_write("fake.c", fake);
	scratch_run("%s -shared -fPIC -o libfake.so fake.c", getenv("CC"));
	start_prepared(&w, LIST(watchctl(), "--heap", "--heap-runs", "1",
	    "--no-cache", "-o", "json", "-O", "-", "--", victim("heap"), act),
	    be_without_kernel, 0);
	finish_status(&w, o, 3);
	expect_report(o);
}

/* Its only finding. */
static const json_t *
found_without_kernel(struct outcome *o, const char *act)
{
	run_unwatched(o, act);
	assert_int_equal(count_of(o, "finding"), 1);
	return first_of(o, "finding");
}

TEST(what_the_kernel_wrote_is_named_where_only_the_program_is_watched)
{
	struct outcome o;
	const json_t *finding = found_without_kernel(&o, "read");

	assert_string_equal(text_of(finding, "noticed"), "write");
	assert_string_equal(text_of(finding, "bytes"), "72");
	if (!has_frame(finding, "by_read"))
		fail_msg("not by read: %s%s", o.out, o.err);
	assert_lacks(o.err, "the writers of");
}

TEST(a_message_that_is_cut_off_is_not_blamed_for_what_lies_behind)
{
	struct outcome o;
	const json_t *finding = found_without_kernel(&o, "truncation");

	assert_string_equal(text_of(finding, "bytes"), "72");
	assert_string_not_equal(text_of(finding, "noticed"), "write");
	assert_holds(o.err, "the writers of");
}

TEST(the_writers_of_all_findings_are_sought_at_once)
{
	struct outcome o;
	const json_t *line;
	size_t i;

	run_unwatched(&o, "many-reads");
	assert_int_equal(count_of(&o, "finding"), 100);
	json_array_foreach(o.lines, i, line)
		if (strcmp(text_of(line, "type"), "finding") == 0)
			assert_string_equal(text_of(line, "noticed"), "write");
	assert_lacks(o.err, "the writers of");
}

/* --- what is found, and told --- */

TEST(canaries_alone_find_what_is_past_the_end)
{
	struct outcome o;

	guard_once(&o, LIST("--heap-quarantine", "0"), LIST(victim("heap"),
	    "one-past"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	guard_once(&o, LIST("--heap-quarantine", "0"), LIST(victim("heap"),
	    "after-free"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 0);
}

TEST(damage_without_room_is_counted)
{
	struct outcome o;

	guard_once(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "many-kinds"));
	expect_report(&o);
	assert_int_equal(o.status, 66);
	assert_int_equal(count_of(&o, "finding"), 256);
	assert_holds(o.err, "44 findings more are not reported");
}

TEST(some_of_many_like_findings_are_kept)
{
	struct outcome o;

	guard_once(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "many"));
	expect_report(&o);
	assert_int_equal(o.status, 66);
	assert_int_equal(count_of(&o, "finding"), 29);
	assert_holds(o.err, "the same was done 271 times more");
}

TEST(a_frequent_bug_does_not_hide_a_rare_one)
{
	struct outcome o;

	guard_once(&o, LIST("--no-cache"), LIST(victim("heap"),
	    "many-and-one"));
	expect_report(&o);
	assert_holds(o.out, "\"double-free\"");
	assert_holds(o.out, "\"offset\":43,");
	assert_in_range(count_of(&o, "finding"), 3, 100);
}

/* With --heap-quarantine 0 each free gives a block back, which waits while all
   blocks are looked at. */
TEST(threads_and_handlers_come_to_their_end)
{
	static const char *const acts[] = {"handler", "late-frees"};

	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		struct outcome o;

		guard_once(&o, LIST("--heap-quarantine", "0",
		    "--error-exitcode", "66"), LIST(victim("heap"), acts[i]));
		if (o.status != 3)
			fail_msg("%s: %d %s%s", acts[i], o.status, o.out,
			    o.err);
	}
}

/* As POSIX wants it of free since 2024; with the findings that are made. */
TEST(free_keeps_errno)
{
	static const char *const sizes[] = {"0", "64K", "1G"};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct outcome o;

		guard_once(&o, LIST("--heap-quarantine", sizes[i],
		    "--no-cache"), LIST(victim("heap"), "errno"));
		expect_report(&o);
		if (o.status != 3 || count_of(&o, "finding") != 2)
			fail_msg("%s: %d %s%s", sizes[i], o.status, o.out,
			    o.err);
	}
}

TEST(a_text_says_where_the_damage_is)
{
	struct outcome o;

	run_status(&o, 3, LIST(watchctl(), "--heap", "--heap-runs", "0", "--",
	    victim("heap"), "one-past"));
	assert_string_equal(o.out, "done\n");
	assert_holds(o.err, "overflow  1 byte, 3 bytes past the end "
	    "of a 40-byte block at 0x");
	assert_holds(o.err, ": 61 \"a\"\n");
	assert_holds(o.err, "allocated by\n");
}

static const struct {
	const char *command[4];
	const char *why;
} unguarded[] = {
	{{"counter_static"}, "has not loaded the guard"},
	{{"own_malloc"}, "malloc of its own"},
};

/* The program runs, and ends, as it would have. */
TEST(what_is_not_guarded_is_not_vouched_for)
{
	for (size_t i = 0; i < sizeof(unguarded) / sizeof(unguarded[0]); i++) {
		const char *path = victim(unguarded[i].command[0]);
		struct outcome o;

		guard_once(&o, LIST("--error-exitcode", "66"), LIST(path));
		assert_int_equal(o.status, 120);
		assert_holds(o.err, unguarded[i].why);
	}
}

TEST(a_program_that_a_shell_executes_is_guarded_too)
{
	char command[4352];
	struct outcome o;

	(void)snprintf(command, sizeof(command), "true | cat; %s one-past; "
	    "exit 5", victim("heap"));
	guard_once(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
	    command));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	assert_int_equal(o.status, 66);
	(void)snprintf(command, sizeof(command), "echo done; %s; exit 5",
	    victim("own_malloc"));
	guard_once(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
	    command));
	assert_int_equal(o.status, 120);
}

/* The child has loaded the guard when it opens the FIFO. */
TEST(a_process_still_running_is_not_vouched_for)
{
	static const char *const commands[] = {
		"mkfifo fifo; sh -c 'echo on > fifo; read never < fifo' "
		    "> /dev/null 2>&1 & read on < fifo; echo child $!; exit 0",
		"sleep 0.1 > /dev/null 2>&1 & wait; exit 0",
	};

	for (int i = 0; i < 2; i++) {
		char command[PATH_MAX + 256];
		struct outcome o;

		(void)snprintf(command, sizeof(command), "cd %s; %s",
		    scratch_path("."), commands[i]);
		guard_once(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh",
		    "-c", command));
		if (o.status != (i == 0 ? 120 : 0) ||
		    (strstr(o.err, "still running") == NULL) != (i == 1))
			fail_msg("%s: %d %s", command, o.status, o.err);
		if (i == 0)
			(void)kill((pid_t)atol(strstr(o.out, "child ") + 6),
			    SIGKILL);
	}
}

TEST(a_program_that_takes_the_address_of_malloc_is_guarded)
{
	struct outcome o;

	guard_once(&o, LIST("--error-exitcode", "66"),
	    LIST(victim("heap_fixed")));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	assert_int_equal(o.status, 66);
}

/* A library whose constructor runs before the guard's. */
TEST(what_was_allocated_before_the_guard_was_on_may_be_freed)
{
	static const char *const ways[] = {"--heap", "--heap=sample"};

	if (getenv("LD_PRELOAD") != NULL)	/* the sanitizers' */
		skip();
	scratch_run("printf '#include <stdlib.h>\\nstatic void *a, *b;\\n"
	    "__attribute__((constructor)) static void begin(void) "
	    "{ a = malloc(40); b = calloc(3, 40); }\\n"
	    "__attribute__((destructor)) static void end(void) "
	    "{ free(realloc(a, 4000)); free(b); }\\n' > early.c && "
	    "%s -shared -fPIC -Wl,-z,initfirst -o libearly.so early.c",
	    getenv("CC"));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct outcome o;

		(void)setenv("LD_PRELOAD", scratch_path("libearly.so"), 1);
		guard(&o, LIST(ways[i], "--error-exitcode", "66"),
		    LIST(victim("heap"), "nothing"));
		(void)unsetenv("LD_PRELOAD");
		expect_report(&o);
		if (o.status != 3 || count_of(&o, "finding") != 0)
			fail_msg("%s: %d %s%s", ways[i], o.status, o.out,
			    o.err);
	}
}

TEST(programs_without_damage_are_clean)
{
	expect_clean("--heap");
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
