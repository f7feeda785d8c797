/*
 * policy_file: policies that are learned of real programs and held against
 * them, and findings for CI: the same in another build.
 */
#include "test.h"

#include <errno.h>
#include <sys/stat.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

enum { STRAY = 66, MISSED = 120 };

/* --- a program with writers that are told apart by little --- */

static const char one_cc[] =
"#include <cstring>\n"
"#include <utility>\n"
"long g_config[2];\n"
"static void __attribute__((noinline)) set(long v) { g_config[0] = v; }\n"
"namespace store {\n"
"template <typename P, int N> struct table {\n"
"	static void __attribute__((noinline)) put(long v)\n"
"	{ g_config[0] = v + N; }\n"
"};\n"
"struct cell {\n"
"	long v;\n"
"	cell &__attribute__((noinline)) operator=(long n)\n"
"	{ g_config[0] = n; v = n; return *this; }\n"
"	bool __attribute__((noinline)) operator==(long n)\n"
"	{ g_config[0] = n; return v == n; }\n"
"};\n"
"}\n"
"void two(long), three(long);\n"
"static long source = 5;\n"
"static volatile unsigned long size = sizeof(source);\n"
"static void __attribute__((noinline)) copy()\n"
"{ memcpy(&g_config[0], &source, size); asm volatile(\"\"); }\n"
"char text[] = \"123\";\n"
"static void __attribute__((noinline)) tail()\n"
"{ strcpy((char *)&g_config[0], text); }\n"
"static void (*volatile act)() = tail;\n"
"int main(int argc, char **argv)\n"
"{\n"
"	store::cell c = {0};\n"
"	for (int i = 1; i < argc; i++) {\n"
"		switch (*argv[i]) {\n"
"		case 's': set(i); break;\n"
"		case 't': two(i); break;\n"
"		case 'p':\n"
"			store::table<std::pair<int, long>, 3>::put(i);\n"
"			break;\n"
"		case '=': c = i; break;\n"
"		case 'q': c.v = c == i; break;\n"
"		case 'c': copy(); break;\n"
"		case 'w': g_config[1] = i; break;\n"
"		case 'j': act(); break;\n"
"		}\n"
"	}\n"
"	return 7;\n"
"}\n";
static const char two_cc[] =
"extern long g_config[2];\n"
"static void __attribute__((noinline)) set(long v) { g_config[0] = v; }\n"
"void two(long v) { set(v + 1); }\n";

/* Build it; blank: that many lines come before all others. */
static void
build(const char *name, int blank, const char *flags)
{
	scratch_write("one.cc", one_cc);
	scratch_write("two.cc", two_cc);
	scratch_run("for f in one.cc two.cc; do { yes '' | head -n %d; cat $f;"
	    " } > x && mv x $f; done; g++ -g -O1 -foptimize-sibling-calls %s "
	    "-o %s one.cc two.cc", blank, flags, name);
}

static int
build_all(void **state)
{
	if (scratch_enter(state) != 0)
		return -1;
	if (scratch_has("g++")) {
		build("moved", 40, "-fno-pie -no-pie");
		build("prog", 0, "");
	}
	return 0;
}

/* Run watchctl with these arguments and " -- ./PROGRAM ACTS".  Result: the exit
   status; what it says is in err. */
__attribute__((format(printf, 1, 2)))
static int
watch(const char *format, ...)
{
	char args[2048];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(args, sizeof(args), format, ap);
	va_end(ap);
	return scratch_try("%s %s 2>err", watchctl(), args);
}

static void
expect_in(const char *name, const char *text, bool is)
{
	char *all = scratch_read(name, NULL);

	if ((strstr(all, text) != NULL) != is)
		fail_msg("%s in %s, which is:\n%s", is ? "not" : "still", name,
		    all);
}

#define EXPECT(status, ...) do {					\
	int got_ = watch(__VA_ARGS__);					\
	char *err_ = scratch_read("err", NULL);				\
									\
	if (got_ != (status))						\
		fail_msg("%d, not %d: %s", got_, (status), err_);	\
} while (0)

static void
need_compiler(void)
{
	if (!scratch_has("g++")) {
		print_message("there is no g++\n");
		skip();
	}
}

#define SPEC	"'g_config[0]'"
#define LEARNED								\
	"# who writes what; made by watchctl --learn\n"			\
	"[watch]\nspec = g_config[0]\naccess = write\n"			\
	"writer = one.cc!copy\n"					\
	"writer = one.cc!set\n"						\
	"writer = one.cc!store::cell::operator=\n"			\
	"writer = one.cc!store::table<std::pair<int, long>, 3>::put\n"

/* Learned in two runs; the same by another build, by --stop and --inside. */
TEST(learned_and_enforced)
{
	static const char *const modes[] = {"", "--stop", "--inside",
	    "--delivery ring"};
	char *text;

	need_compiler();
	scratch_run("rm -f p");
	EXPECT(7, "-w " SPEC " --learn p -- ./prog s p");
	scratch_run("chmod 640 p");
	EXPECT(7, "-w g_config:8 --learn none -- ./prog");
	expect_in("none", "spec = g_config:8\naccess = write\n", true);
	EXPECT(STRAY, "--policy none --error-exitcode 66 -- ./prog s");
	EXPECT(7, "-w " SPEC " --learn p -o json -- ./moved c = s");
	text = scratch_read("p", NULL);
	assert_string_equal(text, LEARNED);
	scratch_run("test \"$(stat -c %%a p)\" = 640 && cp p before && "
	    "touch -d 2001-01-01 p");
	EXPECT(7, "-w " SPEC " --learn p -- ./prog s c p =");
	scratch_run("cmp p before && test ! p -nt before");
	for (size_t i = 0; i < COUNT(modes); i++) {
		EXPECT(7, "--policy p --error-exitcode 66 %s -- ./moved s c p "
		    "=", modes[i]);
		expect_in("err", ", 0 stray\n", true);
		expect_in("err", "nothing used", false);
		/* static functions of one name, operators of a like name */
		EXPECT(STRAY, "--policy p --error-exitcode 66 %s -- ./prog s "
		    "t", modes[i]);
		EXPECT(STRAY, "--policy p --error-exitcode 66 %s -- ./prog q",
		    modes[i]);
	}
	/* without --error-exitcode the status is the command's */
	EXPECT(7, "--policy p -- ./prog t");
	expect_in("err", " 1 stray by 1 writer\n", true);
}

TEST(unused_rules_are_reported)
{
	need_compiler();
	scratch_write("q", "[watch]\nspec = g_config[0]\nwriter = one.cc!set\n"
	    "writer = one.cc!gone\nallow = gone_*\nallow = copy\n");
	EXPECT(7, "--policy q --error-exitcode 66 -O out -- ./prog s c");
	expect_in("err", "warning: q:4: nothing used this: writer = "
	    "one.cc!gone\n", true);
	expect_in("err", "warning: q:5: nothing used this: allow = gone_*\n",
	    true);
	expect_in("err", "q:3", false);
	expect_in("err", "q:6", false);
}

/* Each watch has rules of its own. */
TEST(rules_are_of_one_watch)
{
	need_compiler();
	scratch_write("q", "[watch]\nspec = g_config[1]\nwriter = one.cc!main\n"
	    "[watch]\nspec = g_config[0]\nwriter = one.cc!set\n");
	EXPECT(7, "--policy q --error-exitcode 66 -- ./prog s w");
	scratch_write("q", "[watch]\nspec = g_config[1]\nwriter = one.cc!set\n"
	    "[watch]\nspec = g_config[0]\nwriter = one.cc!main\n");
	EXPECT(STRAY, "--policy q --error-exitcode 66 -- ./prog s");
	EXPECT(STRAY, "--policy q --error-exitcode 66 -- ./prog w");
}

/* A function that jumps to one which the C library chooses for the processor is
   missing on the backtrace, and its caller is not taken for the writer. */
TEST(a_writer_that_is_missing)
{
	need_compiler();
	scratch_write("q", "[watch]\nspec = g_config[0]\n"
	    "writer = one.cc!main\n");
	EXPECT(MISSED, "--policy q --error-exitcode 66 -- ./prog j");
	scratch_run("rm -f r");
	EXPECT(7, "-w " SPEC " --learn r -O out -- ./prog j c");
	expect_in("err", "warning: --learn took nothing of ", true);
	expect_in("err", ": functions may be missing on their backtraces\n",
	    true);
	expect_in("r", "main", false);
	expect_in("r", "one.cc!copy", true);
}

/* A recording is judged by the same file. */
TEST(recordings)
{
	need_compiler();
	scratch_write("q", LEARNED);
	EXPECT(7, "-w " SPEC " -o perf -O rec -- ./prog s t");
	EXPECT(0, "report --learn learned -O out rec");
	expect_in("learned", "writer = two.cc!set\n", true);
	EXPECT(STRAY, "report --policy q --error-exitcode 66 --github --junit "
	    "j.xml --sarif s.json -O out rec");
	expect_in("err", "two.cc,line=2,title=stray write::g_config[0] written "
	    "by set\n", true);
	expect_in("j.xml", "name=\"g_config[0] by set\">", true);
	EXPECT(0, "report --policy learned --error-exitcode 66 --github "
	    "-O out rec");
	expect_in("err", "::error", false);
}

/* Nothing runs, and nothing is left, if a file is wrong. */
TEST(wrong_files)
{
	static const struct {
		const char *args, *said;
	} cases[] = {
		{"--policy bad", "watchctl: bad:3: no such name; "},
		{"--policy badspec", "watchctl: badspec:2: "},
		{"-w g_config --learn bad", "watchctl: bad:3: no such name; "},
		{"-w g_config --learn .", "--learn '.': cannot be written: "
		    "not a regular file"},
		{"-w g_config --learn no/p", "--learn 'no/p': cannot be "
		    "written: its directory: No such file"},
		{"-w g_config --junit no/j", "--junit 'no/j': cannot be "
		    "written: No such file"},
		{"-w g_config --junit j2 --sarif j2", "--sarif j2: that is "
		    "another file of this command line"},
		{"-w g_config --sarif s2 -O s2", "--sarif s2: that is another"},
		{"--policy good --junit good", "--junit good: that is another"},
		{"--policy good -O good", "-O good: that is the policy, which "
		    "the report would overwrite"},
		{"-w g_config --learn good -O good", "-O good: that is the "
		    "file of --learn, which"},
	};

	need_compiler();
	scratch_write("bad", "[watch]\nspec = g_config\nfoo = 3\n");
	scratch_write("badspec", "[watch]\nspec = a[\n");
	scratch_write("good", "[watch]\nspec = g_config\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		EXPECT(125, "%s -- touch ran", cases[i].args);
		expect_in("err", cases[i].said, true);
		scratch_run("test ! -e ran -a ! -e j2 -a ! -e s2");
	}
	expect_in("good", "g_config", true);
}

/* What the account cannot vouch for is an error in all of them: here, callers
   beyond a stack of 8 bytes. */
TEST(not_vouched_for)
{
	need_compiler();
	scratch_write("q", "[watch]\nspec = g_config[0]\nallow = main\n");
	EXPECT(MISSED, "--policy q --error-exitcode 66 --stack 8 --junit j.xml "
	    "--sarif s.json --github -- ./prog c");
	expect_in("err", "::error title=not vouched for::a stray access may "
	    "have been missed: ", true);
	expect_in("j.xml", "failures=\"0\" errors=\"1\"", true);
	expect_in("j.xml", "name=\"not-vouched\">", true);
	expect_in("s.json", "\"ruleId\":\"not-vouched\"", true);
	/* and is there without the exit status, too */
	EXPECT(7, "--policy q --stack 8 --junit j.xml -- ./prog c");
	expect_in("j.xml", "name=\"not-vouched\">", true);
}

/* The fingerprints of a report. */
static json_t *
prints_of(const char *name)
{
	json_t *sarif = json_load_file(scratch_path(name), 0, NULL);
	json_t *prints = json_array(), *result;
	size_t i;

	assert_non_null(sarif);
	json_array_foreach(json_object_get(json_array_get(json_object_get(sarif,
	    "runs"), 0), "results"), i, result)
		(void)json_array_append(prints, json_object_get(json_object_get(
		    result, "partialFingerprints"), "watchctl/v1"));
	json_decref(sarif);
	return prints;
}

static json_int_t
first_line_of(const char *name)
{
	json_t *sarif = json_load_file(scratch_path(name), 0, NULL);
	json_t *result = json_array_get(json_object_get(json_array_get(
	    json_object_get(sarif, "runs"), 0), "results"), 0);
	json_t *where = json_object_get(json_array_get(json_object_get(result,
	    "locations"), 0), "physicalLocation");
	json_int_t line = json_integer_value(json_object_get(json_object_get(
	    where, "region"), "startLine"));

	assert_string_equal(json_string_value(json_object_get(json_object_get(
	    where, "artifactLocation"), "uri")), "one.cc");
	json_decref(sarif);
	return line;
}

/* Lines and addresses have moved, and the same is found. */
TEST(fingerprints_survive_a_rebuild)
{
	json_t *prints[2];

	need_compiler();
	EXPECT(STRAY, "-w " SPEC " --allow two --error-exitcode 66 --sarif "
	    "a.json -O out -- ./prog s p = q c");
	build("prog", 40, "-fno-pie -no-pie");
	EXPECT(STRAY, "-w " SPEC " --allow two --error-exitcode 66 --sarif "
	    "b.json -O out -- ./prog s p = q c");
	build("prog", 0, "");
	prints[0] = prints_of("a.json");
	prints[1] = prints_of("b.json");
	assert_int_equal(json_array_size(prints[0]), 5);
	assert_true(json_equal(prints[0], prints[1]));
	assert_int_equal(first_line_of("b.json"), first_line_of("a.json") + 40);
	json_decref(prints[0]);
	json_decref(prints[1]);
}

/* What an earlier run found is not left there by one that finds nothing. */
TEST(a_clean_run_is_clean)
{
	need_compiler();
	scratch_write("c.xml", "<testsuites><failure/>");
	scratch_write("c.json", "{\"results\":[1]}");
	EXPECT(7, "-w " SPEC " --allow main --junit c.xml --sarif c.json "
	    "--github -o folded -O out -- ./prog s");
	expect_in("c.xml", "failure/>", false);
	expect_in("c.xml", "<testcase classname=\"prog\" name=\"g_config[0]\"/>"
	    "\n</testsuite>", true);
	expect_in("c.json", "\"results\":[]", true);
	expect_in("err", "::error", false);
}

/* A parallel test suite learns into one file. */
TEST(several_learn_at_once)
{
	char *text;

	need_compiler();
	scratch_run("rm -f p; for a in s p = c; do %s -w " SPEC " --learn p "
	    "-O out.$a -- ./prog $a 2>err.$a & done; wait", watchctl());
	text = scratch_read("p", NULL);
	assert_string_equal(text, LEARNED);
}

RUN_LIVE_TESTS(.before_all = build_all, .after_all = scratch_leave)
