/*
 * callers: functions that leave no trace on the stack, because they end in a
 * jump or were inlined.  Both can be allowed to write, and both can be missing
 * from a backtrace.  The programs are compiled in the ways that compilers are
 * commonly used.
 */
#include "test.h"

#include <string.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

/* Its arguments are names of functions, each of which writes config. */
static const char source[] =
	"#include <stdio.h>\n"
	"#include <string.h>\n"
	"#define ALONE __attribute__((noinline))\n"
	"#ifndef LIBRARY\n"
	"#define LIBRARY 0\n"
	"#endif\n"
	"extern long config;\n"
	"ALONE void set(long value);\n"
	/* what a library has, if there is one */
	"#if LIBRARY != 2\n"
	"long config;\n"
	"ALONE void set(long value) {\n"
	"	config = value;\n"
	"	__asm__ volatile(\"\" ::: \"memory\");\n"
	"}\n"
	"#endif\n"
	/* and the program */
	"#if LIBRARY != 1\n"
	"static volatile int choice = 1;\n"
	"static long from[2] = {5, 6};\n"
	"volatile size_t length = sizeof(config);\n"
	"ALONE static void reload(long value) { choice++; set(value + 1); }\n"
	"ALONE static void middle(long value) {\n"
	"	choice++; reload(value * 2);\n"
	"}\n"
	/* two ways */
	"ALONE static void left(long value) { choice++; set(value + 3); }\n"
	"ALONE static void right(long value) { choice += 2; set(value + 4); }\n"
	"ALONE static void either(long value) {\n"
	"	if (choice != 0)\n"
	"		left(value);\n"
	"	else\n"
	"		right(value);\n"
	"}\n"
	/* the inlined function makes the call that is a jump */
	"static inline __attribute__((always_inline))"
	" void within(long value) {\n"
	"	choice++; set(value);\n"
	"}\n"
	"ALONE static void outer(long value) { choice++; within(value + 1); }\n"
	/* through a pointer */
	"static void (*volatile pointer)(long) = set;\n"
	"ALONE static void anywhere(long value) { choice++; pointer(value); }\n"
	/* jumps through a table are no calls */
	"#define CASE(n) case n:"
	" __asm__ volatile(\"# \" #n); choice += n; break;\n"
	"ALONE static void switches(long value) {\n"
	"	switch (value % 16) {\n"
	"	CASE(1) CASE(2) CASE(3) CASE(4)"
	" CASE(5) CASE(6) CASE(7) CASE(8)\n"
	"	CASE(9) CASE(10) CASE(11) CASE(12)\n"
	"	}\n"
	"	set(value);\n"
	"}\n"
	"ALONE static void calls(long value) { set(value); choice = 1; }\n"
	"ALONE static void calls_pointer(long value) {\n"
	"	pointer(value); choice = 1;\n"
	"}\n"
	"static void (*volatile other)(long) = reload;\n"
	"ALONE static void calls_other(long value) {\n"
	"	other(value); choice = 1;\n"
	"}\n"
	/* which may be one that ends in a jump through another */
	"static void (*volatile relay)(long) = anywhere;\n"
	"ALONE static void calls_relay(long value) {\n"
	"	relay(value); choice = 1;\n"
	"}\n"
	"ALONE static void nowhere(long value) { choice++; pointer(value); }\n"
	/* in a part of it that compilers move away */
	"__attribute__((cold, noinline)) static void ice(void) { choice++; }\n"
	"ALONE static void seldom(long value) {\n"
	"	if (__builtin_expect(choice != 0, 0)) {\n"
	"		ice(); config = value; ice();\n"
	"	}\n"
	"	choice++;\n"
	"}\n"
	/* to the code that the C library chooses for this processor */
	"ALONE static void *copies(long value) {\n"
	"	from[0] = value;\n"
	"	return memcpy(&config, from, length);\n"
	"}\n"
	"int main(int argc, char **argv) {\n"
	"	for (int i = 1; i < argc; i++) {\n"
	"#define WAY(name) if (strcmp(argv[i], #name) == 0) name(i)\n"
	"		WAY(set); WAY(reload); WAY(middle); WAY(either);\n"
	"		WAY(outer); WAY(anywhere); WAY(switches); WAY(calls);\n"
	"		WAY(calls_pointer); WAY(calls_other); WAY(seldom);\n"
	"		WAY(copies); WAY(calls_relay); WAY(nowhere);\n"
	"	}\n"
	"	return choice == 0;\n"
	"}\n"
	"#endif\n";

/* How the program is made from program.c. */
static const struct build {
	const char *command;
	bool debug;		/* it has debug information */
} builds[] = {
	{"gcc -O2 -g -o program program.c", true},
	{"gcc -O2 -g -gdwarf-4 -o program program.c", true},
	{"gcc -O2 -o program program.c", false},
	{"gcc -O2 -g -static -o program program.c", true},
	{"clang -O2 -g -o program program.c", true},
	{"clang -O2 -g -gdwarf-4 -no-pie -fno-pie -o program program.c", true},
	{"clang -O2 -o program program.c", false},
	{"gcc -O2 -g -DLIBRARY=1 -fPIC -shared -o libset.so program.c && "
	    "gcc -O2 -g -DLIBRARY=2 -o program program.c -L. -lset "
	    "-Wl,-rpath,$PWD -Wl,-z,lazy", true},
	{"gcc -O2 -g -DLIBRARY=1 -fPIC -shared -o libset.so program.c && "
	    "gcc -O2 -g -DLIBRARY=2 -fno-plt -o program program.c -L. -lset "
	    "-Wl,-rpath,$PWD -Wl,-z,now", true},
#define SPLIT(cc, version)						\
	{cc " -O2 -g -gdwarf-" version " -gsplit-dwarf -c program.c && " \
	    cc " -o program program.o", true}
	SPLIT("gcc", "4"), SPLIT("gcc", "5"), SPLIT("clang", "4"),
	SPLIT("clang", "5"),
};
#define BUILDS COUNT(builds)

/* What a backtrace must be, up to main: ~ behind who ended in a jump, ? where
   others may be missing. */
static const struct way {
	const char *name, *frames;
	const char *bare;	/* without debug information; NULL: the same */
} ways[] = {
	{"set", "set", NULL},
	{"reload", "set reload~", NULL},
	{"middle", "set reload~ middle~", NULL},
	{"either", "set either~?", NULL},
	{"outer", "set within~ outer~", "set outer~"},
	{"anywhere", "set anywhere~", NULL},
	{"switches", "set switches~", NULL},
	{"calls", "set calls", NULL},
	{"calls_pointer", "set calls_pointer", NULL},
	{"seldom", "seldom", NULL},
	{"copies", "* copies~", NULL},
};
#define WAYS COUNT(ways)

static void
build(const char *command)
{
	scratch_write("program.c", source);
	scratch_run("%s", command);
}

static bool
is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* A backtrace as struct way has it. */
static const char *
frames_of(const json_t *hit)
{
	static char text[1024];
	size_t i, n = 0;
	json_t *frame;

	text[0] = '\0';
	json_array_foreach(json_object_get(hit, "frames"), i, frame) {
		const char *name = maybe_text(frame, "function");

		if (strcmp(name, "main") == 0 || n > sizeof(text) / 2)
			break;
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    "%s%.*s%s%s", i == 0 ? "" : " ",
		    (int)strcspn(name, "."), name,
		    is_true(frame, "tail_call") ? "~" : "",
		    is_true(frame, "gap") ? "?" : "");
		assert_true(is_true(frame, "tail_call") ||
		    json_object_get(frame, "pc") != NULL);
	}
	return text;
}

static bool
is_as_expected(const char *frames, const char *wanted)
{
	if (wanted[0] != '*')
		return strcmp(frames, wanted) == 0;
	frames = strchr(frames, ' ');
	return frames != NULL && strcmp(frames, wanted + 1) == 0;
}

/* Let the program go all ways; what was told of each must be right. */
static void
expect_ways(const struct outcome *o, const struct build *b)
{
	size_t i, way = 0;
	json_t *hit;

	json_array_foreach(o->lines, i, hit) {
		/* a copy may take several stores */
		const struct way *w = &ways[way < WAYS ? way : WAYS - 1];
		const char *wanted = w->bare != NULL && !b->debug ? w->bare :
		    w->frames;

		if (!is_hit(hit) || strstr(frames_of(hit), "_dl_") != NULL)
			continue;	/* or config is copied by the loader */
		if (!is_as_expected(frames_of(hit), wanted))
			fail_msg("%s: %s: %s, not %s", b->command, w->name,
			    frames_of(hit), wanted);
		assert_int_equal(is_true(hit, "incomplete"),
		    strchr(wanted, '?') != NULL);
		way += way < WAYS;
	}
	if (way != WAYS)
		fail_msg("%s: %zu hits: %s%s", b->command, way, o->out,
		    o->err);
}

/* Watch config in the program, which is called with all ways. */
static void
watch_all(struct outcome *o, const char *const *options)
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl(), "-w", "config:8"));

	n = append(argv, append(argv, n, options), LIST("--",
	    scratch_path("program")));
	for (size_t i = 0; i < WAYS; i++)
		n = append(argv, n, LIST(ways[i].name));
	run(o, argv);
}

TEST(finds_who_ended_in_a_jump)
{
	struct outcome o;

	for (size_t i = 0; i < BUILDS; i++) {
		build(builds[i].command);
		watch_all(&o, LIST("-o", "json", "-O", "-", "--stop"));
		expect_ways(&o, &builds[i]);
	}
}

/* From a recording, when the program is gone. */
TEST(finds_them_afterwards)
{
	const struct build *library = &builds[7];
	struct outcome o;

	build(library->command);
	watch_all(&o, LIST("-o", "perf", "-O", scratch_path("data")));
	run(&o, LIST(watchctl(), "report", "-o", "json",
	    scratch_path("data")));
	expect_ways(&o, library);
}

/* --- who is allowed --- */

/* Watch the program going one way. */
static void
expect_judged(const char *way, const char *allowed, int status,
    const char *words)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "-w", "config:8", "--error-exitcode", "66",
	    "--allow", allowed, "--", scratch_path("program"), way));
	if (o.status != status || strstr(o.err, words) == NULL)
		fail_msg("%s, %s allowed: %d, not %d: %s", way, allowed,
		    o.status, status, o.err);
}

TEST(judges_who_ended_in_a_jump)
{
	build(builds[0].command);
	expect_judged("reload", "reload", 0, ", 0 stray\n");
	expect_judged("reload", "program.c", 0, ", 0 stray\n");
	expect_judged("reload", "middle", 66, "1 stray by 1 writer\n");
	expect_judged("middle", "middle", 0, ", 0 stray\n");
	expect_judged("outer", "within", 0, ", 0 stray\n");
	expect_judged("either", "either", 0, ", 0 stray\n");
	expect_judged("either", "left", 120, "unjudged write");
	expect_judged("either", "left", 120, "exit status 120: nothing stray "
	    "was seen, but 1 hit cannot be judged: a caller that is allowed "
	    "may be missing in its backtrace\n");
	expect_judged("calls", "reload", 66, "1 stray by 1 writer\n");
}

/* The loader's first code, which calls constructors, has no callers. */
TEST(judges_constructors)
{
	scratch_write("program.c", "long config;\n"
	    "__attribute__((constructor)) static void early(void) {\n"
	    "	config = 1; __asm__ volatile(\"\" ::: \"memory\");\n"
	    "}\n"
	    "int main(void) { return 0; }\n");
	scratch_run("gcc -O2 -fPIC -shared -o libearly.so program.c && "
	    "echo 'extern long config; int main(void) { return !config; }' "
	    "> main.c && gcc -O2 -o program main.c -L. -learly "
	    "-Wl,-rpath,$PWD");
	expect_judged("", "late", 66, "1 stray by 1 writer\n");
	expect_judged("", "early", 0, ", 0 stray\n");
}

/* Without what was split off nobody knows what was inlined: a file that is not
   there, is none, or is damaged.  It may be in a package. */
TEST(judges_without_what_was_split_off)
{
	static const struct {
		const char *instead;
		bool there;
	} cases[] = {
		{"rm program.dwo", false},
		{"rm program.dwo && mkfifo program.dwo", false},
		{"%s -e program -o whole && rm program.dwo && "
		    "head -c 700 whole > program.dwp", false},
		{"%s -e program -o program.dwp && rm program.dwo", true},
	};

	for (size_t i = BUILDS - 4; i < BUILDS; i++) {
		/* binutils' dwp is for DWARF 4 */
		const char *dwp = strstr(builds[i].command, "-gdwarf-4") !=
		    NULL ? "dwp" : "llvm-dwp";

		for (size_t k = 0; k < 4; k++) {
			if (!cases[k].there && k % 3 != i % 3)
				continue;
			build(builds[i].command);
			scratch_run(cases[k].instead, dwp);
			expect_judged("outer", "within",
			    cases[k].there ? 0 : 120, cases[k].there ?
			    ", 0 stray\n" : "1 hit cannot be judged");
			expect_judged("outer", "outer", 0, ", 0 stray\n");
			if (cases[k].there)
				expect_judged("outer", "middle", 66,
				    "1 stray by 1 writer\n");
			scratch_run("rm -f program.dw* whole");
		}
	}
}

/* gcc's link-time optimization splits off debug information that does not name
   what it inlined. */
TEST(judges_without_names_of_what_was_inlined)
{
	build("gcc -O2 -g -gsplit-dwarf -flto -o program program.c");
	expect_judged("outer", "within", 120, "1 hit cannot be judged");
	expect_judged("outer", "outer", 0, ", 0 stray\n");
}

/* Who was called through a pointer may have ended in a jump: nothing tells.
   Who is allowed and has no such jump was not the one. */
TEST(judges_calls_through_pointers)
{
	const size_t plain = 0, library = 7;
	const size_t made[] = {plain, library};

	for (size_t i = 0; i < 2; i++) {
		build(builds[made[i]].command);
		expect_judged("calls_other", "reload", 120,
		    "1 hit cannot be judged");
		expect_judged("anywhere", "middle", 120,
		    "1 hit cannot be judged");
		expect_judged("calls_other", "calls", 66,
		    "1 stray by 1 writer\n");
		expect_judged("calls_other", "calls_other", 0, ", 0 stray\n");
	}
}

/* If the jump is through a pointer as well, nothing is known either.  But no
   call through a pointer leads to what nothing points to, nor to main. */
TEST(judges_jumps_through_pointers)
{
	const size_t plain = 0, bare = 2, fixed = 5;
	const size_t made[] = {plain, bare, fixed};

	for (size_t i = 0; i < COUNT(made); i++) {
		build(builds[made[i]].command);
		expect_judged("calls_relay", "anywhere", 120,
		    "1 hit cannot be judged");
		expect_judged("calls_relay", "nowhere", 66,
		    "1 stray by 1 writer\n");
		expect_judged("calls", "anywhere", 66, "1 stray by 1 writer\n");
	}
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
