/* What --heap finds in a program's heap, and that it finds nothing else. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
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
	const char *writer;	/* the line that did it; NULL: it is no write */
};

static const struct bug bugs[] = {
	{"one-past", "overflow", 3, 40, 43, "61", "free", "make_block", NULL,
	    "drop_block",
	    "[43] = 'a'"},
	{"strcpy", "overflow", 3, 40, 40, "00", "exit", "make_block", NULL,
	    NULL,
	    "strcpy(make_block()"},
	{"memcpy", "overflow", 3, 40, 40, "72207768", "exit", "make_block",
	    NULL, NULL,
	    "memcpy(make_block() + 1"},
	{"underflow", "underflow", 3, 40, -3, "75", "free", "make_block", NULL,
	    "drop_block",
	    "[-3] = 'u'"},
	{"after-free", "use-after-free", 3, 40, 7, "66", "exit", "make_block",
	    "drop_block", NULL,
	    "p[7] = 'f'"},
	{"after-realloc", "use-after-free", 3, 40, 9, "72", "exit",
	    "make_block", "after_realloc", NULL,
	    "p[9] = 'r'"},
	{"double-free", "double-free", 3, 40, -100, NULL, "free", "make_block",
	    "drop_block", "drop_block",
	    NULL},
	{"invalid-free", "invalid-free", 3, 40, 16, NULL, "free",
	    "make_block", NULL, "drop_block",
	    NULL},
	{"mismatch", "mismatch", 3, 40, -100, NULL, "free", "mismatch", NULL,
	    "mismatch",
	    NULL},
	{"child", "overflow", 3, 40, 40, "63", "exit", "make_block", NULL,
	    NULL,
	    "[40] = 'c'"},
	{"thread", "overflow", 3, 40, 41, "74", "exit", "make_block", NULL,
	    NULL,
	    "[41] = 't'"},
	{"abort", "overflow", 128 + SIGABRT, 40, 42, "61", "crash",
	    "make_block", NULL, NULL,
	    "[42] = 'a'"},
	{"crash", "overflow", 128 + SIGSEGV, 40, 42, "61", "crash",
	    "make_block", NULL, NULL,
	    "[42] = 'a'"},
	{"exec", "overflow", 3, 40, 42, "65", "exec", "make_block", NULL,
	    NULL,
	    "[42] = 'e'"},
	{"quick-exit", "overflow", 3, 40, 42, "71", "exit", "make_block", NULL,
	    NULL,
	    "[42] = 'q'"},
	{"two-exits", "overflow", 3, 40, 42, "32", "exit", "make_block", NULL,
	    NULL,
	    "[42] = '2'"},
	{"read", "overflow", 3, 40, 40, "72", "exit", "make_block", NULL,
	    NULL, "read(ends[0]"},
	{"queue", "overflow", 3, 40, 41, "6a", "free", "make_block", NULL,
	    "drop_block", "p[41] = 'j'"},
	{"new-array", "overflow", 3, 40, 40, "6e", "free", "new_array", NULL,
	    "new_array", "p[forty] = 'n'"},
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
	assert_holds(text_of(f, "program"), "victim/heap");
	expect_stack(bug, "alloc", json_object_get(f, "alloc"), bug->alloc);
	expect_stack(bug, "free", json_object_get(f, "free"), bug->freed);
	expect_stack(bug, "frames", json_object_get(f, "frames") == NULL ?
	    NULL : f, bug->by);
}

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
		expect_report(&o);
		if (o.status != bugs[i].status ||
		    count_of(&o, "finding") != 1)
			fail_msg("%s: status %d, %s%s", bugs[i].name, o.status,
			    o.out, o.err);
		expect_finding(&bugs[i], first_of(&o, "finding"));
		expect_named(&bugs[i], &o, first_of(&o, "finding"));
		assert_holds(o.err, " 1 finding in heaps");
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
   same callers allocate are. */
TEST(a_call_site_whose_block_is_damaged_is_watched_in_the_same_run)
{
	const struct bug bug = {.name = "serves", .writer = "p[42] = 's'"};
	unsigned named = 0;
	struct outcome o;
	const json_t *line;
	size_t i;

	guard(&o, LIST("--heap=sample", "--error-exitcode", "66"),
	    LIST(victim("heap"), "serves"));
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
	if (named == 0)
		fail_msg("not named: %s%s", o.out, o.err);
	assert_true(count_of(&o, "finding") <= 8);
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

TEST(canaries_alone_find_what_is_past_the_end)
{
	struct outcome o;

	guard(&o, LIST("--heap-quarantine", "0"), LIST(victim("heap"),
	    "one-past"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	guard(&o, LIST("--heap-quarantine", "0"), LIST(victim("heap"),
	    "after-free"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 0);
}

TEST(what_there_is_no_room_for_is_counted)
{
	struct outcome o;

	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap"),
	    "many"));
	expect_report(&o);
	assert_int_equal(o.status, 66);
	assert_int_equal(count_of(&o, "finding"), 256);
	assert_holds(o.err, "44 findings more are not reported");
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
	}
}

TEST(a_text_says_where_the_damage_is)
{
	struct outcome o;

	run_status(&o, 3, LIST(watchctl(), "--heap", "--", victim("heap"),
	    "one-past"));
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

TEST(a_program_that_takes_the_address_of_malloc_is_guarded)
{
	struct outcome o;

	guard(&o, LIST("--error-exitcode", "66"), LIST(victim("heap_fixed")));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	assert_int_equal(o.status, 66);
}

/* A rule for each kind, and what a run without damage is. */
TEST(a_finding_is_told_to_ci)
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

/* The program runs, and ends, as it would have. */
TEST(what_is_not_guarded_is_not_vouched_for)
{
	for (size_t i = 0; i < sizeof(unguarded) / sizeof(unguarded[0]); i++) {
		const char *path = victim(unguarded[i].command[0]);
		struct outcome o;

		guard(&o, LIST("--error-exitcode", "66"), LIST(path));
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
	guard(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
	    command));
	expect_report(&o);
	assert_int_equal(count_of(&o, "finding"), 1);
	assert_int_equal(o.status, 66);
	(void)snprintf(command, sizeof(command), "echo done; %s; exit 5",
	    victim("own_malloc"));
	guard(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
	    command));
	assert_int_equal(o.status, 120);
}

TEST(who_is_still_running_is_not_vouched_for)
{
	static const char *const commands[] = {
		"sleep 60 > /dev/null 2>&1 & echo child $!; exit 0",
		"sleep 0.1 > /dev/null 2>&1 & wait; exit 0",
	};

	for (int i = 0; i < 2; i++) {
		struct outcome o;

		guard(&o, LIST("--error-exitcode", "66"), LIST("/bin/sh", "-c",
		    commands[i]));
		if (o.status != (i == 0 ? 120 : 0) ||
		    (strstr(o.err, "still running") == NULL) != (i == 1))
			fail_msg("%s: %d %s", commands[i], o.status, o.err);
		if (i == 0)
			(void)kill((pid_t)atol(strstr(o.out, "child ") + 6),
			    SIGKILL);
	}
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

TEST(what_has_read_a_pipe_does_not_run_again)
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

TEST(without_further_runs_the_evidence_is_all)
{
	struct outcome o;

	guard(&o, LIST("--heap-runs", "0"), LIST(victim("heap"), "one-past"));
	expect_report(&o);
	assert_int_equal(count_of(&o, "hit"), 0);
	assert_null(json_object_get(first_of(&o, "finding"), "hits"));
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
TEST(a_further_run_leaves_nobody_behind)
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

static const struct {
	const char *argv[8];
} clean[] = {
	{{"python3", "-c", "import json; print(json.dumps([1] * 1000))"}},
	{{"perl", "-e", "my %h; $h{$_} = [$_] for 1..5000; print keys %h"}},
	{{"bash", "-c", "for i in 1 2 3; do echo $i | sed s/1/2/ | cat; done"}},
	{{"git", "--version"}},
	{{"curl", "--version"}},
	{{"gio", "list", "/usr/share"}},
	{{"redis-server", "--version"}},
	{{"cc", "-x", "c", "-c", "-o", "/dev/null", "/dev/null"}},
};

TEST(programs_without_damage_are_clean)
{
	static const char if_there[] =
	    "command -v \"$0\" >/dev/null || exit 0; \"$0\" \"$@\"";

	for (size_t i = 0; i < 2 * sizeof(clean) / sizeof(clean[0]); i++) {
		const char *way = i % 2 == 0 ? "--heap" : "--heap=sample";
		const char *const *of = clean[i / 2].argv;
		struct outcome o;

		run(&o, LIST(watchctl(), way, "--error-exitcode", "66",
		    "--", "sh", "-c", if_there, of[0], of[1], of[2], of[3],
		    of[4], of[5], of[6]));
		if (o.status != 0)
			fail_msg("%s %s: %d %s", way, of[0], o.status, o.err);
	}
}

int
main(void)
{
	static const CMUnitTestFunction slow[] = {
		a_further_run_leaves_nobody_behind, NULL,
	};

	return run_live_tests(.before_all = scratch_make,
	    .after_all = scratch_remove,
	    .except = getenv("THOROUGH") != NULL ? NULL : slow);
}
