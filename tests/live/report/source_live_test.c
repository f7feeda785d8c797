/*
 * source: where a source file lies is reported from the directory in which
 * watchctl runs, not from the one in which the compiler did.
 */
#include "test.h"

#include "live.h"
#include "scratch.h"
#include "watching.h"

static const char source[] =
	"int word;\n"
	"int main(void) {\n"
	"	word = 1;\n"
	"	return 0;\n"
	"}\n";

/* The text report of a program that was made in build/ from src/. */
static void
watch_from(const char *directory, const char *const how[], struct outcome *o)
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST("/usr/bin/env", "-C", directory,
	    watchctl(), "-w", "word"));

	n = append(argv, n, how);
	(void)append(argv, n, LIST("--", scratch_path("build/program")));
	run_status(o, 0, argv);
}

static void
expect_source(const char *directory, const char *const how[],
    const char *path)
{
	char hit[PATH_MAX], table[PATH_MAX];
	struct outcome o;

	(void)snprintf(hit, sizeof(hit), "   %s:3\n", path);
	(void)snprintf(table, sizeof(table), " write in main %s:3\n", path);
	watch_from(directory, how, &o);
	if (strstr(o.err, hit) == NULL || strstr(o.err, table) == NULL)
		fail_msg("from %s not %s: %s", directory, path, o.err);
}

static void
make(const char *cc)
{
	scratch_run("mkdir -p build src");
	scratch_write("src/program.c", source);
	scratch_run("cd build && %s -g -o program ../src/program.c", cc);
}

TEST(is_named_from_the_current_directory)
{
	static const char *const compilers[] = {
		"gcc", "gcc -gdwarf-4", "clang", "clang -gsplit-dwarf",
	};
	const char *const plain[] = {NULL};

	for (size_t i = 0; i < COUNT(compilers); i++) {
		make(compilers[i]);
		expect_source(scratch_dir, plain, "src/program.c");
		expect_source(scratch_path("build"), plain,
		    scratch_path("src/program.c"));
	}
}

TEST(is_named_alike_in_every_way)
{
	make("gcc");
	expect_source(scratch_path("src"), LIST("--stop"), "program.c");
	expect_source(scratch_path("src"), LIST("--inside"), "program.c");
	expect_source("/", LIST("--stop"), scratch_path("src/program.c"));
}

TEST(is_whole_in_json)
{
	struct outcome o;

	make("gcc");
	watch_from(scratch_dir, LIST("-o", "json", "-O", "hits"), &o);
	outcome_take(&o, scratch_path("hits"));
	assert_string_equal(text_of(json_array_get(json_object_get(first_of(&o,
	    "hit"), "frames"), 0), "file"), scratch_path("src/program.c"));
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
