/*
 * session: records go in, and a report, a recording or an account comes out;
 * errors of writing are reported.
 */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "capture.h"
#include "child.h"
#include "said.h"
#include "scratch.h"
#include "session/explained_session.h"
#include "space/space.h"

/* Where the watched regions are; nothing is ever there. */
enum { WORD = 0x10000, OTHER = 0x20000 };

/* An instruction that writes; it is never executed. */
__asm__("	.text\n"
"	.type	store, @function\n"
"store:	mov	%rax, (%rdi)\n"
"	.globl	after_store\n"
"	.hidden	after_store\n"
"after_store:\n"
"	ret\n"
"	.size	store, . - store\n");

extern const char after_store[];

/* --- records, as a ring would hold them --- */

struct bytes {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

static const struct ex_perf_event event = {
	.attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(event.attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
		    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1, .bp_addr = WORD, .bp_len = 8,
	},
	.name = "word", .ids = (const uint64_t []){7}, .nids = 1,
};

static const struct ex_record *
sample(int attr, uint64_t time)
{
	static struct bytes bytes;
	static struct ex_record record;

	bytes = (struct bytes){
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
		    sizeof(bytes)},
		.id = 7, .ip = 4096, .pid = 10, .tid = 11, .time = time,
	};
	record = (struct ex_record){
		.type = PERF_RECORD_SAMPLE, .misc = bytes.header.misc,
		.size = sizeof(bytes), .bytes = (const uint8_t *)&bytes,
		.attr = attr, .pid = 10, .tid = 11, .time = time,
		.sample = {.ip = 4096},
	};
	return &record;
}

static struct ex_record
task(uint32_t type, pid_t pid, pid_t ppid, pid_t tid)
{
	return (struct ex_record){.type = type, .attr = -1, .pid = pid,
	    .tid = tid, .task = {pid, ppid, tid, ppid, 1}};
}

/* The name of the thread. */
static const struct ex_record *
name(void)
{
	static const struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char comm[8];
		uint32_t id_pid, id_tid;
		uint64_t time, cpu, id;
	} bytes = {
		{PERF_RECORD_COMM, 0, sizeof(bytes)}, 10, 11, "victim", 10, 11,
		0, 0, 7,
	};
	static const struct ex_record record = {
		.type = PERF_RECORD_COMM, .size = sizeof(bytes), .attr = -1,
		.bytes = (const uint8_t *)&bytes, .pid = 10, .tid = 11,
		.comm = {10, 11, bytes.comm},
	};

	return &record;
}

static struct ex_record
loss(uint32_t type, uint64_t count)
{
	return (struct ex_record){.type = type, .attr = -1,
	    .lost = {.count = count}};
}

/* --- sessions --- */

static struct options options;
static struct session s;
static FILE *out;		/* where reports go without -O */
static const uint64_t *counts;	/* of --count; NULL: none */

static int
open_session(void)
{
	int err = session_open(&s, &options, out);

	return err < 0 ? err : explained_session_begin(&s, EX_LIVE, NULL);
}

/* Two watches, word and other, the second for reads and of two slots. */
static void
add_watches(void)
{
	assert_int_equal(session_add_watch(&s, "word", "word", WORD, 8, 'w',
	    1), 0);
	assert_int_equal(session_add_watch(&s, "0x20000:16", NULL, OTHER, 16,
	    'r', 2), 0);
	assert_int_equal(session_add_slot(&s, 0, WORD, 8), 0);
	assert_int_equal(session_add_slot(&s, -1, 0, 0), 0);
	assert_int_equal(session_add_slot(&s, 1, OTHER, 8), 0);
	assert_int_equal(session_add_slot(&s, 1, OTHER + 8, 8), 0);
}

/* A session with these options that has begun. */
static void
begin(struct options with)
{
	struct report_start start = {.pid = 10, .comm = "victim",
	    .mode = "ring", .threads = 1, .frozen_ms = 1, .time = 1000};

	options = with;
	assert_int_equal(open_session(), 0);
	add_watches();
	assert_int_equal(session_ready(&s), 0);
	session_start(&s, &start);
}

/* End it; *said is what went to stderr. */
static int
end(const char *reason, int status, char **said)
{
	int result;

	(void)session_flush(&s, UINT64_MAX);
	said_begin(STDERR_FILENO);
	result = session_end(&s, reason, status, counts);
	session_close(&s);
	*said = said_end(STDERR_FILENO);
	return result;
}

/* End it well, with this account. */
static void
expect_end(int status, const char *account)
{
	char *said;

	assert_int_equal(end("exit", status, &said), status);
	assert_string_equal(said, account);
}

/* What the report's stream was given, until the test ends. */
static char *
reported(FILE *file)
{
	size_t len;
	char *text;

	(void)fflush(file);
	len = (size_t)lseek(fileno(file), 0, SEEK_END);
	text = calloc(1, len + 1);
	assert_non_null(text);
	assert_int_equal(pread(fileno(file), text, len, 0), len);
	test_frees(text, free);
	return text;
}

static unsigned
count_of(const char *text, const char *word)
{
	unsigned n = 0;

	while ((text = strstr(text, word)) != NULL) {
		text += strlen(word);
		n++;
	}
	return n;
}

static void
expect_report(FILE *file, const char *word, unsigned n)
{
	char *text = reported(file);

	if (count_of(text, word) != n)
		fail_msg("not %u of '%s': %s", n, word, text);
}

static int
set_up(void **state)
{
	(void)state;
	out = tmpfile();
	counts = NULL;
	return out == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	session_close(&s);
	return fclose(out);
}

TEST(writes_each_form)
{
	static const struct {
		enum form form;
		const char *word;	/* once for each hit, or so */
		unsigned n;
	} cases[] = {
		{FORM_TEXT, "write  word (8 bytes at 0x10000)", 1},
		{FORM_JSON, "{\"type\":\"hit\",", 3},
		{FORM_FOLDED, " 3\n", 1},
	};

	for (size_t i = 0; i < 3; i++) {
		begin((struct options){.form = cases[i].form});
		for (uint64_t time = 1; time <= 3; time++)
			assert_true(session_record(&s, sample(0, time)));
		expect_end(7, "watchctl: 3 hits, 3 reported, 0 lost\n");
		expect_report(out, cases[i].word, cases[i].n);
		(void)tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

static void
begin_and_add(enum form form, unsigned more)
{
	begin((struct options){.form = form});
	for (unsigned i = 0; i < more; i++)
		assert_int_equal(session_add_watch(&s, "later", NULL,
		    OTHER + 64 + i, 1, 'w', 1), 0);
	assert_int_equal(s.report.begin.nwatches, 2 + more);
	assert_ptr_equal(s.report.begin.watches, s.watches);
}

/* However many come, the report knows them all. */
TEST(reports_watches_that_come_later)
{
	enum { MORE = 100 };

	begin_and_add(FORM_JSON, MORE);
	expect_end(0, "watchctl: 0 hits, 0 reported, 0 lost\n");
	expect_report(out, "{\"type\":\"watch\",", MORE);
	(void)tear_down(state);
	assert_int_equal(set_up(state), 0);
	begin_and_add(FORM_TEXT, MORE);
}

TEST(writes_into_a_file)
{
	const char *path = scratch_path("report");
	struct stat st;

	scratch_write("report", "of another day, and longer than what comes "
	    "now\n");
	begin((struct options){.form = FORM_FOLDED, .output = path});
	assert_true(session_record(&s, sample(0, 1)));
	expect_end(0, "watchctl: 1 hit, 1 reported, 0 lost\n");
	assert_int_equal(lseek(fileno(out), 0, SEEK_END), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 0 && st.st_size < 40);
}

/* What fails before it begins leaves no file. */
TEST(removes_a_file_that_never_began)
{
	static const enum form forms[] = {FORM_TEXT, FORM_PERF};

	for (size_t i = 0; i < COUNT(forms); i++) {
		options = (struct options){.form = forms[i],
		    .output = scratch_path("new")};
		assert_int_equal(open_session(), 0);
		assert_int_equal(access(scratch_path("new"), F_OK), 0);
		session_close(&s);
		assert_int_equal(access(scratch_path("new"), F_OK), -1);
	}
}

/* What a file held is there until there is something to write. */
TEST(keeps_a_file_until_it_begins)
{
	static const enum form forms[] = {FORM_TEXT, FORM_JSON, FORM_FOLDED,
	    FORM_PERF};
	const char *path = scratch_path("kept");
	char *text;

	for (size_t i = 0; i < COUNT(forms); i++) {
		scratch_write("kept", "a report of another day\n");
		options = (struct options){.form = forms[i], .output = path};
		assert_int_equal(open_session(), 0);
		add_watches();
		assert_int_equal(session_ready(&s), 0);
		session_close(&s);
		text = scratch_read("kept", NULL);
		assert_string_equal(text, "a report of another day\n");
		begin(options);
		if (forms[i] == FORM_PERF)
			assert_int_equal(session_record_to_file(&s, &event, 1),
			    0);
		session_close(&s);
		text = scratch_read("kept", NULL);
		assert_lacks(text, "another day");
	}
}

/* What cannot be opened: a line, and nothing is left open. */
TEST(refuses_outputs)
{
	const struct {
		enum form form;
		const char *output, *file, *said;
	} cases[] = {
		{FORM_TEXT, scratch_path("no/file"), NULL, "No such file"},
		{FORM_PERF, scratch_path("no/file"), NULL, "No such file"},
		{FORM_JSON, scratch_dir, NULL, "Is a directory"},
		{FORM_PERF, scratch_path("fifo"), NULL, "pipe"},
		{FORM_TEXT, scratch_path("input"), scratch_path("link"),
		    "the recording"},
	};
	unsigned before;

	scratch_write("input", "a recording\n");
	assert_int_equal(symlink("input", scratch_path("link")), 0);
	assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
	before = open_descriptors();
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *file = (char *)(uintptr_t)cases[i].file, *said;
		int result;

		options = (struct options){.form = cases[i].form,
		    .output = cases[i].output, .file = file, .files = &file,
		    .nfiles = file != NULL};
		said_begin(STDERR_FILENO);
		result = open_session();
		session_close(&s);
		said = said_end(STDERR_FILENO);
		assert_true(result < 0);
		if (strstr(said, cases[i].output) == NULL ||
		    strstr(said, cases[i].said) == NULL ||
		    count_of(said, "\n") != 1)
			fail_msg("case %zu: %s", i, said);
	}
	assert_int_equal(open_descriptors(), before);
	(void)scratch_read("input", NULL);
}

TEST(ends_at_a_limit)
{
	begin((struct options){.form = FORM_JSON, .limit = 2});
	assert_true(session_record(&s, sample(0, 1)));
	assert_false(s.full);
	assert_false(session_record(&s, sample(0, 2)));
	assert_true(s.full);
	assert_false(session_record(&s, sample(0, 3)));
	assert_false(session_flush(&s, UINT64_MAX));
	expect_end(0, "watchctl: 2 hits, 2 reported, 0 lost\n");
	expect_report(out, "\"type\":\"hit\"", 2);
}

/* The last one wanted is complete only when time shows it; one more waits. */
TEST(ends_at_a_limit_by_time)
{
	const uint64_t late = 1000000000;
	struct ex_record other;

	begin((struct options){.form = FORM_JSON, .limit = 1});
	assert_true(session_record(&s, sample(2, 1)));
	assert_true(session_record(&s, sample(3, 2)));
	other = *sample(2, 3);
	other.tid = 12;
	assert_true(session_record(&s, &other));
	assert_true(session_flush(&s, 4));
	assert_false(session_flush(&s, late));
	expect_end(0, "watchctl: 1 hit, 1 reported, 0 lost\n");
}

TEST(counts_samples_of_watches)
{
	begin((struct options){.form = FORM_JSON});
	assert_true(session_record(&s, sample(2, 1)));
	assert_true(session_record(&s, sample(3, 1)));
	assert_true(session_record(&s, sample(1, 2)));	/* of no watch */
	assert_true(session_record(&s, sample(4, 3)));	/* nor this */
	assert_true(session_record(&s, sample(-1, 4)));
	assert_int_equal(s.samples, 2);
	expect_end(0, "watchctl: 1 hit, 1 reported, 0 lost\n");
}

TEST(reports_what_was_lost)
{
	const struct ex_record lost = loss(PERF_RECORD_LOST, 5);
	const struct ex_record more = loss(PERF_RECORD_LOST_SAMPLES, 2);

	begin((struct options){.form = FORM_JSON});
	assert_true(session_record(&s, sample(0, 1)));
	assert_true(session_record(&s, &lost));
	assert_true(session_record(&s, &more));
	session_lost(&s, 0);
	session_lost(&s, 10);
	expect_end(0, "watchctl: 18 hits, 1 reported, 17 lost\n");
	expect_report(out, "{\"type\":\"lost\"", 3);
	expect_report(out, "\"hits\":18,\"reported\":1,\"lost\":17", 1);
}

/* What else became of records is in the account. */
TEST(accounts_for_every_hit)
{
	static const uint64_t each[] = {4, 5};

	begin((struct options){.form = FORM_JSON});
	s.skipped = 3;
	expect_end(0, "watchctl: 0 hits, 0 reported, 0 lost; 3 records of "
	    "unknown types were skipped\n");

	begin((struct options){.form = FORM_JSON, .count = true});
	counts = each;
	expect_end(0, "watchctl: 9 hits, 9 reported, 0 lost\n");
	expect_report(out, "\"hits\":9,\"reported\":9", 1);
}

/* What a policy makes of a run: its exit status, and what it says of that. */
TEST(judges_a_run)
{
	static const char *const allow[] = {"store"};
	static const uint64_t none[] = {0, 0}, some[] = {3, 0};
	static const struct {
		size_t allowed;
		int error_status, status;
		unsigned hits;
		uint64_t lost;
		const uint64_t *counts;
		const char *doubt;
		int result;
		const char *said;
	} cases[] = {
		/* these samples have no backtraces */
		{1, 0, 7, 2, 0, NULL, NULL, 7, "2 hits, 2 reported, 0 lost, "
		    "0 stray, 2 not judged\n"},
		{1, 66, 7, 2, 0, NULL, NULL, 120, "2 hits, 2 reported, 0 lost, "
		    "0 stray, 2 not judged\nwatchctl: exit status 120: nothing "
		    "stray was seen, but 2 hits cannot be judged: a caller "
		    "that is allowed may be missing in their backtraces\n"},
		{1, 0, 7, 0, 5, NULL, "half is missing", 7,
		    "5 hits, 0 reported, 5 lost, 0 stray\n"},
		{0, 66, 7, 2, 0, NULL, NULL, 66, "2 hits, 2 reported, 0 lost, "
		    "2 stray by 1 writer\n"},
		{0, 66, 7, 0, 0, NULL, NULL, 7, "0 hits, 0 reported, 0 lost, "
		    "0 stray\n"},
		{0, 66, 7, 0, 1, NULL, NULL, 120, "1 hit, 0 reported, 1 lost, "
		    "0 stray\nwatchctl: exit status 120: nothing stray was "
		    "seen, but 1 hit was lost\n"},
		{0, 66, 7, 0, 5, NULL, "half is missing", 120, "5 hits, "
		    "0 reported, 5 lost, 0 stray\nwatchctl: exit status 120: "
		    "nothing stray was seen, but half is missing\n"},
		{0, 66, 7, 1, 5, NULL, "half is missing", 66, "6 hits, "
		    "1 reported, 5 lost, 1 stray by 1 writer\n"},
		{0, 66, 120, 0, 0, NULL, NULL, 120, "0 hits, 0 reported, "
		    "0 lost, 0 stray\n"},
		{0, 66, 7, 0, 0, none, NULL, 7, "0 hits, 0 reported, 0 lost, "
		    "0 stray\n"},
		{0, 66, 7, 0, 0, some, NULL, 66, "3 hits, 3 reported, 0 lost, "
		    "3 stray\n"},
	};
	char status[32];

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *said;
		int result;

		begin((struct options){.form = FORM_JSON,
		    .allow = (const char **)(uintptr_t)allow,
		    .nallow = cases[i].allowed,
		    .error_status = cases[i].error_status,
		    .count = cases[i].counts != NULL});
		for (unsigned k = 0; k < cases[i].hits; k++)
			assert_true(session_record(&s, sample(0, k)));
		session_lost(&s, cases[i].lost);
		if (cases[i].doubt != NULL) {
			session_doubt(&s, "%s", cases[i].doubt);
			session_doubt(&s, "more");
		}
		counts = cases[i].counts;
		result = end("exit", cases[i].status, &said);
		if (result != cases[i].result ||
		    strcmp(said + strlen("watchctl: "), cases[i].said) != 0)
			fail_msg("case %zu: %d, %s", i, result, said);
		(void)snprintf(status, sizeof(status), "\"status\":%d}",
		    result);
		expect_report(out, status, 1);
		expect_report(out, cases[i].allowed > 0 ?
		    "\"access\":\"write\",\"unjudged\":true" :
		    "\"access\":\"write\",\"stray\":true", cases[i].hits);
		expect_report(out, "{\"type\":\"finding\"", cases[i].hits > 0);
		(void)tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

/* What is doubtful of late hits is another thing than of others. */
TEST(says_why_hits_are_not_judged)
{
	static const char *const allow[] = {"store"};
	static const struct {
		unsigned late, missing;
		const char *said;
	} cases[] = {
		{1, 0, "1 hit cannot be judged: it came late, and what its "
		    "backtrace shows is where the signal was unblocked\n"},
		{2, 0, "2 hits cannot be judged: they came late, and what "
		    "their backtraces show is where the signal was "
		    "unblocked\n"},
		{2, 1, "3 hits cannot be judged: 2 came late, and what their "
		    "backtraces show is where the signal was unblocked; of "
		    "the other a caller that is allowed may be missing in the "
		    "backtrace\n"},
		{0, 1, "1 hit cannot be judged: a caller that is allowed may "
		    "be missing in its backtrace\n"},
	};
	const struct ex_hints late = {.late = true};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *said;

		begin((struct options){.form = FORM_JSON,
		    .allow = (const char **)(uintptr_t)allow, .nallow = 1,
		    .error_status = 66});
		for (unsigned k = 0; k < cases[i].late + cases[i].missing;
		    k++) {
			ex_explain_hints(s.explainer,
			    k < cases[i].late ? &late : NULL);
			assert_true(session_record(&s, sample(0, k)));
			assert_true(session_flush(&s, UINT64_MAX));
		}
		assert_int_equal(end("exit", 7, &said), 120);
		if (strstr(said, cases[i].said) == NULL)
			fail_msg("case %zu: %s", i, said);
		(void)tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

/* A report that cannot be written is watchctl's own failure; one whose reader
   has gone ended the watch too early. */
TEST(judges_a_run_that_was_cut_short)
{
	FILE *file = out;
	char *said;
	int ends[2];

	begin((struct options){.form = FORM_JSON, .output = "/dev/full",
	    .error_status = 66});
	(void)session_record(&s, sample(0, 1));
	assert_int_equal(end("detached", 0, &said), 125);

	assert_int_equal(pipe(ends), 0);
	(void)close(ends[0]);
	out = fdopen(ends[1], "w");
	assert_non_null(out);
	begin((struct options){.form = FORM_JSON, .error_status = 66});
	assert_false(session_flush(&s, UINT64_MAX));
	assert_int_equal(end("detached", 0, &said), 120);
	assert_holds(said, "exit status 120: ");
	assert_holds(said, "reader has gone");
	(void)fclose(out);
	out = file;
}

/* A write, by an instruction that is known, where reads are watched. */
TEST(accounts_for_writes_that_were_dropped)
{
	const uint64_t regs[] = {[PERF_REG_X86_DI] = OTHER,
	    [PERF_REG_X86_IP] = (uintptr_t)after_store};
	struct ex_record record = *sample(2, 1);

	begin((struct options){.form = FORM_JSON});
	capture_maps(s.space, getpid());
	record.pid = record.tid = getpid();
	record.sample.ip = (uintptr_t)after_store;
	record.sample.user = (struct ex_perf_regs){PERF_SAMPLE_REGS_ABI_64,
	    (UINT64_C(1) << (PERF_REG_X86_IP + 1)) - 1,
	    (const uint8_t *)regs};
	assert_true(session_record(&s, &record));
	assert_int_equal(s.samples, 1);
	expect_end(0, "watchctl: 0 hits, 0 reported, 0 lost; 1 access was a "
	    "write and not wanted\n");
	expect_report(out, "\"lost\":0,\"dropped\":1,", 1);
}

/* The same value, stored over and over. */
TEST(leaves_out_what_is_unchanged)
{
	static const struct ex_value_options values = {.read = NULL};
	const uint64_t regs[] = {[PERF_REG_X86_DI] = WORD,
	    [PERF_REG_X86_IP] = (uintptr_t)after_store};

	begin((struct options){.form = FORM_JSON, .changed = true, .limit = 2});
	assert_int_equal(ex_explainer_values(s.explainer, &values), 0);
	capture_maps(s.space, getpid());
	for (uint64_t time = 1; time <= 4; time++) {
		struct ex_record record = *sample(0, time);

		record.pid = record.tid = getpid();
		record.sample.ip = (uintptr_t)after_store;
		record.sample.user = (struct ex_perf_regs){
		    PERF_SAMPLE_REGS_ABI_64,
		    (UINT64_C(1) << (PERF_REG_X86_IP + 1)) - 1,
		    (const uint8_t *)regs};
		assert_true(session_record(&s, &record));
	}
	/* of what the first one left there is no doubt */
	expect_end(0, "watchctl: 4 hits, 1 reported, 0 lost, 3 unchanged\n");
	expect_report(out, "{\"type\":\"hit\"", 1);
	expect_report(out, "\"hits\":4,\"reported\":1,\"lost\":0,"
	    "\"unchanged\":3,", 1);
}

/* Which hits are reported, in how many ways they are left out, and that -n
   counts those that are not. */
TEST(leaves_out_what_is_not_wanted)
{
	static struct condition condition;
	struct condition_error error;

	assert_int_equal(condition_parse("count != 3 || new == 1", &condition,
	    &error), 0);
	begin((struct options){.form = FORM_JSON, .condition = condition,
	    .every = 2, .limit = 2});
	for (uint64_t time = 1; time <= 4; time++)
		assert_int_equal(session_record(&s, sample(0, time)),
		    time < 4);
	expect_end(0, "watchctl: 4 hits, 2 reported, 0 lost, 0 rejected, "
	    "2 skipped\n");
	expect_report(out, "\"hits\":4,\"reported\":2,\"lost\":0,"
	    "\"rejected\":0,\"skipped\":2,", 1);
	condition_free(&condition);
	/* what is known decides */
	assert_int_equal(condition_parse("count != 3", &condition, &error), 0);
	begin((struct options){.form = FORM_TEXT, .condition = condition});
	for (uint64_t time = 1; time <= 4; time++)
		assert_true(session_record(&s, sample(0, time)));
	session_lost(&s, 1);
	assert_true(session_record(&s, sample(0, 5)));
	expect_end(0, "watchctl: 6 hits, 4 reported, 1 lost, 1 rejected\n");
	expect_report(out, "(--if: not known)", 1);
	condition_free(&condition);
}

TEST(reports_threads)
{
	const struct ex_record thread = task(PERF_RECORD_FORK, 10, 10, 12);
	const struct ex_record child = task(PERF_RECORD_FORK, 13, 10, 13);
	const struct ex_record gone = task(PERF_RECORD_EXIT, 10, 10, 12);
	static const struct {
		bool follow;
		const char *file;
		unsigned began;
	} cases[] = {{false, NULL, 1}, {true, NULL, 2}, {false, "f", 2}};

	for (size_t i = 0; i < 3; i++) {
		begin((struct options){.form = FORM_JSON,
		    .follow = cases[i].follow, .file = cases[i].file});
		assert_true(session_record(&s, &thread));
		assert_true(session_record(&s, &child));
		assert_true(session_record(&s, &gone));
		expect_end(0, "watchctl: 0 hits, 0 reported, 0 lost\n");
		expect_report(out, "\"event\":\"new\"", cases[i].began);
		expect_report(out, "\"event\":\"exit\",\"tid\":12", 1);
		(void)tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

/* A warning reaches whoever reads: the report, and stderr once. */
TEST(warns)
{
	static const struct {
		enum form form;
		enum {ELSEWHERE, STDERR, SAME} where;	/* the report goes */
		unsigned said, reported;
	} cases[] = {
		{FORM_TEXT, ELSEWHERE, 1, 1}, {FORM_TEXT, STDERR, 1, 0},
		{FORM_TEXT, SAME, 1, 0},
		{FORM_JSON, ELSEWHERE, 1, 1}, {FORM_JSON, STDERR, 2, 0},
		{FORM_JSON, SAME, 2, 0},
		{FORM_FOLDED, ELSEWHERE, 1, 0}, {FORM_FOLDED, STDERR, 1, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		FILE *file = out, *same = NULL;
		char *said;

		said_begin(STDERR_FILENO);
		if (cases[i].where == SAME)
			assert_non_null(same = fdopen(dup(STDERR_FILENO), "a"));
		if (cases[i].where != ELSEWHERE)
			out = same != NULL ? same : stderr;
		begin((struct options){.form = cases[i].form});
		session_warn(&s, "mind the %s", "gap\033");
		(void)session_flush(&s, 0);
		said = said_end(STDERR_FILENO);
		out = file;
		if (count_of(said, "mind the gap") != cases[i].said)
			fail_msg("case %zu: %s", i, said);
		assert_null(strchr(said, '\033'));
		session_close(&s);
		if (same != NULL)
			(void)fclose(same);
		expect_report(out, "mind the gap", cases[i].reported);
		(void)tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

/* No space: the rest is not wanted, status 125, and a line that says so. */
TEST(says_when_a_report_cannot_be_written)
{
	static const enum form forms[] = {FORM_TEXT, FORM_JSON, FORM_FOLDED};

	for (size_t i = 0; i < 3; i++) {
		char *said;

		begin((struct options){.form = forms[i],
		    .output = "/dev/full"});
		(void)session_record(&s, sample(0, 1));
		/* folded stacks are all written at the end */
		assert_int_equal(session_flush(&s, UINT64_MAX),
		    forms[i] == FORM_FOLDED);
		assert_int_equal(session_record(&s, sample(0, 2)),
		    forms[i] == FORM_FOLDED);
		assert_int_equal(end("exit", 3, &said), 125);
		assert_int_equal(count_of(said, "\n"), 2);
		assert_holds(said, "\nwatchctl: the report is "
		    "incomplete: /dev/full: No space left on device\n");
	}
}

/* Its reader has gone, and knows: nothing is said of that. */
TEST(ends_quietly_without_a_reader)
{
	FILE *file = out;
	char *said;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	(void)close(ends[0]);
	out = fdopen(ends[1], "w");
	assert_non_null(out);
	begin((struct options){.form = FORM_JSON});
	(void)session_record(&s, sample(0, 1));
	assert_false(session_flush(&s, UINT64_MAX));
	assert_int_equal(s.err, -EPIPE);
	assert_int_equal(end("exit", 3, &said), 3);
	assert_memory_equal(said, "watchctl: ", 10);
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	(void)fclose(out);
	out = file;
}

/* --- recordings --- */

/* The records of a recording: how many samples, and what was lost in all. */
static void
expect_recording(const char *path, unsigned samples, uint64_t lost)
{
	struct ex_perfdata *data;
	struct ex_record record;
	const char *why;

	assert_int_equal(ex_perfdata_open(path, &data, &why), 0);
	while (ex_perfdata_next(data, &record) == 1) {
		if (record.type == PERF_RECORD_SAMPLE) {
			assert_int_equal(record.tid, 11);
			samples--;
		} else if (record.type == PERF_RECORD_COMM) {
			assert_string_equal(record.comm.name, "victim");
		} else {
			assert_int_equal(record.type,
			    PERF_RECORD_LOST_SAMPLES);
			assert_true(lost != 0);
			assert_int_equal(record.lost.count, lost);
			lost = 0;
		}
	}
	assert_int_equal(samples, 0);
	assert_int_equal(lost, 0);
	ex_perfdata_close(data);
}

TEST(writes_a_recording)
{
	const char *path = scratch_path("perf.data");
	const unsigned before = open_descriptors();

	begin((struct options){.form = FORM_PERF, .output = path, .limit = 3});
	assert_null(s.explainer);
	assert_int_equal(session_record_to_file(&s, &event, 1), 0);
	assert_true(session_record(&s, sample(0, 1)));
	assert_true(session_record(&s, name()));
	assert_true(session_record(&s, sample(0, 2)));
	session_lost(&s, 40);
	assert_false(session_record(&s, sample(0, 3)));
	assert_true(s.full);
	assert_int_equal(s.samples, 3);
	expect_end(5, "watchctl: 43 hits, 3 reported, 40 lost\n");
	assert_int_equal(open_descriptors(), before);
	expect_recording(path, 3, 40);

	begin((struct options){.form = FORM_PERF, .output = path});
	assert_int_equal(session_record_to_file(&s, &event, 1), 0);
	assert_true(session_record(&s, sample(0, 1)));
	expect_end(0, "watchctl: 1 hit, 1 reported, 0 lost\n");
	expect_recording(path, 1, 0);
	assert_int_equal(lseek(fileno(out), 0, SEEK_END), 0);
}

TEST(says_when_a_recording_cannot_be_written)
{
	const struct rlimit small = {100000, RLIM_INFINITY};
	const struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
	const char *path = scratch_path("too large");
	uint64_t time = 0;
	char *said;
	int result;

	begin((struct options){.form = FORM_PERF, .output = path});
	assert_int_equal(session_record_to_file(&s, &event, 1), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	while (time < 100000 && session_record(&s, sample(0, time)))
		time++;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &any), 0);
	assert_true(time > 1000 && time < 100000);
	assert_int_equal(end("exit", 0, &said), 125);
	assert_holds(said, "the report is incomplete: ");
	assert_holds(said, "too large: File too large\n");

	begin((struct options){.form = FORM_PERF, .output = "/dev/full"});
	said_begin(STDERR_FILENO);
	result = session_record_to_file(&s, &event, 1);
	said = said_end(STDERR_FILENO);
	assert_true(result < 0);
	assert_string_equal(said, "watchctl: -O /dev/full: No space left on "
	    "device\n");
}

/* A session can be given up at any stage; a sanitizer sees what is left. */
TEST(can_be_abandoned)
{
	const unsigned before = open_descriptors();
	const char *path = scratch_path("given up");

	for (enum form form = FORM_TEXT; form <= FORM_PERF; form++) {
		options = (struct options){.form = form, .output = path};
		assert_int_equal(open_session(), 0);
		session_close(&s);
		assert_int_equal(open_session(), 0);
		add_watches();
		session_close(&s);
		begin(options);
		if (form == FORM_PERF)
			assert_int_equal(session_record_to_file(&s, &event, 1),
			    0);
		assert_true(session_record(&s, sample(0, 1)));
		assert_true(session_record(&s, sample(2, 2)));
		session_close(&s);
		session_close(&s);
	}
	assert_int_equal(open_descriptors(), before);
}

int
main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	return run_all_tests(.before_all = scratch_make,
	    .after_all = scratch_remove, .before_each = set_up,
	    .after_each = tear_down);
}
