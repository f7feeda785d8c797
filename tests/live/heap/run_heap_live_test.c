/* What --heap finds in a program's heap, and that it finds nothing else. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap_bugs.h"
#include "live.h"
#include "scratch.h"
#include "watching.h"

/* The text of a frame's line. */
static void
source_of(const json_t *frame, char line[256])
{
	FILE *f = fopen(maybe_text(frame, "file"), "r");
	json_int_t n = number_of(frame, "line");

	assert_non_null(f);
	while (n-- > 0)
		assert_non_null(fgets(line, 256, f));
	(void)fclose(f);
}

/* The innermost frame in the victim's own file is the line that did it. */
static void
expect_writer(const struct bug *bug, const json_t *hit)
{
	char line[256] = "";
	size_t i;
	json_t *frame;

	json_array_foreach(json_object_get(hit, "frames"), i, frame)
		if (strstr(maybe_text(frame, "file"), "heap.cc") != NULL) {
			source_of(frame, line);
			break;
		}
	if (strstr(line, bug->writer) == NULL)
		fail_msg("%s: not by %s, but %s", bug->name, bug->writer,
		    line);
}

/* One hit, by whom it was, of which the finding tells. */
static void
expect_named(const struct bug *bug, const struct outcome *o, const json_t *f)
{
	const json_t *hits = json_object_get(f, "hits");
	const json_t *hit = first_of(o, "hit");

	if (bug->writer == NULL) {
		assert_null(hits);
		assert_null(hit);
		return;
	}
	if (json_array_size(hits) != 1 || count_of(o, "hit") != 1)
		fail_msg("%s: not named: %s%s", bug->name, o->out, o->err);
	assert_int_equal(json_integer_value(json_array_get(hits, 0)),
	    number_of(hit, "seq"));
	assert_string_equal(text_of(hit, "access"), "write");
	/* of one byte it is what the damage has */
	if (strlen(text_of(f, "bytes")) == 2)
		assert_int_equal(hex_of(hit, "new"), strtoul(text_of(f,
		    "bytes"), NULL, 16));
	expect_writer(bug, hit);
}

TEST(each_bug_is_found_and_named_and_the_program_is_as_it_was)
{
	for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		struct outcome o;

		guard(&o, LIST("--no-cache"), LIST(victim("heap"),
		    bugs[i].name));
		expect_named(&bugs[i], &o, expect_bug(&bugs[i], &o));
	}
}

TEST(each_of_two_like_blocks_has_its_own_writer)
{
	struct outcome o;
	const json_t *line;
	size_t i;

	guard(&o, LIST("--no-cache"), LIST(victim("heap"), "two-writers"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 2);
	assert_int_equal(count_of(&o, "hit"), 2);
	json_array_foreach(o.lines, i, line) {
		const json_t *hits = json_object_get(line, "hits");
		const char *wrote;

		if (strcmp(text_of(line, "type"), "finding") != 0)
			continue;
		assert_int_equal(json_array_size(hits), 1);
		wrote = json_integer_value(json_array_get(hits, 0)) == 1 ?
		    "66" : "67";
		assert_string_equal(text_of(line, "bytes"), wrote);
	}
}

static const json_t *
hit_numbered(const struct outcome *o, json_int_t seq)
{
	size_t i;
	const json_t *line;

	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "hit") == 0 &&
		    number_of(line, "seq") == seq)
			return line;
	fail_msg("no hit %lld: %s", (long long)seq, o->out);
	return NULL;
}

/* Each block has the hit of its own bytes, already in the first further run. */
TEST(one_access_that_damages_two_blocks_is_a_hit_of_each)
{
	struct outcome o;
	const json_t *line;
	size_t i;

	LIVE_NEEDS_SEVERAL;
	guard(&o, LIST("--no-cache", "--heap-runs", "1", "--heap-quarantine",
	    "0"), LIST(victim("heap"), "across-two"));
	if (o.status == 77)
		skip();
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 2);
	json_array_foreach(o.lines, i, line) {
		const json_t *hits = json_object_get(line, "hits");
		const json_t *hit;

		if (strcmp(text_of(line, "type"), "finding") != 0)
			continue;
		if (json_array_size(hits) != 1)
			fail_msg("%s%s", o.out, o.err);
		hit = hit_numbered(&o,
		    json_integer_value(json_array_get(hits, 0)));
		assert_int_equal(hex_of(hit, "addr"), hex_of(line, "addr") +
		    (uint64_t)number_of(line, "offset"));
	}
}

static const struct bug sampled[] = {
	{"one-past", "overflow", 3, 40, 43, "61", "write", "make_block", NULL,
	    NULL, "[43] = 'a'"},
	{"after-free", "use-after-free", 3, 40, 7, "66", "write", "make_block",
	    "drop_block", NULL, "p[7] = 'f'"},
	{"child", "overflow", 3, 40, 40, "63", "write", "make_block", NULL,
	    NULL, "[40] = 'c'"},
	{"abort", "overflow", 128 + SIGABRT, 40, 42, "61", "write",
	    "make_block", NULL, NULL, "[42] = 'a'"},
	{"kill", "overflow", 128 + SIGKILL, 40, 42, "6b", "write",
	    "make_block", NULL, NULL, "[42] = 'k'"},
	{"new-array", "overflow", 3, 40, 40, "6e", "write", "new_array", NULL,
	    NULL, "p[forty] = 'n'"},
};

TEST(in_the_only_run_the_first_block_of_each_call_site_is_watched)
{
	for (size_t i = 0; i < sizeof(sampled) / sizeof(sampled[0]); i++) {
		struct outcome o;
		const json_t *share;

		guard(&o, LIST("--heap=sample", "--no-cache"),
		    LIST(victim("heap"), sampled[i].name));
		expect_report(&o);
		if (o.status != sampled[i].status ||
		    count_of(&o, "finding") != 1)
			fail_msg("%s: status %d, %s%s", sampled[i].name,
			    o.status, o.out, o.err);
		expect_finding(&sampled[i], first_of(&o, "finding"));
		expect_named(&sampled[i], &o, first_of(&o, "finding"));
		share = first_of(&o, "coverage");
		assert_true(number_of(share, "sites") > 0);
		assert_true(number_of(share, "blocks") > 0);
	}
}

/* Of the first few damaged blocks perhaps none is watched; then all that the
   same callers allocate are, as far as the time allows that watches may take:
   a twentieth, which is too little where opening one takes long. */
TEST(a_call_site_whose_block_is_damaged_is_watched_in_the_same_run)
{
	enum { FEW = 20 };
	const struct bug bug = {.name = "serves", .writer = "p[42] = 's'"};
	unsigned named = 0;
	struct outcome o;
	const json_t *line, *share;
	double watched;
	size_t i;

	guard(&o, LIST("--heap=sample", "--error-exitcode", "66"),
	    LIST(victim("heap"), bug.name));
	expect_report(&o);
	assert_int_equal(o.status, 66);
	json_array_foreach(o.lines, i, line) {
		if (strcmp(text_of(line, "type"), "hit") == 0)
			expect_writer(&bug, line);
		if (strcmp(text_of(line, "type"), "finding") != 0)
			continue;
		assert_string_equal(text_of(line, "bytes"), "73");
		named += json_array_size(json_object_get(line, "hits")) > 0;
	}
	assert_true(count_of(&o, "finding") <= 8);
	share = first_of(&o, "coverage");
	watched = json_real_value(json_object_get(share, "share")) *
	    (double)number_of(share, "blocks");
	if (named == 0 && watched < FEW) {
		print_message("watches take so long to open here that %.0f "
		    "blocks were watched\n", watched);
		skip();
	}
	if (named == 0)
		fail_msg("not named: %s%s", o.out, o.err);
}

TEST(a_finding_decides_the_status_that_is_asked_for)
{
	struct outcome o;

	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "double-free"));
	assert_int_equal(o.status, 66);
	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "nothing"));
	expect_report(&o);
	if (o.status != 3 || count_of(&o, "finding") != 0)
		fail_msg("%d: %s%s", o.status, o.out, o.err);
}

/* Who did it, or who allocated. */
TEST(what_is_allowed_is_no_finding)
{
	static const char *const allowed[] = {"underflow", "make_*"};

	for (size_t i = 0; i < 3; i++) {
		struct outcome o;

		guard(&o, LIST("--error-exitcode", "66", "--allow", i < 2 ?
		    allowed[i] : "drop_block"), LIST(victim("heap"),
		    "underflow"));
		expect_report(&o);
		assert_int_equal(count_of(&o, "finding"), i == 2);
		assert_int_equal(o.status, i == 2 ? 66 : 3);
		assert_int_equal(strstr(o.err, "0 findings in heaps, "
		    "1 allowed") != NULL, i < 2);
	}
}

/* A rule for each kind, and what a run without damage is. */
TEST(a_finding_is_reported_to_ci)
{
	char junit[] = "/tmp/run_heap_live_test.XXXXXX";
	const int fd = mkstemp(junit);
	struct outcome o;

	assert_true(fd >= 0);
	(void)close(fd);
	guard(&o, LIST("--junit", junit, "--github"),
	    LIST(victim("heap"), "underflow"));
	assert_holds(o.err, ",title=heap underflow::underflow: "
	    "1 byte, 3 bytes in front of a 40-byte block");
	assert_holds(o.err, ", written by underflow\n");
	outcome_take(&o, junit);
	assert_holds(o.report, "tests=\"1\" failures=\"1\"");
	assert_holds(o.report, "name=\"underflow by underflow\"");
	assert_holds(o.report, "type=\"heap-underflow\"");
	guard(&o, LIST("--junit", junit), LIST("/bin/true"));
	outcome_take(&o, junit);
	assert_holds(o.report, "tests=\"1\" failures=\"0\"");
	assert_holds(o.report, "classname=\"true\" name=\"heap\"");
	(void)unlink(junit);
}

/* Run a shell that runs watchctl, as text. */
static void
shell_guards(struct outcome *o, const char *before, const char *options,
    const char *act, const char *after)
{
	char command[8704];

	(void)snprintf(command, sizeof(command), "%s %s --heap %s -- %s %s%s",
	    before, watchctl(), options, victim("heap"), act, after);
	run(o, LIST("/bin/sh", "-c", command));
}

TEST(a_command_that_has_read_a_pipe_does_not_run_again)
{
	struct outcome o;

	shell_guards(&o, "echo line |", "", "reads", "");
	assert_int_equal(o.status, 3);
	assert_string_equal(o.out, "line\ndone\n");
	assert_holds(o.err, "has read standard input");
	assert_holds(o.err, "0 hits, ");
	shell_guards(&o, "echo line |", "", "one-past", "");
	assert_holds(o.err, "1 hit, ");
}

/* The file is read again from where it was, and is where the first run left
   it. */
TEST(a_file_is_read_again)
{
	struct outcome o;

	shell_guards(&o, "in=$(mktemp); printf 'line 1\\nline 2\\nline 3\\n' "
	    "> $in; { read -r first;", "", "reads", "; cat; } < $in; rm $in");
	assert_string_equal(o.out, "line 2\ndone\nline 3\n");
	assert_holds(o.err, "1 hit, ");
}

TEST(a_further_run_has_no_terminal)
{
	char name[] = "/tmp/run_heap_live_test.XXXXXX", command[8704];
	const int fd = mkstemp(name);
	int pid[2], session[2];
	struct outcome o;
	FILE *f;

	assert_true(fd >= 0);
	(void)close(fd);
	(void)snprintf(command, sizeof(command), "cut -d' ' -f1,6 "
	    "/proc/$$/stat >> %s; %s one-past; exit 4", name, victim("heap"));
	guard(&o, LIST("--no-cache"), LIST("/bin/sh", "-c", command));
	assert_int_equal(o.status, 4);
	f = fopen(name, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d%d%d%d", &pid[0], &session[0], &pid[1],
	    &session[1]), 4);
	(void)fclose(f);
	(void)unlink(name);
	assert_int_equal(session[0], getsid(0));
	assert_int_equal(session[1], pid[1]);
}

/* Its processes do not wait for each other. */
TEST(a_further_run_that_forks_comes_to_its_end)
{
	struct outcome o;

	guard(&o, LIST("--heap-runs", "1"), LIST(victim("heap"), "forks"));
	expect_report(&o);
	assert_int_equal(o.status, 3);
	assert_true(count_of(&o, "finding") > 0);
	assert_lacks(o.err, "a further run was ended");
}

/* The shell's parent is watchctl. */
TEST(after_a_signal_that_ends_there_is_no_further_run)
{
	char command[4352];
	struct outcome o;

	(void)snprintf(command, sizeof(command), "%s one-past; "
	    "kill -INT $PPID; exit 4", victim("heap"));
	guard(&o, LIST("--no-cache"), LIST("/bin/sh", "-c", command));
	expect_report(&o);
	assert_int_equal(o.status, 4);
	assert_int_equal(count_of(&o, "finding"), 1);
	assert_int_equal(count_of(&o, "hit"), 0);
	assert_holds(o.err, "a signal came");
}

/* Whoever is left is ended after ten seconds. */
TEST(a_further_run_leaves_no_process_behind)
{
	char name[] = "/tmp/run_heap_live_test.XXXXXX";
	const int fd = mkstemp(name);
	struct outcome o;
	int pid = 0;
	FILE *f;

	assert_true(fd >= 0);
	(void)close(fd);
	guard(&o, LIST("--no-cache"), LIST(victim("heap"), "leaves", name));
	expect_report(&o);
	assert_int_equal(count_of(&o, "hit"), 1);
	assert_holds(o.err, "a further run was ended, since it took "
	    "more than 10 seconds");
	f = fopen(name, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	(void)fclose(f);
	(void)unlink(name);
	/* its parent may not have taken note of its end */
	assert_true(kill(pid, 0) != 0 || state_of(pid) == 'Z');
}

TEST(programs_without_damage_are_clean_in_the_only_run)
{
	expect_clean("--heap=sample");
}

int
main(void)
{
	static const CMUnitTestFunction slow[] = {
		a_further_run_leaves_no_process_behind, NULL,
	};

	return run_live_tests(.before_all = scratch_make,
	    .after_all = scratch_remove,
	    .except = getenv("THOROUGH") != NULL ? NULL : slow);
}
