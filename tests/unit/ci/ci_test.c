/* ci: findings in the forms of JUnit, SARIF and GitHub's runner. */
#include "test.h"

#include <jansson.h>
#include <unistd.h>

#include "made_hits.h"
#include "ci/ci.h"

static const struct report_start two_watches = {
	.watches = made_list, .nwatches = 2,
};

/* A form of a run with these findings; malloc'd. */
static char *
written(void (*put)(const struct ci *, struct buffer *),
    const struct report_end *end, const char *doubt)
{
	struct ci ci = {0};
	struct buffer b = {0};
	char *text;

	ci_end(&ci, &two_watches, end, "victim", doubt, 1.5);
	assert_false(ci.failed);
	put(&ci, &b);
	text = strdup(buffer_text(&b));
	assert_non_null(text);
	buffer_free(&b);
	ci_free(&ci);
	return text;
}

static void
expect(void (*put)(const struct ci *, struct buffer *),
    const struct report_end *end, const char *doubt, const char *want)
{
	char *text = written(put, end, doubt);

	assert_string_equal(text, want);
	free(text);
}

static const struct report_end clean = {.judged = true};

/* A run with one finding about a frame. */
static struct report_end
found(const struct ex_frame *frame)
{
	static struct finding finding;
	static const struct finding *const list[] = {&finding};

	finding = made_writer;
	finding.culprit = frame;
	return (struct report_end){.findings = list, .nfindings = 1};
}

/* --- JUnit --- */

#define SUITE(tests, failures, errors)					\
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"	\
	"<testsuite name=\"watchctl\" tests=\"" tests "\" failures=\""	\
	failures "\" errors=\"" errors "\" time=\"1.500\">\n"
#define SUITE_END	"</testsuite>\n</testsuites>\n"

TEST(junit_of_a_clean_run)
{
	expect(ci_put_junit, &clean, "", SUITE("2", "0", "0")
	    "<testcase classname=\"victim\" name=\"counter\"/>\n"
	    "<testcase classname=\"victim\" name=\"0x4040c0:64\"/>\n"
	    SUITE_END);
}

TEST(junit_of_findings)
{
	char *text = written(ci_put_junit, &made_judged, "2 hits were lost");

	assert_memory_equal(text, SUITE("4", "2", "1"),
	    strlen(SUITE("4", "2", "1")));
	assert_holds(text, "<testcase classname=\"victim\" "
	    "name=\"counter by bump\">\n<failure message=\"counter written by "
	    "bump\" type=\"stray-write\">bump  victim.c:10\n");
	assert_holds(text, "name=\"counter by unknown code\">\n");
	assert_holds(text, "<testcase classname=\"victim\" "
	    "name=\"not-vouched\">\n<error message=\"a stray access may have "
	    "been missed: 2 hits were lost\" type=\"not-vouched\"></error>\n");
	assert_holds(text, "name=\"0x4040c0:64\"/>\n");
	assert_lacks(text, "name=\"counter\"/>\n");
	free(text);
}

/* Control characters are not allowed in XML, not even as references. */
TEST(junit_escapes_hostile_names)
{
	struct ex_frame frame = made_hostile_frames[0];
	struct report_end end = found(&frame);
	char *text;

	frame.function = "a<b>&\"c\x01\x1b\xef\xbf\xbe\xff";
	text = written(ci_put_junit, &end, "\x02]]>");
	assert_visible(text);
	assert_lacks(text, "\xef\xbf\xbe");
	assert_holds(text, "name=\"counter by a&lt;b&gt;&amp;&quot;c"
	    "\\x01\\x1b\\ufffe\\xff\">");
	assert_holds(text, "missed: \\x02]]&gt;\"");
	free(text);
}

/* --- GitHub --- */

TEST(github_is_a_line_for_each)
{
	struct ex_frame frame = made_plain_frames[0];
	struct report_end end = found(&frame);

	expect(ci_put_github, &clean, "", "");
	expect(ci_put_github, &made_judged, "100% lost",
	    "::error file=victim.c,line=10,title=stray write::counter written "
	    "by bump\n"
	    "::error title=stray write::counter written by unknown code\n"
	    "::error title=not vouched for::a stray access may have been "
	    "missed: 100%25 lost\n");
	frame.file = "a,b:c%d\ne.c";
	frame.function = "ns::f<1,2>\n::set-env name=x::y";
	expect(ci_put_github, &end, "",
	    "::error file=a%2Cb%3Ac%25d\\ne.c,line=10,title=stray write::"
	    "counter written by ns::f<1,2>\\n::set-env name=x::y\n");
}

/* --- SARIF, by the rules of its schema --- */

static json_t *
member(const json_t *o, const char *name, json_type type)
{
	json_t *m = json_object_get(o, name);

	if (m == NULL || json_typeof(m) != type)
		fail_msg("no such %s in %s", name,
		    json_dumps(o, JSON_ENCODE_ANY));
	return m;
}

/* An object has no members but these. */
static void
expect_members(json_t *o, const char *names)
{
	const char *name;
	json_t *value;

	json_object_foreach(o, name, value)
		if (strstr(names, name) == NULL)
			fail_msg("%s is none of %s", name, names);
}

static void
check_location(json_t *location)
{
	json_t *physical = json_object_get(location, "physicalLocation");
	json_t *artifact, *region;
	const char *uri;

	expect_members(location, "physicalLocation logicalLocations");
	if (physical == NULL)
		return;
	expect_members(physical, "artifactLocation region");
	artifact = member(physical, "artifactLocation", JSON_OBJECT);
	uri = json_string_value(member(artifact, "uri", JSON_STRING));
	if (strncmp(uri, "file:///", 8) == 0)
		assert_null(json_object_get(artifact, "uriBaseId"));
	else
		assert_string_equal(json_string_value(member(artifact,
		    "uriBaseId", JSON_STRING)), "%SRCROOT%");
	assert_null(strpbrk(uri, " \"<>\\^`{|}\n"));
	if ((region = json_object_get(physical, "region")) != NULL)
		assert_true(json_integer_value(member(region, "startLine",
		    JSON_INTEGER)) >= 1);
}

static void
check_result(json_t *result, const json_t *rules)
{
	const char *rule = json_string_value(member(result, "ruleId",
	    JSON_STRING));
	bool known = false;
	json_t *each;
	size_t i;

	expect_members(result, "ruleId level message locations "
	    "partialFingerprints stacks");
	json_array_foreach(rules, i, each)
		known |= strcmp(rule, json_string_value(member(each, "id",
		    JSON_STRING))) == 0;
	assert_true(known);
	assert_string_equal(json_string_value(member(result, "level",
	    JSON_STRING)), "error");
	(void)member(member(result, "message", JSON_OBJECT), "text",
	    JSON_STRING);
	json_array_foreach(member(result, "locations", JSON_ARRAY), i, each)
		check_location(each);
	(void)member(member(result, "partialFingerprints", JSON_OBJECT),
	    "watchctl/v1", JSON_STRING);
}

/* The results, each valid; *whole is to be released. */
static json_t *
results_of(const struct report_end *end, const char *doubt, json_t **whole)
{
	char *text = written(ci_put_sarif, end, doubt);
	json_error_t error;
	json_t *run, *driver, *results, *each;
	size_t i;

	if ((*whole = json_loads(text, 0, &error)) == NULL)
		fail_msg("%s: %s", error.text, text);
	free(text);
	expect_members(*whole, "$schema version runs");
	assert_string_equal(json_string_value(member(*whole, "version",
	    JSON_STRING)), "2.1.0");
	assert_int_equal(json_array_size(member(*whole, "runs", JSON_ARRAY)),
	    1);
	run = json_array_get(json_object_get(*whole, "runs"), 0);
	expect_members(run, "tool results");
	driver = member(member(run, "tool", JSON_OBJECT), "driver",
	    JSON_OBJECT);
	assert_string_equal(json_string_value(member(driver, "name",
	    JSON_STRING)), "watchctl");
	results = member(run, "results", JSON_ARRAY);
	json_array_foreach(results, i, each)
		check_result(each, member(driver, "rules", JSON_ARRAY));
	return results;
}

TEST(sarif_of_findings)
{
	json_t *whole, *results = results_of(&clean, "", &whole);

	assert_int_equal(json_array_size(results), 0);
	json_decref(whole);
	results = results_of(&made_judged, "why", &whole);
	assert_int_equal(json_array_size(results), 3);
	assert_string_equal(json_string_value(member(json_array_get(results, 2),
	    "ruleId", JSON_STRING)), "not-vouched");
	json_decref(whole);
}

TEST(sarif_with_hostile_names)
{
	struct ex_frame frame = made_hostile_frames[0];
	struct report_end end = found(&frame);
	json_t *whole;

	frame.file = "/a b/\"c\"\n%\xff.c";
	frame.function = HOSTILE;
	frame.line = 3;
	(void)results_of(&end, HOSTILE, &whole);
	json_decref(whole);
}

/* The fingerprint of one finding; malloc'd. */
static char *
print_of(const struct ex_frame *frame)
{
	const struct report_end end = found(frame);
	json_t *whole, *results = results_of(&end, "", &whole);
	char *print = strdup(json_string_value(json_object_get(json_object_get(
	    json_array_get(results, 0), "partialFingerprints"),
	    "watchctl/v1")));

	json_decref(whole);
	return print;
}

/* Lines, addresses and what compilers append may differ, and where the source
   lies. */
TEST(fingerprints_are_of_names)
{
	struct ex_frame frame = made_plain_frames[0];
	char *print = print_of(&frame), *other;

	frame.line += 7;
	frame.column = 99;
	frame.vaddr += 64;
	frame.pc += 4096;
	frame.file = "/build/victim.c";
	frame.function = "bump.constprop.0";
	other = print_of(&frame);
	assert_string_equal(other, print);
	free(other);
	frame.function = "bumps";
	other = print_of(&frame);
	assert_string_not_equal(other, print);
	free(other);
	frame.function = "bump";
	frame.file = "other.c";
	other = print_of(&frame);
	assert_string_not_equal(other, print);
	free(other);
	free(print);
}

/* Two places of a function are one writer. */
TEST(a_writer_is_listed_once)
{
	struct ex_frame places[] = {made_plain_frames[0], made_plain_frames[0]};
	struct finding each[] = {made_writer, made_writer};
	const struct finding *const list[] = {&each[0], &each[1]};
	const struct report_end end = {.findings = list, .nfindings = 2};
	json_t *whole;

	places[1].line++;
	each[0].culprit = &places[0];
	each[1].culprit = &places[1];
	assert_int_equal(json_array_size(results_of(&end, "", &whole)), 1);
	json_decref(whole);
}

/* A source file is named from the current directory, or by its whole path. */
TEST(paths_of_sources)
{
	char directory[4096], path[8192];
	struct ex_frame frame = {.file = "/else/x.c"};
	struct ci ci = {0};

	assert_non_null(getcwd(directory, sizeof(directory)));
	ci_end(&ci, &two_watches, &clean, "", "", 0);
	assert_null(ci_path(&ci, NULL));
	assert_string_equal(ci_path(&ci, &frame), "/else/x.c");
	(void)snprintf(path, sizeof(path), "%s/src/x.c", directory);
	frame.file = path;
	assert_string_equal(ci_path(&ci, &frame), "src/x.c");
	frame.file = "./src/x.c";	/* -ffile-prefix-map */
	assert_string_equal(ci_path(&ci, &frame), "src/x.c");
	ci_free(&ci);
}

RUN_TESTS()
