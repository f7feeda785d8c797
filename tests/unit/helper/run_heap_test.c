/* What --heap finds in a program's heap, and that it finds nothing else. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watching.h"

/* Run the victim, or another command, with the guard. */
static void
guard(struct outcome *o, const char *const more[], const char *const command[])
{
	const char *argv[ARGS] = {
		watchctl(), "--heap", "-o", "json", "-O", "-",
	};
	size_t n = append(argv, 6, more);

	argv[n++] = "--";
	n = append(argv, n, command);
	argv[n] = NULL;
	run(o, argv);
}

/* What the victim prints is between the lines of the report. */
static void
expect_report(struct outcome *o)
{
	char *line = strstr(o->out, "done\n");

	if (line != NULL)
		memmove(line, line + 5, strlen(line + 5) + 1);
	if (o->lines != NULL)
		json_decref(o->lines);
	o->lines = json_lines(o->out);
	if (o->lines == NULL)
		fail_msg("no report: %s%s", o->out, o->err);
}

static bool
has_frame(const json_t *stack, const char *function)
{
	size_t i;
	json_t *frame;

	json_array_foreach(json_object_get(stack, "frames"), i, frame)
		if (strstr(maybe_text(frame, "function"), function) != NULL)
			return true;
	return false;
}

struct bug {
	const char *name, *kind;
	int status;
	int size;
	int offset;		/* -100: none */
	const char *bytes;	/* NULL: none */
	const char *noticed;
	const char *alloc;	/* a function of each backtrace; NULL: none */
	const char *freed, *by;
};

static const struct bug bugs[] = {
	{"one-past", "overflow", 3, 40, 43, "61", "free", "make_block", NULL,
	    "drop_block"},
	{"strcpy", "overflow", 3, 40, 40, "00", "exit", "make_block", NULL,
	    NULL},
	{"memcpy", "overflow", 3, 40, 40, "72207768", "exit", "make_block",
	    NULL, NULL},
	{"underflow", "underflow", 3, 40, -3, "75", "free", "make_block", NULL,
	    "drop_block"},
	{"after-free", "use-after-free", 3, 40, 7, "66", "exit", "make_block",
	    "drop_block", NULL},
	{"after-realloc", "use-after-free", 3, 40, 9, "72", "exit",
	    "make_block", "after_realloc", NULL},
	{"double-free", "double-free", 3, 40, -100, NULL, "free", "make_block",
	    "drop_block", "drop_block"},
	{"invalid-free", "invalid-free", 3, 40, 16, NULL, "free",
	    "make_block", NULL, "drop_block"},
	{"mismatch", "mismatch", 3, 40, -100, NULL, "free", "mismatch", NULL,
	    "mismatch"},
	{"child", "overflow", 3, 40, 40, "63", "exit", "make_block", NULL,
	    NULL},
	{"thread", "overflow", 3, 40, 41, "74", "exit", "make_block", NULL,
	    NULL},
	{"abort", "overflow", 128 + SIGABRT, 40, 42, "61", "crash",
	    "make_block", NULL, NULL},
	{"crash", "overflow", 128 + SIGSEGV, 40, 42, "61", "crash",
	    "make_block", NULL, NULL},
	{"exec", "overflow", 3, 40, 42, "65", "exec", "make_block", NULL,
	    NULL},
	{"quick-exit", "overflow", 3, 40, 42, "71", "exit", "make_block", NULL,
	    NULL},
	{"two-exits", "overflow", 3, 40, 42, "32", "exit", "make_block", NULL,
	    NULL},
};

static void
expect_stack(const struct bug *bug, const char *what, const json_t *stack,
    const char *function)
{
	if (function == NULL ? stack != NULL : !has_frame(stack, function))
		fail_msg("%s: %s is not by %s", bug->name, what, function);
}

static void
expect_finding(const struct bug *bug, const json_t *f)
{
	const json_t *offset = json_object_get(f, "offset");

	assert_string_equal(text_of(f, "kind"), bug->kind);
	assert_int_equal(number_of(f, "size"), bug->size);
	if (bug->offset == -100)
		assert_null(offset);
	else
		assert_int_equal(json_integer_value(offset), bug->offset);
	assert_string_equal(maybe_text(f, "bytes"), bug->bytes == NULL ? "" :
	    bug->bytes);
	assert_string_equal(text_of(f, "noticed"), bug->noticed);
	assert_non_null(strstr(text_of(f, "program"), "victim/heap"));
	expect_stack(bug, "alloc", json_object_get(f, "alloc"), bug->alloc);
	expect_stack(bug, "free", json_object_get(f, "free"), bug->freed);
	expect_stack(bug, "frames", json_object_get(f, "frames") == NULL ?
	    NULL : f, bug->by);
}

TEST(each_bug_is_found_once_and_the_program_is_as_it_was)
{
	for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		struct outcome o;

		guard(&o, LIST("--no-cache"), LIST(victim("heap"),
		    bugs[i].name));
		expect_report(&o);
		if (o.status != bugs[i].status ||
		    count_of(&o, "finding") != 1)
			fail_msg("%s: status %d, %s%s", bugs[i].name, o.status,
			    o.out, o.err);
		expect_finding(&bugs[i], first_of(&o, "finding"));
		assert_non_null(strstr(o.err, " 1 finding in heaps"));
		outcome_free(&o);
	}
}

TEST(a_finding_decides_the_status_that_is_asked_for)
{
	struct outcome o;

	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "double-free"));
	assert_int_equal(o.status, 66);
	outcome_free(&o);
	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "nothing"));
	expect_report(&o);
	if (o.status != 3 || count_of(&o, "finding") != 0)
		fail_msg("%d: %s%s", o.status, o.out, o.err);
	outcome_free(&o);
}

TEST(canaries_alone_find_what_is_past_the_end)
{
	struct outcome o;

	guard(&o, LIST("--heap-quarantine", "0"), LIST(victim("heap"),
	    "one-past"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	outcome_free(&o);
	guard(&o, LIST("--heap-quarantine", "0"), LIST(victim("heap"),
	    "after-free"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 0);
	outcome_free(&o);
}

TEST(what_there_is_no_room_for_is_counted)
{
	struct outcome o;

	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "many"));
	expect_report(&o);
	assert_int_equal(o.status, 66);
	assert_int_equal(count_of(&o, "finding"), 256);
	assert_non_null(strstr(o.err, "44 findings more are not reported"));
	outcome_free(&o);
}

/* With --heap-quarantine 0 each free gives a block back, which waits while all
   blocks are looked at. */
TEST(threads_and_handlers_come_to_their_end)
{
	static const char *const acts[] = {"handler", "late-frees"};

	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		struct outcome o;

		guard(&o, LIST("--heap-quarantine", "0", "--error-exitcode",
		    "66"), LIST(victim("heap"), acts[i]));
		if (o.status != 3)
			fail_msg("%s: %d %s%s", acts[i], o.status, o.out,
			    o.err);
		outcome_free(&o);
	}
}

TEST(a_text_says_where_the_damage_is)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "--heap", "--", victim("heap"), "one-past"));
	assert_int_equal(o.status, 3);
	assert_string_equal(o.out, "done\n");
	assert_non_null(strstr(o.err, "overflow  1 byte, 3 bytes past the end "
	    "of a 40-byte block at 0x"));
	assert_non_null(strstr(o.err, ": 61 \"a\"\n"));
	assert_non_null(strstr(o.err, "allocated by\n"));
	outcome_free(&o);
}

static const struct {
	const char *command[4];
	const char *why;
} unguarded[] = {
	{{"counter_static"}, "has not loaded the guard"},
	{{"own_malloc"}, "malloc of its own"},
};

TEST(a_program_that_takes_the_address_of_malloc_is_guarded)
{
	struct outcome o;

	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap_fixed")));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	assert_int_equal(o.status, 66);
	outcome_free(&o);
}

/* The program runs, and ends, as it would have. */
/* A rule for each kind, and what a run without damage is. */
TEST(a_finding_is_told_to_ci)
{
	char junit[] = "/tmp/run_heap_test.XXXXXX";
	const int fd = mkstemp(junit);
	struct outcome o;

	assert_true(fd >= 0);
	(void)close(fd);
	guard(&o, LIST("--junit", junit, "--github"),
	    LIST(victim("heap"), "underflow"));
	assert_non_null(strstr(o.err, ",title=heap underflow::underflow: "
	    "1 byte, 3 bytes in front of a 40-byte block"));
	outcome_take(&o, junit);
	assert_non_null(strstr(o.report, "tests=\"1\" failures=\"1\""));
	assert_non_null(strstr(o.report, "name=\"underflow by make_block\""));
	assert_non_null(strstr(o.report, "type=\"heap-underflow\""));
	outcome_free(&o);
	guard(&o, LIST("--junit", junit), LIST("/bin/true"));
	outcome_take(&o, junit);
	assert_non_null(strstr(o.report, "tests=\"1\" failures=\"0\""));
	assert_non_null(strstr(o.report, "classname=\"true\" name=\"heap\""));
	outcome_free(&o);
	(void)unlink(junit);
}

TEST(what_is_not_guarded_is_not_vouched_for)
{
	for (size_t i = 0; i < sizeof(unguarded) / sizeof(unguarded[0]); i++) {
		const char *path = victim(unguarded[i].command[0]);
		struct outcome o;

		guard(&o, LIST("--error-exitcode", "66"), LIST(path));
		assert_int_equal(o.status, 120);
		assert_non_null(strstr(o.err, unguarded[i].why));
		outcome_free(&o);
	}
}

TEST(a_program_that_a_shell_executes_is_guarded_too)
{
	char command[4352];
	struct outcome o;

	(void)snprintf(command, sizeof(command), "true | cat; %s one-past; "
	    "exit 5", victim("heap"));
	guard(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
	    command));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	assert_int_equal(o.status, 66);
	outcome_free(&o);
	(void)snprintf(command, sizeof(command), "echo done; %s; exit 5",
	    victim("own_malloc"));
	guard(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
	    command));
	assert_int_equal(o.status, 120);
	outcome_free(&o);
}

TEST(who_is_still_running_is_not_vouched_for)
{
	static const char *const commands[] = {
		"sleep 3 > /dev/null 2>&1 & exit 0",
		"sleep 0.1 > /dev/null 2>&1 & wait; exit 0",
	};

	for (int i = 0; i < 2; i++) {
		struct outcome o;

		guard(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
		    commands[i]));
		if (o.status != (i == 0 ? 120 : 0) ||
		    (strstr(o.err, "still running") == NULL) != (i == 1))
			fail_msg("%s: %d %s", commands[i], o.status, o.err);
		outcome_free(&o);
	}
}

static const struct {
	const char *argv[8];
} clean[] = {
	{{"python3", "-c", "import json; print(json.dumps([1] * 1000))"}},
	{{"perl", "-e", "my %h; $h{$_} = [$_] for 1..5000; print keys %h"}},
	{{"bash", "-c", "for i in 1 2 3; do echo $i | sed s/1/2/ | cat; done"}},
	{{"git", "--version"}},
	{{"cc", "-x", "c", "-c", "-o", "/dev/null", "/dev/null"}},
};

TEST(programs_without_damage_are_clean)
{
	static const char if_there[] =
	    "command -v \"$0\" >/dev/null || exit 0; \"$0\" \"$@\"";

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++) {
		struct outcome o;

		run(&o, LIST(watchctl(), "--heap", "--error-exitcode", "66",
		    "--", "sh", "-c", if_there, clean[i].argv[0],
		    clean[i].argv[1], clean[i].argv[2], clean[i].argv[3],
		    clean[i].argv[4], clean[i].argv[5], clean[i].argv[6]));
		if (o.status != 0)
			fail_msg("%s: %d %s", clean[i].argv[0], o.status,
			    o.err);
		outcome_free(&o);
	}
}

RUN_TESTS()
