/*
 * first: what the first answer takes of a program with much debug information,
 * beside gdb: the processor time of either, with its children, until it has
 * reported the first write of a variable, with its callers, and has ended.
 *
 * A few source files are compiled; the program's units are copies of those with
 * other names.  UNITS says how many: 200 of them are about 95 MB of debug
 * information, compressed.  The variable and its writer are in one that comes
 * after two fifths of them, and a caller in one before.  The second time, what
 * was found out the first time is kept in the user's cache directory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench.h"
#include "command.h"
#include "scratch.h"

enum {
	KINDS = 4,		/* source files */
	UNITS_USUAL = 200,
	TYPES = 5000,		/* in a unit */
	RUNS = 5, GDB_RUNS = 3,
};

#define GDB "/usr/bin/gdb"

/* In all names of a unit; its number takes the place of the digits. */
#define TAG "u0000"

static const char main_file[] =
    "struct config { int limit; long weight; } config;\n"
    "void set(int to)\n"
    "{\n"
    "	config.limit = to;\n"
    "}\n"
    "void u0001_call(void (*)(int), int);\n"
    "int main(void)\n"
    "{\n"
    "	u0001_call(set, 7);\n"
    "	return 0;\n"
    "}\n";

static unsigned
below(unsigned n)
{
	static uint64_t seed = 1;

	seed = seed * UINT64_C(6364136223846793005) +
	    UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % n;
}

static const char *
word(void)
{
	static const char *const words[] = {
		"count", "total", "limit", "flags", "owner", "next", "prev",
		"buffer", "length", "offset", "parent", "child", "state",
		"index", "cache", "entry", "queue", "timer", "weight", "level",
		"socket", "handle", "origin", "target", "window", "region",
	};

	return words[below(sizeof(words) / sizeof(words[0]))];
}

static const char *
type(void)
{
	static const char *const types[] = {
		"int", "long", "unsigned", "char", "short", "double", "char *",
		"void *", "unsigned long", "const char *",
	};

	return types[below(sizeof(types) / sizeof(types[0]))];
}

/* A type. */
static void
write_type(FILE *f, unsigned i)
{
	(void)fprintf(f, "struct " TAG "_s%u {\n\tlong sum;\n", i);
	for (unsigned k = 2 + below(9); k > 0; k--)
		(void)fprintf(f, "\t%s %s_%s_%u%s;\n", type(), word(), word(),
		    k, below(4) == 0 ? "[12]" : "");
	(void)fprintf(f, "\tstruct " TAG "_s%u *%s;\n};\n", below(i + 1),
	    word());
}

/* A variable of a type, and a function that uses it. */
static void
write_use(FILE *f, unsigned i)
{
	(void)fprintf(f, "struct " TAG "_s%u " TAG "_%s_%u;\n", i, word(), i);
	(void)fprintf(f, "long " TAG "_%s_of_%u(struct " TAG "_s%u *it, int "
	    "by)\n{\n\tlong sum = by;\n", word(), i, i);
	for (unsigned k = below(12); k > 0; k--)
		(void)fprintf(f, "\tif (sum > %u) {\n\t\tlong part = sum * "
		    "%u;\n\t\tit->sum += part;\n\t}\n", below(1000),
		    below(100));
	(void)fprintf(f, "\treturn sum;\n}\n");
}

static void
write_kind(const char *name)
{
	FILE *f = fopen(scratch_path(name), "w");

	assert_non_null(f);
	for (unsigned i = 0; i < TYPES; i++) {
		write_type(f, i);
		if (i % 12 == 0)
			write_use(f, i);
	}
	(void)fprintf(f, "int " TAG "_calls;\n"
	    "void " TAG "_call(void (*fn)(int), int with)\n"
	    "{\n\tfn(with);\n\t" TAG "_calls++;\n}\n");
	assert_int_equal(fclose(f), 0);
}

/* Write an object file with another number in its names. */
static void
write_unit(const char *kind, unsigned unit)
{
	char name[32], tag[sizeof(TAG)], *at;
	size_t len;
	char *object = scratch_read(kind, &len);
	FILE *f;

	(void)snprintf(name, sizeof(name), "unit%u.o", unit);
	(void)snprintf(tag, sizeof(tag), "u%04u", unit % 10000);
	for (at = object; (at = memmem(at, len - (size_t)(at - object), TAG,
	    strlen(TAG))) != NULL; at += strlen(TAG))
		memcpy(at, tag, strlen(TAG));
	assert_non_null(f = fopen(scratch_path(name), "w"));
	assert_int_equal(fwrite(object, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	test_frees_now();
}

static void
make_units(unsigned units)
{
	char name[32];

	for (unsigned i = 0; i < KINDS; i++) {
		(void)snprintf(name, sizeof(name), "kind%u.c", i);
		write_kind(name);
		scratch_run("cc -g -O1 -fno-eliminate-unused-debug-types "
		    "-c %s", name);
	}
	for (unsigned i = 0; i < units; i++) {
		(void)snprintf(name, sizeof(name), "kind%u.o", i % KINDS);
		write_unit(name, i);
	}
	scratch_write("main.c", main_file);
	scratch_run("cc -g -O1 -fno-optimize-sibling-calls -c main.c");
}

static void
link_program(const char *name, unsigned units, const char *flags)
{
	FILE *f = fopen(scratch_path("objects"), "w");

	assert_non_null(f);
	for (unsigned i = 0; i < units; i++)
		(void)fprintf(f, "%sunit%u.o\n",
		    i == units * 2 / 5 ? "main.o\n" : "", i);
	assert_int_equal(fclose(f), 0);
	scratch_run("cc -o %s %s @objects", name, flags);
}

/* The processor time of a command, whose output has to have this text. */
static double
seconds(const char *const argv[], const char *text)
{
	struct outcome o;
	double took = bench_cpu();

	run(&o, argv);
	took = bench_cpu() - took;
	if (strstr(o.out, text) == NULL && strstr(o.err, text) == NULL)
		fail_msg("%s%s", o.out, o.err);
	return took;
}

/* Where breakpoints do not fire, what executes the writer is reported, by a
   uprobe, beside a breakpoint instruction of gdb's. */
static double
gdb(const char *program)
{
	const char *const command = bench_fires() ? "watch config.limit" :
	    "break set";
	double took[GDB_RUNS];

	for (int i = 0; i < GDB_RUNS; i++)
		took[i] = seconds(LIST(GDB, "-nx", "-batch", "-ex",
		    command, "-ex", "run", "-ex", "backtrace",
		    program), " main ");
	return bench_median(took, GDB_RUNS);
}

/* Nothing is known from the run before; or something is, but not before the
   first run, which does not count. */
static double
ours(const char *program, bool again)
{
	const bool fires = bench_fires();
	double took[RUNS];

	for (int i = again ? -1 : 0; i < RUNS; i++) {
		double one;

		if (!again || i < 0)
			scratch_run("rm -rf cache");
		one = seconds(LIST(watchctl(), "-n", "1", fires ? "-w" : "-x",
		    fires ? "config:4" : "set", "--", program), " main ");
		if (i >= 0)
			took[i] = one;
	}
	return bench_median(took, RUNS);
}

/* What an expression with a type's name means, for gdb and for us; ours is the
   program's whole run. */
static void
compare_expression(const char *name, const char *path, double limit)
{
	static const char expression[] = "((struct config *)&config)->limit";
	const char *const argv[] = {watchctl(), "--count", "-w", expression,
	    "--", path, NULL};
	double theirs[GDB_RUNS], took[RUNS];
	char what[64];

	for (int i = 0; i < GDB_RUNS; i++)
		theirs[i] = seconds(LIST(GDB, "-nx", "-batch", "-ex",
		    "print &((struct config *)&config)->limit", path),
		    "config");
	for (int i = 0; i < RUNS; i++) {
		scratch_run("rm -rf cache");
		took[i] = seconds(argv, "hits");
	}
	(void)snprintf(what, sizeof(what), "expression, %s", name);
	bench_tell(what, bench_median(took, RUNS) /
	    bench_median(theirs, GDB_RUNS), "x", "gdb", limit, 0);
}

static void
compare(const char *name, const char *program, double limit,
    double second_limit)
{
	char path[PATH_MAX + 256], what[64];
	double theirs, took, second;

	(void)snprintf(path, sizeof(path), "%s", scratch_path(program));
	theirs = gdb(path);
	took = ours(path, false);
	second = ours(path, true);
	printf("%s: first answer in %.0f ms, the second time in %.0f ms, "
	    "gdb's in %.0f ms\n", name, took * 1e3, second * 1e3,
	    theirs * 1e3);
	(void)snprintf(what, sizeof(what), "first answer, %s", name);
	bench_tell(what, took / theirs, "x", "gdb", limit, 0);
	(void)snprintf(what, sizeof(what), "second time, %s", name);
	bench_tell(what, second / theirs, "x", "gdb's first", second_limit, 0);
	if (bench_fires())
		compare_expression(name, path, limit);
}

int
main(void)
{
	const char *units = getenv("UNITS");
	unsigned n = units != NULL ? (unsigned)atoi(units) : UNITS_USUAL;

	assert_true(n >= 5 && n <= 10000);
	assert_int_equal(scratch_make(NULL), 0);
	make_units(n);
	link_program("plain", n, "");
	link_program("zlib", n, "-Wl,--compress-debug-sections=zlib");
	scratch_run("rm -f *.o");
	(void)setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
	compare("zlib", "zlib", 0.15, 0.03);
	compare("uncompressed", "plain", 0.1, 0.05);
	if (getenv("KEEP") == NULL)
		assert_int_equal(scratch_remove(NULL), 0);
	return bench_status();
}
