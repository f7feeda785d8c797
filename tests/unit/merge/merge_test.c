/* merge: files of JSON Lines that were made by hand, whole and damaged. */
#include "test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "merge/merge.h"
#include "merge/merged.h"
#include "said.h"
#include "scratch.h"

#define START(host, rank) "{\"type\":\"start\",\"schema\":\"watchctl/1\"," \
	"\"host\":\"" host "\",\"rank\":" #rank ",\"pid\":10," \
	"\"wall\":\"2026-11-23T10:00:0" #rank ".000000Z\",\"watches\":[{" \
	"\"id\":1,\"spec\":\"residual\",\"access\":\"w\",\"len\":8}]}\n"
#define HIT(seq, value, stack) "{\"type\":\"hit\",\"seq\":" #seq "," \
	"\"watch\":1,\"time\":" #seq ".5,\"tid\":1" #seq "," \
	"\"access\":\"write\"," \
	"\"new\":\"0x" #value "\",\"new_text\":\"" #value "\","		\
	"\"value_source\":\"register\",\"stack\":\"" #stack "\"," \
	"\"frames\":[{\"pc\":\"0x1\",\"function\":\"f" #stack "\"," \
	"\"file\":\"/src/a.c\",\"line\":7,\"inlined\":false}]}\n"
#define SUMMARY(stack, count) "{\"type\":\"summary\",\"watch\":1," \
	"\"stack\":\"" #stack "\",\"access\":\"write\",\"count\":" #count "," \
	"\"first\":1.0,\"last\":2.0,\"threads\":[5,6],\"values\":{" \
	"\"first\":\"0x1\",\"last\":\"0x9\",\"min\":\"0xfffffffe\"," \
	"\"max\":\"0x9\",\"min_text\":\"-2\",\"max_text\":\"9\"}}\n"
#define END(reported) "{\"type\":\"end\",\"hits\":" #reported "," \
	"\"reported\":" #reported ",\"lost\":0,\"status\":0}\n"

static const char *
in_scratch(size_t i)
{
	static const char *const names[] = {"0", "1", "2", "3"};

	return scratch_path(names[i]);
}

/* Merge files of these texts; the report, and what was said. */
static void
merge_texts(const char *const *texts, struct outcome *o)
{
	char *files[5] = {NULL}, *output = strdup(scratch_path("out"));
	struct options options = {.form = FORM_JSON, .output = output};

	for (; texts[options.nfiles] != NULL; options.nfiles++) {
		static const char *const names[] = {"0", "1", "2", "3"};

		scratch_write(names[options.nfiles], texts[options.nfiles]);
		files[options.nfiles] = strdup(in_scratch(options.nfiles));
	}
	options.files = files;
	options.file = files[0];
	*o = (struct outcome){0};
	said_begin(STDERR_FILENO);
	o->status = merge(&options);
	o->err = said_end(STDERR_FILENO);
	if (o->status == 0)
		outcome_take(o, scratch_path("out"));
	for (size_t i = 0; i < options.nfiles; i++)
		free(files[i]);
	free(output);
}

#define MERGE(o, ...) merge_texts(LIST(__VA_ARGS__), o)

/* The row of a host, a rank and a backtrace; its hits. */
static const json_t *
row_of(const struct outcome *o, const char *host, json_int_t rank,
    const char *stack)
{
	json_t *line;
	size_t i;

	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "summary") == 0 &&
		    strcmp(text_of(line, "host"), host) == 0 &&
		    number_of(line, "rank") == rank &&
		    strtoull(text_of(line, "stack"), NULL, 16) ==
		    strtoull(stack, NULL, 16))
			return line;
	fail_msg("no row of %s %lld %s", host, rank, stack);
	return NULL;
}

static void
expect_count(const struct outcome *o, const char *host, json_int_t rank,
    const char *stack, json_int_t count)
{
	assert_int_equal(number_of(row_of(o, host, rank, stack), "count"),
	    count);
}

static void
expect_account(const struct outcome *o, json_int_t hits, json_int_t runs)
{
	const json_t *end = first_of(o, "end");

	assert_non_null(end);
	assert_int_equal(number_of(end, "reported"), hits);
	assert_int_equal(number_of(end, "runs"), runs);
}

TEST(hosts_ranks_and_backtraces)
{
	struct outcome o;
	const json_t *row, *values;

	MERGE(&o, START("n1", 0) HIT(1, 5, a1) HIT(2, 3, a1) HIT(3, 4, b2)
	    END(3), START("n1", 1) HIT(1, 8, a1) END(1), START("n2", 0)
	    HIT(1, 1, b2) END(1));
	assert_int_equal(o.status, 0);
	assert_int_equal(count_of(&o, "start"), 1);
	assert_int_equal(count_of(&o, "stack"), 2);
	assert_int_equal(count_of(&o, "summary"), 4);
	expect_count(&o, "n1", 0, "a1", 2);
	expect_count(&o, "n1", 0, "b2", 1);
	expect_count(&o, "n1", 1, "a1", 1);
	expect_count(&o, "n2", 0, "b2", 1);
	expect_account(&o, 5, 3);
	row = row_of(&o, "n1", 0, "a1");
	assert_int_equal(json_array_size(json_object_get(row, "threads")), 2);
	values = json_object_get(row, "values");
	assert_string_equal(text_of(values, "first"), "0x5");
	assert_string_equal(text_of(values, "last"), "0x3");
	assert_string_equal(text_of(values, "min"), "0x3");
	assert_string_equal(text_of(values, "max"), "0x5");
	assert_string_equal(text_of(values, "max_text"), "5");
	/* addresses are one process's */
	assert_lacks(o.report, "\"pc\"");
	assert_holds(o.err, "3 files, 3 runs: 5 hits, 5 reported, " "0 lost\n");
}

/* Anything may arrive twice, in any order, in the same file or another. */
TEST(what_arrives_twice_counts_once)
{
	struct outcome o;

	MERGE(&o, START("n1", 0) HIT(1, 5, a1) HIT(2, 3, a1) START("n1", 0)
	    HIT(1, 5, a1) HIT(2, 3, a1) HIT(4, 3, a1) HIT(3, 3, a1)
	    HIT(2, 3, a1) HIT(4, 3, a1) END(4) END(4),
	    START("n1", 0) HIT(3, 3, a1) HIT(5, 1, a1));
	expect_count(&o, "n1", 0, "a1", 5);
	expect_account(&o, 5, 1);
	MERGE(&o, START("n1", 0) SUMMARY(a1, 7) SUMMARY(a1, 7) END(7),
	    START("n1", 0) SUMMARY(a1, 7) END(7));
	expect_count(&o, "n1", 0, "a1", 7);
	expect_account(&o, 7, 1);
}

/* A run's hits count, and not its summary too. */
TEST(hits_and_summaries)
{
	struct outcome o;
	const json_t *values;

	MERGE(&o, START("n1", 0) HIT(1, 5, a1) SUMMARY(a1, 1) END(1),
	    START("n1", 1) SUMMARY(a1, 7) SUMMARY(b2, 2) END(9));
	expect_count(&o, "n1", 0, "a1", 1);
	expect_count(&o, "n1", 1, "a1", 7);
	expect_count(&o, "n1", 1, "b2", 2);
	expect_account(&o, 10, 2);
	values = json_object_get(row_of(&o, "n1", 1, "a1"), "values");
	assert_string_equal(text_of(values, "min_text"), "-2");
	assert_string_equal(text_of(values, "max_text"), "9");
}

/* A cut line is told by file and line, and nothing else is missing. */
TEST(cut_lines)
{
	static const char text[] = START("n1", 0) HIT(1, 5, a1) HIT(2, 6, a1);
	const size_t last = strlen(START("n1", 0) HIT(1, 5, a1));
	char cut[sizeof(text)], where[512];
	struct outcome o;

	for (size_t len = last + 1; len < sizeof(text) - 2; len += 13) {
		memcpy(cut, text, len);
		cut[len] = '\0';
		MERGE(&o, cut, START("n2", 1) HIT(1, 5, a1) END(1));
		assert_int_equal(o.status, 0);
		expect_count(&o, "n1", 0, "a1", 1);
		expect_count(&o, "n2", 1, "a1", 1);
		(void)snprintf(where, sizeof(where), "%s:3: left out: it is "
		    "cut", in_scratch(0));
		assert_holds(o.err, where);
		assert_int_equal(number_of(first_of(&o, "end"), "left_out"), 1);
	}
	/* in the middle, and without its end but whole */
	MERGE(&o, START("n1", 0) "{\"type\":\"hit\",\"seq\":1,\"wa\n"
	    "\"watch\":1}\n" HIT(3, 5, a1) "{\"type\":\"lost\",\"count\":1}");
	expect_count(&o, "n1", 0, "a1", 1);
	assert_int_equal(number_of(first_of(&o, "end"), "left_out"), 2);
}

/* What a run reported and is not there is said. */
TEST(missing_hits)
{
	struct outcome o;

	MERGE(&o, START("n1", 0) HIT(1, 5, a1) END(3));
	assert_int_equal(number_of(first_of(&o, "end"), "missing"), 2);
	assert_holds(o.err, "; 2 hits reported and missing");
}

/* Names that would control a terminal, lines of other types and unknown
   members, and what is no line of ours. */
TEST(hostile_lines)
{
	struct outcome o;

	MERGE(&o, "{\"type\":\"start\",\"host\":\"\\u001b[2J\",\"rank\":0,"
	    "\"watches\":[{\"id\":1,\"spec\":\"\\u202ex\"},7,{}]}\n"
	    HIT(1, 5, a1) "{\"type\":\"new kind\"}\n{}\n{\"type\":5}\n"
	    "{\"type\":\"hit\"}\n{\"type\":\"hit\",\"seq\":-1,\"watch\":1}\n"
	    "{\"type\":\"hit\",\"seq\":0,\"watch\":1}\n"
	    "{\"type\":\"hit\",\"seq\":18446744073709551615,\"watch\":1}\n"
	    "{\"type\":\"summary\",\"watch\":9,\"count\":99999999999999999999}"
	    "\nPERFILE2\n\n");
	assert_int_equal(o.status, 0);
	assert_null(strchr(o.report, 0x1b));
	assert_lacks(o.report, "\xe2\x80\xae");
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), 1);
}

/* Lines without a start line in front of them are counted, of no host. */
TEST(without_a_beginning)
{
	struct outcome o;
	const json_t *row;

	MERGE(&o, HIT(1, 5, a1) HIT(1, 5, a1) HIT(2, 5, a1) END(2), START("n1",
	    0) HIT(1, 1, a1));
	expect_account(&o, 3, 2);
	row = first_of(&o, "summary");
	assert_int_equal(number_of(row, "count"), 2);
	assert_null(json_object_get(row, "host"));
	assert_null(json_object_get(row, "rank"));
}

/* As a shell's <(COMMAND) has it; what it begins with stays there. */
TEST(pipes)
{
	char name[32], first;
	struct options options = {.nfiles = 1, .file = name};
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	(void)snprintf(name, sizeof(name), "/dev/fd/%d", fd[0]);
	assert_int_equal(write(fd[1], "{", 1), 1);
	assert_true(merge_wanted(&options));
	assert_int_equal(read(fd[0], &first, 1), 1);
	assert_int_equal(write(fd[1], "P", 1), 1);
	assert_false(merge_wanted(&options));
	(void)close(fd[0]);
	(void)close(fd[1]);
}

TEST(what_is_refused)
{
	struct outcome o;
	char missing[] = "/nonexistent/x", *files[] = {missing, missing};
	struct options options = {
		.form = FORM_JSON, .files = files, .nfiles = 2, .file = missing,
	};

	said_begin(STDERR_FILENO);
	o.status = merge(&options);
	o.err = said_end(STDERR_FILENO);
	assert_int_equal(o.status, 125);
	assert_holds(o.err, "/nonexistent/x: No such file");
	options.form = FORM_FOLDED;
	said_begin(STDERR_FILENO);
	o.status = merge(&options);
	o.err = said_end(STDERR_FILENO);
	assert_int_equal(o.status, 125);
	assert_holds(o.err, "choose one of these");
}

/* After a start line that was cut, nothing is of the run in front of it. */
TEST(a_cut_beginning)
{
	struct outcome o;

	MERGE(&o, START("n1", 0) HIT(1, 5, a1) END(1)
	    "{\"type\":\"start\",\"host\":\"n2\",\"wat\n" HIT(1, 5, b2)
	    HIT(2, 5, b2) END(2));
	expect_count(&o, "n1", 0, "a1", 1);
	expect_account(&o, 3, 2);
	assert_null(json_object_get(first_of(&o, "end"), "repeated"));
	assert_int_equal(number_of(first_of(&o, "end"), "left_out"), 1);
}

/* Merge one file as text; the report is in the scratch folder. */
static char *
merge_text(const char *text)
{
	char *file = strdup(scratch_path("0")), *files[] = {file};
	char *output = strdup(scratch_path("out")), *report;
	struct options options = {
		.form = FORM_SUMMARY, .output = output, .files = files,
		.nfiles = 1, .file = file,
	};

	scratch_write("0", text);
	said_begin(STDERR_FILENO);
	assert_int_equal(merge(&options), 0);
	(void)said_end(STDERR_FILENO);
	report = scratch_read("out", NULL);
	free(file);
	free(output);
	return report;
}

/* A number that is none does not get to the terminal. */
TEST(hostile_text)
{
	char *report = merge_text(START("n1", 0) "{\"type\":\"hit\",\"seq\":1,"
	    "\"watch\":1,\"stack\":\"a1\",\"frames\":[{\"function\":\"f\","
	    "\"file\":\"a.c\",\"line\":\"\xc2\x9b" "31m\x7f\"}]}\n");

	assert_holds(report, "f  a.c\n");
	assert_null(strchr(report, 0x7f));
}

/* What is in no order that a run has, and very many watches of one run: it
   takes no more time and memory than is allowed for, and is told. */
TEST(hostile_order)
{
	struct merged *m = merged_new();
	const uint64_t hash[2] = {1, 2};
	const char *why = NULL;
	bool is_new;
	struct merged_run *run = merged_run(m, hash, &is_new, &why);
	uint64_t seq = 2 * MERGED_SPANS;

	assert_true(merged_run_place(m, run, "", NULL, 0, &why));
	while (seq > 2 && merged_new_hit(m, run, seq, &why))
		seq -= 2;
	assert_string_equal(why, "too many hits are in another order than they "
	    "had");
	/* at the end there is no bound */
	assert_true(merged_new_hit(m, run, 3 * MERGED_SPANS, &why));
	for (uint64_t id = 0; id < MERGED_RUN_WATCHES; id++)
		assert_non_null(merged_row(m, run, id, 0, false, &why));
	assert_null(merged_row(m, run, MERGED_RUN_WATCHES, 0, false, &why));
	assert_string_equal(why, "there are too many watches");
	merged_free(m);
}

/* More backtraces than there are rows: they are counted together. */
TEST(very_many_backtraces)
{
	const size_t n = MERGED_ROWS + 1000;
	FILE *out;
	struct outcome o;
	json_t *line;
	json_int_t others = 0;
	size_t i;
	char *files[1], *output = strdup(scratch_path("out"));
	struct options options = {
		.form = FORM_JSON, .output = output, .files = files,
		.nfiles = 1,
	};

	files[0] = strdup(scratch_path("0"));
	options.file = files[0];
	assert_non_null(out = fopen(files[0], "w"));
	(void)fputs(START("n1", 0), out);
	for (i = 1; i <= n; i++)
		(void)fprintf(out, "{\"type\":\"hit\",\"seq\":%zu,\"watch\":1,"
		    "\"stack\":\"%zx\"}\n", i, i);
	assert_int_equal(fclose(out), 0);
	memset(&o, 0, sizeof(o));
	said_begin(STDERR_FILENO);
	assert_int_equal(merge(&options), 0);
	o.err = said_end(STDERR_FILENO);
	outcome_take(&o, scratch_path("out"));
	expect_account(&o, (json_int_t)n, 1);
	json_array_foreach(o.lines, i, line)
		if (json_is_true(json_object_get(line, "others")))
			others = number_of(line, "count");
	assert_int_equal(others, 1000);
	free(files[0]);
	free(output);
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
