/* policy_file: what a policy may say, what is wrong with it, what is added. */
#include "test.h"

#include <errno.h>
#include <unistd.h>

#include "scratch.h"
#include "option/policy_file.h"
#include "util/complain.h"

/* --- taking one apart --- */

static const char example[] =
"# who writes what; made by watchctl --learn\n"
"[watch]\n"
"spec = g_config\n"
"access = write\n"
"writer = config.c!config_load\n"
"writer = config.cc!store::table<std::pair<int, long>, 3>::put\n";

static void
parse(struct policy_file *f, const char *text)
{
	assert_int_equal(policy_file_parse(f, "p", text, strlen(text)), 0);
}

static void
expect_line(const struct policy_watch *w, size_t i, enum policy_key key,
    const char *value, unsigned number)
{
	assert_true(i < w->n);
	assert_int_equal(w->line[i].key, key);
	assert_string_equal(w->line[i].value, value);
	assert_int_equal(w->line[i].number, number);
}

TEST(the_contracts_example)
{
	struct policy_file f;
	const struct policy_watch *w;

	parse(&f, example);
	assert_int_equal(f.n, 1);
	assert_ptr_equal(w = policy_file_find(&f, "g_config", WP_WRITE),
	    &f.watch[0]);
	assert_null(policy_file_find(&f, "g_config", WP_ACCESS));
	assert_null(policy_file_find(&f, "g_confi", WP_WRITE));
	assert_int_equal(w->n, 5);
	expect_line(w, 3, POLICY_WRITER, "config.c!config_load", 5);
	expect_line(w, 4, POLICY_WRITER,
	    "config.cc!store::table<std::pair<int, long>, 3>::put", 6);
	policy_file_free(&f);
}

TEST(any_character_and_any_length)
{
	static const char text[] = "  ; no\r\n\r\n\t[watch] \r\n"
	    "spec=a == b ? c : d]\r\naccess\t=execute\r\n"
	    "writer = a b.c!operator==\r\n# no = no\n"
	    "writer = x.cc!A::operator=\n"
	    "writer = x.cc!f[abi:cxx11]#;!:\n"
	    "allow =  = \n"
	    "[watch]\nspec = 0x10:4";
	struct policy_file f;
	struct buffer long_text = {0};

	parse(&f, text);
	assert_int_equal(f.n, 2);
	assert_int_equal(f.watch[0].access, WP_EXEC);
	assert_string_equal(f.watch[0].spec, "a == b ? c : d]");
	expect_line(&f.watch[0], 3, POLICY_WRITER, "a b.c!operator==", 6);
	expect_line(&f.watch[0], 4, POLICY_WRITER, "x.cc!A::operator=", 8);
	expect_line(&f.watch[0], 5, POLICY_WRITER, "x.cc!f[abi:cxx11]#;!:", 9);
	expect_line(&f.watch[0], 6, POLICY_ALLOW, "=", 10);
	assert_int_equal(f.watch[1].access, WP_WRITE);
	assert_int_equal(f.watch[1].spec_line, 12);
	policy_file_free(&f);

	buffer_puts(&long_text, "[watch]\nspec = s\nwriter = f!");
	buffer_fill(&long_text, 'x', 100000);
	assert_int_equal(policy_file_parse(&f, "p", long_text.bytes,
	    long_text.len), 0);
	assert_int_equal(strlen(f.watch[0].line[2].value), 100002);
	policy_file_free(&f);
	buffer_free(&long_text);
}

/* --- what is wrong --- */

static char said[256];

static void
hear(const char *text)
{
	assert_string_equal(said, "");
	(void)snprintf(said, sizeof(said), "%s", text);
}

static void
expect_refusal(const char *text, size_t len, const char *why)
{
	struct policy_file f;

	*said = '\0';
	complain_to(hear);
	assert_int_equal(policy_file_parse(&f, "d/p", text, len), -EINVAL);
	if (strstr(said, why) == NULL)
		fail_msg("%s: %s, not %s", text, said, why);
	policy_file_free(&f);
}

TEST(names_the_line_that_is_wrong)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"spec = a\n", "d/p:1: it comes before the first [watch]"},
		{"\n[wacth]\n", "d/p:2: no such section; there is [watch]"},
		{"[watch]\nspec = a\n[watch] x\n", "d/p:3: no such section"},
		{"[watch]\nspec\n", "d/p:2: it has no '='"},
		{"[watch]\nspec =\n", "d/p:2: it has no value"},
		{"[watch]\nspec = a\nspec = b", "d/p:3: this [watch] has a "
		    "spec already: begin another [watch]"},
		{"[watch]\nspec = a\n# x\nfrob = b", "d/p:4: no such name; "
		    "there are spec, access, writer and allow"},
		{"[watch]\nspec = a\nhello\n", "d/p:3: neither [watch] nor "
		    "NAME = VALUE"},
		{"[watch]\nspec = a\naccess = w\n", "d/p:3: no such access; "
		    "there are write, read, access and execute"},
		{"[watch]\nspec = a\nwriter = main\n", "d/p:3: a writer is "
		    "FILE!FUNCTION"},
		{"[watch]\nspec = a\nwriter = !main\n", "d/p:3: a writer is"},
		{"[watch]\nspec = a\nwriter = a.c!\n", "d/p:3: a writer is"},
		{"# x\n[watch]\naccess = read\n[watch]\nspec = a",
		    "d/p:2: this [watch] has no spec"},
		{"[watch]\nspec = a\n[watch]\nspec = b\n[watch]\naccess = "
		    "write\nspec = a\n", "d/p:7: a has a [watch] already, with "
		    "the spec in line 2: join them"},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		expect_refusal(cases[i].text, strlen(cases[i].text),
		    cases[i].why);
	expect_refusal("[watch]\nspec = a\0b\n", 19,
	    "d/p:2: a NUL byte: this is no policy");
}

TEST(only_regular_files_are_read)
{
	struct policy_file f;

	complain_to(hear);
	for (int i = 0; i < 2; i++) {
		*said = '\0';
		assert_int_equal(policy_file_read(&f, i == 0 ? "/dev/zero" :
		    "/nonexistent/p"), -EINVAL);
		assert_holds(said, i == 0 ?
		    "/dev/zero: not a regular file, as a policy is" :
		    "/nonexistent/p: cannot be read: No such file");
		policy_file_free(&f);
	}
	scratch_write("p", example);
	assert_int_equal(policy_file_read(&f, scratch_path("p")), 0);
	assert_int_equal(f.len, sizeof(example) - 1);
	policy_file_free(&f);
}

/* --- adding --- */

static void
expect_text(const struct policy_file *f, const char *want)
{
	struct buffer b = {0};

	policy_file_put(f, &b);
	assert_string_equal(buffer_text(&b), want);
	buffer_free(&b);
}

TEST(a_new_one_is_sorted_bytewise)
{
	struct policy_file f = {.path = NULL};

	assert_int_equal(policy_file_add(&f, "a", WP_WRITE, "b.c!b"), 1);
	assert_int_equal(policy_file_add(&f, "a", WP_WRITE, "b.c!\xc3\xa4"), 1);
	assert_int_equal(policy_file_add(&f, "a", WP_WRITE, "B.c!z"), 1);
	assert_int_equal(policy_file_add(&f, "a", WP_WRITE, "b.c!b"), 0);
	assert_int_equal(policy_file_add(&f, "a", WP_READ, "b.c!b"), 1);
	expect_text(&f, "# who writes what; made by watchctl --learn\n"
	    "[watch]\nspec = a\naccess = write\nwriter = B.c!z\n"
	    "writer = b.c!b\nwriter = b.c!\xc3\xa4\n\n"
	    "[watch]\nspec = a\naccess = read\nwriter = b.c!b\n");
	policy_file_free(&f);
}

TEST(comments_and_order_are_kept)
{
	static const char text[] = "; head\n\n[watch]\n# a SPEC\nspec = a\n"
	    "# by tests\nallow = t*\n# why c\nwriter = c.c!c\n"
	    "writer = a.c!a\n\n[watch]\nspec = b\n# end\n";
	struct policy_file f, from = {.path = NULL};

	parse(&f, text);
	assert_int_equal(policy_file_add(&from, "a", WP_WRITE, "a.c!a"), 1);
	assert_int_equal(policy_file_join(&f, &from), 0);
	assert_int_equal(policy_file_add(&from, "a", WP_WRITE, "b.c!b"), 1);
	assert_int_equal(policy_file_add(&from, "c", WP_EXEC, "b.c!b"), 1);
	assert_int_equal(policy_file_add(&from, "d", WP_WRITE, NULL), 1);
	assert_int_equal(policy_file_join(&f, &from), 4);
	expect_text(&f, "; head\n\n[watch]\n# a SPEC\nspec = a\n"
	    "# by tests\nallow = t*\nwriter = a.c!a\nwriter = b.c!b\n"
	    "# why c\nwriter = c.c!c\n\n[watch]\nspec = b\n\n"
	    "[watch]\nspec = c\naccess = execute\nwriter = b.c!b\n\n"
	    "[watch]\nspec = d\naccess = write\n# end\n");
	policy_file_free(&f);
	policy_file_free(&from);
}

/* Without a [watch], they are the file's head. */
TEST(comments_alone_come_first)
{
	struct policy_file f;

	parse(&f, "# ours\n\n; why");
	assert_int_equal(policy_file_add(&f, "a", WP_WRITE, "a.c!a"), 1);
	assert_int_equal(policy_file_add(&f, "b", WP_WRITE, NULL), 1);
	expect_text(&f, "# ours\n\n; why\n[watch]\nspec = a\naccess = write\n"
	    "writer = a.c!a\n\n[watch]\nspec = b\naccess = write\n");
	policy_file_free(&f);
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
