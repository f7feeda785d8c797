/*
 * That --heap guards programs with other allocators, whose own functions and
 * operators return blocks of the guard, and finds nothing in correct uses.
 */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "heap_bugs.h"
#include "scratch.h"

struct wrong {
	const char *victim, *act, *kind;
	size_t n;
};

static const struct {
	const char *victim, *missing;
} all[] = {
	{"jemalloc", "libjemalloc-dev"},
	{"tcmalloc", "libgoogle-perftools-dev"},
	{"own_new", NULL},
	{"own_new_jemalloc", "libjemalloc-dev"},
	{"own_new_tcmalloc", "libgoogle-perftools-dev"},
};

/* Whether it was made, which takes the allocator. */
static bool
is_there(const char *name)
{
	if (access(victim(name), X_OK) == 0)
		return true;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].victim, name) == 0)
			print_message("%s was not made: %s is not installed\n",
			    name, all[i].missing);
	return false;
}

TEST(all_that_an_allocator_has_may_be_used)
{
	static const char *const sizes[] = {"0", "1M"};

	for (size_t i = 0; i < 2 * sizeof(all) / sizeof(all[0]); i++) {
		const char *name = all[i / 2].victim;
		struct outcome o;

		if (!is_there(name))
			continue;
		guard(&o, LIST("--heap-runs", "0", "--error-exitcode", "66",
		    "--heap-quarantine", sizes[i % 2]), LIST(victim(name)));
		expect_report(&o);
		if (o.status != 3 || count_of(&o, "finding") != 0)
			fail_msg("%s: %d %s%s", name, o.status, o.out, o.err);
	}
}

TEST(misuse_is_reported)
{
	static const struct wrong wrongs[] = {
		{"jemalloc", "mismatch", "mismatch", 2},
		{"jemalloc", "overflow", "overflow", 1},
		{"jemalloc", "double-free", "double-free", 1},
		{"tcmalloc", "mismatch", "mismatch", 3},
		{"tcmalloc", "overflow", "overflow", 1},
		{"tcmalloc", "double-free", "double-free", 1},
	};

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *wrong = &wrongs[i];
		struct outcome o;

		if (!is_there(wrong->victim))
			continue;
		guard(&o, LIST("--heap-runs", "0", "--no-cache"),
		    LIST(victim(wrong->victim), wrong->act));
		expect_report(&o);
		if (o.status != 3 || count_of(&o, "finding") != wrong->n)
			fail_msg("%s %s: %d %s%s", wrong->victim, wrong->act,
			    o.status, o.out, o.err);
		assert_string_equal(text_of(first_of(&o, "finding"), "kind"),
		    wrong->kind);
	}
}

/* --- RTLD_DEEPBIND --- */

static const char plug[] =
    "#include <stdlib.h>\n#include <string.h>\nextern \"C\" {\n"
    "static char *early;\n"
    "__attribute__((constructor)) static void begin() {\n"
    "	early = (char *)malloc(40);\n"
    "	if (getenv(\"TOO_EARLY\")) free(strdup(early));\n"
    "}\n"
    "char *give_early() { return early; }\n"
    "char *give() { return (char *)malloc(40); }\n"
    "char *give_new() { return new char; }\n"
    "char *copy() { return strdup(\"a text that is long enough\"); }\n"
    "void take(char *p) { free(p); }\n"
    "void (*volatile take_by)(void *) = free;\n"
    "void take_too(char *p) { take_by(p); }\n"
    "void take_new(char *p) { delete p; }\n"
    "char *grow(char *p) { return (char *)realloc(p, 400); } }\n";

static const char opener[] =
    "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "#define GIVE(name) ((char *(*)())dlsym(plug, #name))()\n"
    "#define TAKE(name) ((void (*)(char *))dlsym(plug, #name))\n"
    "int main(int argc, char **argv) {\n"
    "	void *plug = dlopen(argv[1], RTLD_LAZY | (*argv[1] == '/' ?\n"
    "	    RTLD_DEEPBIND : 0));\n"
    "	if (plug == nullptr) { puts(dlerror()); return 1; }\n"
    "	auto grow = (char *(*)(char *))dlsym(plug, \"grow\");\n"
    "	free(realloc(GIVE(give_early), 4000)); free(GIVE(give));\n"
    "	free(GIVE(copy)); TAKE(take)(GIVE(copy));\n"
    "	TAKE(take)((char *)malloc(40)); TAKE(take_too)(GIVE(copy));\n"
    "	TAKE(take)(grow((char *)malloc(40))); free(grow(GIVE(copy)));\n"
    "	delete GIVE(give_new); TAKE(take_new)(new char);\n"
    "	if (argc > 2) {\n"
    "		char *volatile p = GIVE(give);\n"
    "		p[41] = 'd'; TAKE(take)(p); TAKE(take)(GIVE(give) + 16);\n"
    "	}\n"
    "	puts(\"done\"); return 3; }\n";

static void
open_deep(struct outcome *o, const char *name, const char *more)
{
	guard(o, LIST("--heap-runs", "0", "--error-exitcode", "66",
	    "--no-cache"), LIST(scratch_path("opener"), name, more));
	expect_report(o);
}

TEST(a_library_opened_with_rtld_deepbind_uses_the_guard)
{
	static const char *const ways[] = {
		"-Wl,-z,lazy", "-Wl,-z,now", "-fno-plt",
	};

	scratch_write("plug.cc", plug);
	scratch_write("opener.cc", opener);
	scratch_run("%s -g -o opener opener.cc -ldl "
	    "-Wl,--enable-new-dtags,-rpath,'$ORIGIN'", getenv("CXX"));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct outcome o;

		scratch_run("%s -g -fno-builtin -shared -fPIC %s -o libplug.so "
		    "plug.cc", getenv("CXX"), ways[i]);
		open_deep(&o, scratch_path("libplug.so"), NULL);
		if (o.status != 3 || count_of(&o, "finding") != 0)
			fail_msg("%s: %d %s%s", ways[i], o.status, o.out,
			    o.err);
		open_deep(&o, scratch_path("libplug.so"), "wrong");
		if (o.status != 66 || count_of(&o, "finding") != 2)
			fail_msg("%s, wrong: %d %s%s", ways[i], o.status,
			    o.out, o.err);
	}
}

/* It is found by the RUNPATH of its caller. */
TEST(a_library_is_found_as_without_the_guard)
{
	struct outcome o;

	open_deep(&o, "libplug.so", NULL);
	if (o.status != 3 || count_of(&o, "finding") != 0)
		fail_msg("%d %s%s", o.status, o.out, o.err);
}

TEST(a_library_that_crashes_while_it_is_opened_is_named)
{
	struct outcome o;

	(void)setenv("TOO_EARLY", "1", 1);
	open_deep(&o, scratch_path("libplug.so"), NULL);
	(void)unsetenv("TOO_EARLY");
	assert_int_equal(o.status, 120);
	assert_holds(o.err, "libplug.so with RTLD_DEEPBIND");
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
