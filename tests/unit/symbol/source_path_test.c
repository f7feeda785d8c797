/* source_path: paths as they are from everywhere. */
#include "test.h"

#include <stdlib.h>

#include "symbol/source_path.h"

TEST(puts_paths_together)
{
	static const struct {
		const char *directory, *name, *path;
	} cases[] = {
		{"/home/build", "../src/a.c", "/home/src/a.c"},
		{"/home/build", "a.c", "/home/build/a.c"},
		{"/home/build/", "./b/../a.c", "/home/build/a.c"},
		{"/home//build", "b//a.c", "/home/build/b/a.c"},
		{"/home/build", "/usr/include/../a.h", "/usr/a.h"},
		{"/home", "../../a.c", "/a.c"},
		{"/", "a.c", "/a.c"},
		{"./csu", "../csu/a.c", "csu/a.c"},
		{"./csu", "./csu/a.c", "csu/a.c"},
		{"./csu", "./csuper/a.c", "csu/csuper/a.c"},
		{"a", "../../../b.c", "../../b.c"},
		{"..", "../b.c", "../../b.c"},
		{".", "a.c", "a.c"},
		{NULL, "../src/a.c", "../src/a.c"},
		{NULL, "/src/..hidden/...", "/src/..hidden/..."},
		{"", "a.c", "a.c"},
		{"", "", ""},
		{"/", "", "/"},
		{"/home", "..", "/"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *path = ex_source_path(cases[i].directory, cases[i].name);

		assert_string_equal(path, cases[i].path);
		free(path);
	}
}

RUN_TESTS()
