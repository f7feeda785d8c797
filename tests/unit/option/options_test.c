/*
 * options: what each option sets, which can be combined, and what is refused.
 */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "os/counter.h"
#include "option/option_table.h"
#include "option/options.h"
#include "said.h"
#include "scratch.h"

enum { ARGS = 32 };

static void
forget(void *what)
{
	struct options *o = what;

	options_free(o);
	assert_null(o->spec);
	assert_null(o->allow);
	assert_null(o->name);
	free(o);
}

static void
keep(const struct options *o)
{
	struct options *copy = malloc(sizeof(*copy));

	assert_non_null(copy);
	*copy = *o;
	test_frees(copy, forget);
}

/* A command line, parsed; stderr (or fd) goes to *said; both
   until the test ends. */
static int
parse(const char *const args[], struct options *o, int fd, char **said)
{
	static char *argv[ARGS + 1];	/* what o points into */
	int argc = 0, result;

	while (args[argc] != NULL) {
		argv[argc] = (char *)(uintptr_t)args[argc];
		argc++;
	}
	argv[argc] = NULL;
	said_begin(fd);
	result = strcmp(args[0], "report") == 0 ?
	    options_parse_report(argc, argv, o) : options_parse(argc, argv, o);
	*said = said_end(fd);
	keep(o);
	return result;
}

/* One that is right. */
static void
accept(struct options *o, const char *const args[])
{
	char *said;
	int result = parse(args, o, STDERR_FILENO, &said);

	if (result != 0 || said[0] != '\0')
		fail_msg("%s ... %d: %s", args[1], result, said);
}

#define ACCEPT(o, ...)							\
	accept(o, (const char *const []){"watchctl", __VA_ARGS__, NULL})

TEST(defaults)
{
	struct options o;

	ACCEPT(&o, "-w", "0x1000", "true");
	assert_int_equal(o.nspecs, 1);
	assert_int_equal(o.spec[0].addr, 0x1000);
	assert_int_equal(o.npids, 0);
	assert_string_equal(o.command[0], "true");
	assert_null(o.command[1]);
	assert_null(o.file);
	assert_null(o.output);
	assert_false(o.follow || o.count || o.user_only);
	assert_int_equal(o.limit, 0);
	assert_true(o.seconds == 0);
	assert_int_equal(o.form, FORM_TEXT);
	assert_int_equal(o.stack, 4096);
	assert_int_equal(o.nallow, 0);
	assert_int_equal(o.error_status, 0);
	assert_false(options_judge(&o));
}

TEST(counters_are_a_list)
{
	struct options o;

	ACCEPT(&o, "-w", "a", "x");
	assert_int_equal(o.with, 0);
	ACCEPT(&o, "-w", "a", "--with", "task-clock,page-faults", "--with",
	    "page-faults", "x");
	assert_int_equal(o.with, 1 << WP_COUNTER_TASK_CLOCK |
	    1 << WP_COUNTER_PAGE_FAULTS);
}

/* "-" is standard output, and for `report` standard input. */
TEST(a_dash_is_no_file)
{
	struct options o;

	ACCEPT(&o, "-w", "a", "-O", "-", "ls");
	assert_null(o.output);
	assert_true(o.to_stdout);
	ACCEPT(&o, "-w", "a", "-O", "-", "-O", "f", "ls");
	assert_string_equal(o.output, "f");
	assert_false(o.to_stdout);
	accept(&o, (const char *const []){"report", "-", NULL});
	assert_string_equal(o.file, "/dev/stdin");
}

TEST(what_to_watch)
{
	static const char access[] = "wraxw";
	struct options o;

	ACCEPT(&o, "-w", "a", "-r", "b", "-a", "c", "-xd", "-wlib!e+4:2", "x");
	assert_int_equal(o.nspecs, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(o.spec[i].access, access[i]);
	assert_string_equal(o.spec[3].symbol, "d");
	assert_string_equal(o.spec[4].module, "lib");
	assert_string_equal(o.spec[4].text, "lib!e+4:2");
}

TEST(whom_to_watch)
{
	struct options o;

	ACCEPT(&o, "-w", "a", "-p", "17", "-f", "-p2147483647");
	assert_int_equal(o.npids, 2);
	assert_int_equal(o.pid[0], 17);
	assert_int_equal(o.pid[1], 2147483647);
	assert_true(o.follow);
	assert_null(o.command);

	/* as pidof(1) and pgrep(1) -d, say it */
	ACCEPT(&o, "-w", "a", "-p", "17 4,5\n", "-p", "6");
	assert_int_equal(o.npids, 4);
	assert_int_equal(o.pid[1], 4);
	assert_int_equal(o.pid[2], 5);
	assert_int_equal(o.pid[3], 6);

	/* names may have blanks, and be beside numbers */
	ACCEPT(&o, "-w", "a", "-p", "Web Content,12", "-p@CHILDREN:9", "-p",
	    "7up");
	assert_int_equal(o.npids, 1);
	assert_int_equal(o.pid[0], 12);
	assert_int_equal(o.nnames, 3);
	assert_string_equal(o.name[0], "Web Content");
	assert_int_equal(options_children_of(o.name[0]), 0);
	assert_int_equal(options_children_of(o.name[1]), 9);
	assert_string_equal(o.name[2], "7up");

	ACCEPT(&o, "-w", "a->b", "--follow", "--stop", "ls");
	assert_true(o.follow_pointers && o.stop && !o.follow);
	assert_false(o.rotate);
	ACCEPT(&o, "-w", "a", "-r", "b", "--slots", "rotate", "--stop",
	    "ls");
	assert_true(o.rotate && o.stop && !o.follow_pointers);
	ACCEPT(&o, "-w", "a", "--exe", "/bin/x");
	assert_string_equal(o.exe, "/bin/x");
	assert_true(o.follow);
	ACCEPT(&o, "-w", "a", "--cgroup", "b", "--if-missing", "skip");
	assert_string_equal(o.cgroup, "b");
	assert_true(o.follow && o.skip_missing);
	ACCEPT(&o, "-w", "a", "--all-cpus");
	assert_true(o.all_cpus && o.follow);
	/* what lies in the kernel is watched in all processes anyway */
	ACCEPT(&o, "-w", "kernel!a", "--all-cpus");
	assert_false(o.all_cpus);
	assert_true(o.follow);

	/* a command's options are its own, with and without -- */
	ACCEPT(&o, "-w", "a", "--", "ls", "-p", "1", "--count");
	assert_string_equal(o.command[0], "ls");
	assert_string_equal(o.command[3], "--count");
	assert_false(o.count);
	ACCEPT(&o, "-w", "a", "ls", "-f", "--", "x");
	assert_string_equal(o.command[0], "ls");
	assert_string_equal(o.command[2], "--");
	assert_false(o.follow);
}

TEST(from_inside)
{
	struct options o;

	ACCEPT(&o, "-w", "a", "--inside", "--user-only", "ls", "--inside");
	assert_true(o.inside && o.user_only);
	assert_string_equal(o.command[1], "--inside");
	assert_int_equal(o.stack, 4096);
	ACCEPT(&o, "-w", "a", "--inside", "-f", "--error-exitcode", "9", "ls");
	assert_int_equal(o.stack, 16384);
	ACCEPT(&o, "-w", "a", "ls");
	assert_false(o.inside);
}

TEST(a_heap)
{
	struct options o;

	ACCEPT(&o, "--heap", "ls", "--heap");
	assert_true(o.heap == HEAP_RERUN && o.quarantine == QUARANTINE_NONE);
	assert_string_equal(o.command[1], "--heap");
	ACCEPT(&o, "--heap", "--heap-quarantine", "0", "-o", "json",
	    "--no-aslr",
	    "--error-exitcode", "9", "-O", "f", "--no-cache", "--", "ls");
	assert_int_equal(o.quarantine, 0);
	assert_int_equal(o.error_status, 9);
	ACCEPT(&o, "--heap", "--junit", "f", "--github", "ls");
	ACCEPT(&o, "--heap=sample", "ls");
	assert_int_equal(o.heap, HEAP_SAMPLE);
	assert_string_equal(o.command[0], "ls");
	ACCEPT(&o, "--heap", "--heap-quarantine", "4M", "ls");
	assert_int_equal(o.quarantine, 4 << 20);
	assert_true(o.heap_runs == HEAP_RUNS_NONE);
	ACCEPT(&o, "--heap", "--heap-runs", "0", "ls");
	assert_true(o.heap_runs == 0);
	ACCEPT(&o, "--heap", "--heap-runs", "5", "ls");
	assert_true(o.heap_runs == 5);
}

TEST(stops_and_actions)
{
	struct options o;

	ACCEPT(&o, "-w", "a", "--no-aslr", "ls");
	assert_true(o.no_aslr);
	ACCEPT(&o, "-w", "a", "--if-missing", "skip", "ls");
	assert_true(o.skip_missing);
	ACCEPT(&o, "-w", "a", "--stop", "ls", "--on-hit", "core");
	assert_false(o.skip_missing);
	assert_false(o.no_aslr);
	assert_true(o.stop);
	assert_int_equal(o.on_hit.what, ON_HIT_REPORT);
	ACCEPT(&o, "-w", "a", "--on-hit", "exec date -u", "-p", "1");
	assert_true(o.stop);
	assert_int_equal(o.on_hit.what, ON_HIT_EXEC);
	assert_string_equal(o.on_hit.command, "date -u");
	ACCEPT(&o, "-w", "a", "ls");
	assert_false(o.stop);
}

/* What is created is watched, too. */
TEST(the_kernels_memory)
{
	struct options o;

	ACCEPT(&o, "-w", "kernel!a+8:4", "-a", "0xffffffff81000000");
	assert_true(options_everywhere(&o));
	assert_true(o.follow);
	assert_string_equal(o.spec[0].symbol, "a");
	ACCEPT(&o, "-w", "kernel.so!a", "x");
	assert_false(options_everywhere(&o));
	assert_false(o.follow);
}

TEST(forms)
{
	static const struct {
		const char *name;
		enum form form;
	} cases[] = {
		{"text", FORM_TEXT}, {"json", FORM_JSON},
		{"folded", FORM_FOLDED}, {"perf", FORM_PERF},
		{"summary", FORM_SUMMARY}, {"summary,json", FORM_SUMMARY_JSON},
		{"gcc", FORM_GCC}, {"trace", FORM_TRACE},
		{"html", FORM_HTML},
	};
	struct options o;

	for (size_t i = 0; i < COUNT(cases); i++) {
		ACCEPT(&o, "-w", "a", "-o", cases[i].name, "-O", "file", "x");
		assert_int_equal(o.form, cases[i].form);
		assert_string_equal(o.output, "file");
	}
	ACCEPT(&o, "-w", "a", "-o", "json", "-o", "text", "x");
	assert_int_equal(o.form, FORM_TEXT);
}

/* Of JSON, and of nothing else; in both command lines. */
TEST(stacks)
{
	struct options o;

	ACCEPT(&o, "-w", "a", "-o", "json", "x");
	assert_false(o.stacks_once);
	ACCEPT(&o, "--stacks", "once", "-w", "a", "-o", "json", "x");
	assert_true(o.stacks_once);
	assert_int_equal(o.stack, 4096);
	accept(&o, (const char *const []){"report", "-o", "json", "--stacks",
	    "once", "file", NULL});
	assert_true(o.stacks_once);
}

TEST(memory)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"32M", 33554432}, {"33554432", 33554432}, {"2G", 2147483648},
		{"65536K", 67108864}, {"1024G", UINT64_C(1) << 40},
	};
	struct options o;

	for (size_t i = 0; i < COUNT(cases); i++) {
		accept(&o, (const char *const []){"report", "--explain-memory",
		    cases[i].text, "file", NULL});
		assert_int_equal(o.explain_memory, cases[i].bytes);
		ACCEPT(&o, "-w", "a", "--explain-memory", cases[i].text, "x");
		assert_int_equal(o.explain_memory, cases[i].bytes);
		ACCEPT(&o, "-w", "a", "--buffer", cases[i].text, "x");
		assert_int_equal(o.buffer, cases[i].bytes);
	}
	ACCEPT(&o, "-w", "a", "--buffer", "2M", "x");
	assert_int_equal(o.buffer, 2097152);
	ACCEPT(&o, "-w", "a", "x");
	assert_int_equal(o.buffer, 0);
}

TEST(delivery)
{
	struct options o;

	(void)unsetenv("WATCHCTL_DELIVERY");
	ACCEPT(&o, "-w", "a", "x");
	assert_int_equal(o.delivery, DELIVERY_USUAL);
	ACCEPT(&o, "-w", "a", "--delivery", "bpf", "x");
	assert_int_equal(o.delivery, DELIVERY_BPF);
	(void)setenv("WATCHCTL_DELIVERY", "ring", 1);
	ACCEPT(&o, "-w", "a", "x");
	assert_int_equal(o.delivery, DELIVERY_RING);
	ACCEPT(&o, "-w", "a", "--delivery", "bpf", "x");
	assert_int_equal(o.delivery, DELIVERY_BPF);
	ACCEPT(&o, "-a", "a", "--delivery", "ring", "x");
	assert_int_equal(o.delivery, DELIVERY_RING);
	(void)unsetenv("WATCHCTL_DELIVERY");
}

TEST(cache)
{
	struct options o;

	accept(&o, (const char *const []){"report", "file", NULL});
	assert_false(o.no_cache);
	accept(&o, (const char *const []){"report", "--no-cache", "file",
	    NULL});
	assert_true(o.no_cache);
	accept(&o, (const char *const []){"watchctl", "--no-cache", "-w", "x",
	    "-p", "1", NULL});
	assert_true(o.no_cache);
}

TEST(amounts)
{
	static const struct {
		const char *option, *value;
		uint64_t n;
	} cases[] = {
		{"-n", "1", 1}, {"-n", "007", 7},
		{"-n", "9223372036854775807", INT64_MAX},
		{"--stack", "1", 8}, {"--stack", "8", 8},
		{"--stack", "4090", 4096}, {"--stack", "64504", 64504},
		{"-t", "10", 10000}, {"-t", "0.25", 250}, {"-t", "1e9",
		    1000000000000},
	};
	struct options o;

	for (size_t i = 0; i < COUNT(cases); i++) {
		ACCEPT(&o, "-w", "a", cases[i].option, cases[i].value, "x");
		assert_int_equal(cases[i].n, cases[i].option[1] == 'n' ?
		    o.limit : cases[i].option[1] == 't' ?
		    (uint64_t)(o.seconds * 1000) : o.stack);
	}
}

TEST(switches)
{
	struct options o;

	ACCEPT(&o, "--count", "--user-only", "-fw", "a", "x");
	assert_true(o.count && o.user_only && o.follow && !o.changed);
	ACCEPT(&o, "--changed", "-w", "a", "x");
	assert_true(o.changed);
	accept(&o, (const char *const []){"report", "--changed", "file",
	    NULL});
	assert_true(o.changed);
	ACCEPT(&o, "--if", "new < 0 && caller(\"f\")", "--every", "3",
	    "--max-rate=10", "--once", "-w", "a", "x");
	assert_non_null(o.condition.root);
	assert_int_equal(o.every, 3);
	assert_int_equal(o.max_rate, 10);
	assert_true(o.once && options_thin(&o));
	accept(&o, (const char *const []){"report", "--once", "--if", "1",
	    "--error-exitcode", "6", "file", NULL});
	assert_true(o.once && o.condition.root != NULL);
	ACCEPT(&o, "--each", "7", "-w", "a", "x");
	assert_int_equal(o.each, 7);
	assert_false(options_thin(&o));
	ACCEPT(&o, "--last", "20", "--until", "old < 1", "-w", "a", "x");
	assert_non_null(o.until.root);
	assert_int_equal(o.last, 20);
	accept(&o, (const char *const []){"report", "--until", "1", "file",
	    NULL});
	assert_non_null(o.until.root);
	ACCEPT(&o, "--last", "20", "-w", "a", "x");
	assert_int_equal(o.last, 20);
	assert_true(options_thin(&o));
	/* as long as it is clear which is meant */
	ACCEPT(&o, "--us", "-w", "a", "--stack=512", "x");
	assert_true(o.user_only);
	assert_int_equal(o.stack, 512);
}

/* Who may touch it; judging takes deeper stacks, unless told otherwise. */
TEST(policies)
{
	struct options o;

	ACCEPT(&o, "-w", "a", "--allow", "config_*", "--allow=*.c", "x");
	assert_int_equal(o.nallow, 2);
	assert_string_equal(o.allow[0], "config_*");
	assert_string_equal(o.allow[1], "*.c");
	assert_true(options_judge(&o));
	assert_int_equal(o.error_status, 0);
	assert_int_equal(o.stack, 16384);
	ACCEPT(&o, "--stack", "512", "-w", "a", "--error-exitcode", "255", "x");
	assert_true(options_judge(&o));
	assert_int_equal(o.error_status, 255);
	assert_int_equal(o.stack, 512);
	ACCEPT(&o, "-w", "a", "--error-exitcode=1", "--count", "-p", "7");
	assert_int_equal(o.error_status, 1);
	assert_true(o.count);
	accept(&o, (const char *const []){"report", "--allow", "f", "file",
	    "--error-exitcode", "66", NULL});
	assert_string_equal(o.file, "file");
	assert_string_equal(o.allow[0], "f");
	assert_int_equal(o.error_status, 66);
}

TEST(a_report)
{
	struct options o;

	accept(&o, (const char *const []){"report", "f", "-o", "folded", "-O",
	    "out", "-n", "3", NULL});
	assert_string_equal(o.file, "f");
	assert_string_equal(o.output, "out");
	assert_int_equal(o.form, FORM_FOLDED);
	assert_int_equal(o.limit, 3);
	accept(&o, (const char *const []){"report", "--", "-f", NULL});
	assert_string_equal(o.file, "-f");
}

#define NUMBER(max) ": not a whole number from 1 to " max
#define SEE "; see watchctl --help"
#define IN_ALL " lies in the kernel and is watched in all processes: leave out "
#define CHOOSE "; --if 'pid == N' or 'comm == \"NAME\"' chooses among hits"
#define ROTATE_NOT "--slots rotate moves slots over the bytes of an object, " \
	"with hits by the kernel's rings; it does not go with "
#define OBJECTS_NOT "alloc:f moves slots from object to object in one " \
	"process, with hits by the kernel's rings; it does not go with "
#define LEAVE ": leave out one of them"
#define NO_HEAP "--heap looks for damage in the heap of a command, and has " \
	"no watches: leave out "
#define NOT_THERE " lies in the kernel, where no thread is stopped, no value " \
    "is read, and nothing is vouched for: leave out "

/* What is refused, by a line of these words. */
static const struct {
	const char *args[ARGS];
	const char *line;
} refused[] = {
	{{"w", "-f"},
	    "nothing to watch: give -w, -r, -a or -x with a SPEC" SEE},
	{{"w", "-p", "1"}, "nothing to watch: give -w, -r, -a or -x with a "
	    "SPEC" SEE},
	{{"w", "-w", "a"}, "no process to watch: give -p PID, -p NAME, "
	    "--exe PATH, --cgroup PATH, --all-cpus, or -- COMMAND"},
	{{"w", "-w", "kernel!a", "-w", "b", "-p", "1"}, "kernel!a and b: one "
	    "lies in the kernel and is watched in all processes, the other in "
	    "a program: watch them one at a time"},
	{{"w", "-w", "b", "-w", "0xffffffff81000000"}, "b and "
	    "0xffffffff81000000: one lies in the kernel and is watched in all "
	    "processes, the other in a program: watch them one at a time"},
	{{"w", "-w", "kernel!a@12:4"}, "kernel!a@12:4: the kernel has no "
	    "thread-local variables: leave out @12"},
	{{"w", "-r", "kernel!a"}, "kernel!a: of the kernel's accesses it is "
	    "not known which only read, and its execution is not watched: "
	    "watch by -w, or by -a"},
	{{"w", "-x", "kernel!a"}, "kernel!a: of the kernel's accesses it is "
	    "not known which only read, and its execution is not watched: "
	    "watch by -w, or by -a"},
	{{"w", "-w", "kernel!a", "-p", "1"}, "kernel!a" IN_ALL "-p" CHOOSE},
	{{"w", "-w", "kernel!a", "--exe", "/x"}, "kernel!a" IN_ALL "--exe"
	    CHOOSE},
	{{"w", "-w", "kernel!a", "ls"}, "kernel!a" IN_ALL "a command" CHOOSE},
	{{"w", "-w", "kernel!a", "-f"}, "kernel!a" IN_ALL "-f" CHOOSE},
	{{"w", "-w", "kernel!a", "--stop"}, "kernel!a" NOT_THERE "--stop"},
	{{"w", "-w", "kernel!a", "--on-hit", "pause"}, "kernel!a" NOT_THERE
	    "--on-hit"},
	{{"w", "-w", "kernel!a", "--inside"}, "kernel!a" NOT_THERE "--inside"},
	{{"w", "-w", "kernel!a", "--follow"}, "kernel!a" NOT_THERE "--follow"},
	{{"w", "-w", "kernel!a", "--slots", "rotate"}, "kernel!a" NOT_THERE
	    "--slots"},
	{{"w", "-w", "kernel!a", "--user-only"}, "kernel!a" NOT_THERE
	    "--user-only"},
	{{"w", "-w", "kernel!a", "--changed"}, "kernel!a" NOT_THERE
	    "--changed"},
	{{"w", "-w", "kernel!a", "--error-exitcode", "1"}, "kernel!a" NOT_THERE
	    "--error-exitcode"},
	{{"w", "-w", "kernel!a", "--with", "page-faults"}, "kernel!a" NOT_THERE
	    "--with"},
	{{"w", "-w", "kernel!a", "--delivery", "bpf"}, "kernel!a" NOT_THERE
	    "--delivery bpf"},
	{{"w", "-w", "alloc:f", "-w", "a", "ls"}, "alloc:f and a: the objects "
	    "of a function have all slots: watch them one at a time"},
	{{"w", "-w", "a", "-w", "alloc:f", "ls"}, "a and alloc:f: the objects "
	    "of a function have all slots: watch them one at a time"},
	{{"w", "-w", "alloc:f", "--stop", "ls"}, OBJECTS_NOT "--stop" LEAVE},
	{{"w", "-w", "alloc:f", "--inside", "ls"}, OBJECTS_NOT "--inside"
	    LEAVE},
	{{"w", "-w", "alloc:f", "--exe", "/x"}, OBJECTS_NOT "--exe" LEAVE},
	{{"w", "-w", "alloc:f", "-f", "ls"}, OBJECTS_NOT "-f" LEAVE},
	{{"w", "-w", "alloc:f", "--count", "ls"}, OBJECTS_NOT "--count" LEAVE},
	{{"w", "-w", "alloc:f", "--follow", "ls"}, OBJECTS_NOT "--follow"
	    LEAVE},
	{{"w", "-w", "alloc:f", "--slots", "rotate", "ls"}, OBJECTS_NOT
	    "--slots" LEAVE},
	{{"w", "-w", "alloc:f", "--delivery", "bpf", "ls"}, OBJECTS_NOT
	    "--delivery bpf" LEAVE},
	{{"w", "-w", "a", "--slots", "all", "ls"}, "--slots 'all': there is "
	    "only rotate; without the option what is wider than the slots is "
	    "an error"},
	{{"w", "-w", "a", "--slots"}, "--slots needs an argument" SEE},
	{{"w", "-x", "a", "--slots", "rotate", "ls"}, ROTATE_NOT "-x" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--inside", "ls"}, ROTATE_NOT
	    "--inside" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--follow", "ls"}, ROTATE_NOT
	    "--follow" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--count", "ls"}, ROTATE_NOT
	    "--count" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--stop", "-f", "ls"}, ROTATE_NOT
	    "--stop and -f" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--exe", "/x"}, ROTATE_NOT
	    "--exe" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "-o", "perf", "-O", "x", "ls"},
	    ROTATE_NOT "-o perf" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--delivery", "bpf", "ls"},
	    ROTATE_NOT "--delivery bpf" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--if-missing", "skip", "ls"},
	    ROTATE_NOT "--if-missing" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--with", "page-faults", "ls"},
	    ROTATE_NOT "--with" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--each", "2", "ls"}, ROTATE_NOT
	    "--each" LEAVE},
	{{"w", "-w", "a", "--slots", "rotate", "--last", "2", "ls"}, ROTATE_NOT
	    "--last" LEAVE},
	{{"w", "-w", "a", "--"},
	    "no process to watch: give -p PID, -p NAME, --exe PATH, "
	    "--cgroup PATH, --all-cpus, or "
	    "-- COMMAND"},
	{{"w", "-w", "a", "-p", "1", "ls"},
	    "-p and a command (ls) exclude each other"},
	{{"w", "-w"}, "-w needs an argument" SEE},
	{{"w", "-fn"}, "-n needs an argument" SEE},
	{{"w", "--stack"}, "--stack needs an argument" SEE},
	{{"w", "-q"}, "no option -q" SEE},
	{{"w", "--count", "-fq", "-w", "a"}, "no option -q" SEE},
	{{"w", "--count", "-qf", "-w", "a"}, "no option -q" SEE},
	{{"w", "-f", "-\303\251"}, "no option -\\xc3" SEE},
	{{"w", "--nonsense"}, "no option --nonsense" SEE},
	{{"w", "--\033[2J"}, "no option --\\x1b[2J" SEE},
	{{"w", "--cuont"}, "no option --cuont, nearest: --count" SEE},
	{{"w", "--user_only"}, "no option --user_only, nearest: "
	    "--user-only" SEE},
	{{"w", "--s"}, "no option --s, nearest: --sarif, --slots, --stack" SEE},
	{{"report", "--cuont"}, "no option --cuont" SEE},
	{{"w", "--help=x"}, "--help=x: that option takes no argument" SEE},
	{{"w", "--count=5"}, "--count=5: that option takes no argument" SEE},
	{{"w", "-w", "a+"}, "'a+': "},
	{{"w", "-x", ""}, "'': "},
	{{"w", "-n", "0"}, "-n '0'" NUMBER("9223372036854775807")},
	{{"w", "-n", "-1"}, "-n '-1'" NUMBER("9223372036854775807")},
	{{"w", "-n", "+1"}, "-n '+1'" NUMBER("9223372036854775807")},
	{{"w", "-n", " 1"}, "-n ' 1'" NUMBER("9223372036854775807")},
	{{"w", "-n", "1k"}, "-n '1k'" NUMBER("9223372036854775807")},
	{{"w", "-n", ""}, "-n ''" NUMBER("9223372036854775807")},
	{{"w", "-n", "9223372036854775808"},
	    "-n '9223372036854775808'" NUMBER("9223372036854775807")},
	{{"w", "-n", "99999999999999999999"},
	    "-n '99999999999999999999'" NUMBER("9223372036854775807")},
	{{"w", "-p", "2147483648"},
	    "-p '2147483648'" NUMBER("2147483647")},
	{{"w", "-p", "@CHILDREN:me"}, "-p @CHILDREN:PID 'me'"
	    NUMBER("2147483647")},
	{{"w", "-p", "@CHILDREN:0"}, "-p @CHILDREN:PID '0'"
	    NUMBER("2147483647")},
	{{"w", "-p", "@children:1"}, "-p '@children:1': after @ there is only "
	    "@CHILDREN:PID, a process and all that descend from it"},
	{{"w", "-p", ""}, "-p ''" NUMBER("2147483647")},
	{{"w", "-p", "1,,0,2"}, "-p '0'" NUMBER("2147483647")},
	{{"w", "-p", "7", "-p", "8", "-p", "07"}, "-p 07 is given twice"},
	{{"w", "-p", "7,8 7"}, "-p 7 is given twice"},
	{{"w", "--stack", "0"}, "--stack '0'" NUMBER("64504")},
	{{"w", "--stack", "64505"}, "--stack '64505'" NUMBER("64504")},
	{{"w", "--buffer", "1M"}, "--buffer '1M': not a size from 2M to 1024G"},
	{{"w", "--buffer", "x"}, "--buffer 'x': not a size from 2M to 1024G"},
	{{"w", "-w", "a", "--buffer", "2M", "--stop", "x"}, "--buffer is for "
	    "records that wait to be explained, and --stop has none"},
	{{"w", "-w", "a", "--buffer", "2M", "--count", "x"}, "--buffer is for "
	    "records that wait to be explained, and --count has none"},
	{{"w", "-w", "a", "--buffer", "2M", "--inside", "x"}, "--buffer is for "
	    "records that wait to be explained, and --inside has none"},
	{{"w", "--heap"}, "--heap puts a library into a command"},
	{{"w", "--heap", "-w", "a", "x"}, NO_HEAP "-w, -r, -a and -x "
	    "or --heap"},
	{{"w", "--heap", "-p", "1"}, "--heap guards a program from its "
	    "beginning"},
	{{"w", "--heap=sample", "--heap-runs", "1", "x"}, "--heap=sample runs "
	    "the command once: leave out --heap-runs"},
	{{"w", "--heap=all", "x"}, "--heap=all: there is --heap"},
	{{"w", "--heap", "--inside", "x"}, NO_HEAP "--inside or --heap"},
	{{"w", "--heap", "-v", "x"}, NO_HEAP "-v or --heap"},
	{{"w", "--heap", "-t", "1", "x"}, NO_HEAP "-t or --heap"},
	{{"w", "--heap", "--learn", "f", "x"}, NO_HEAP "--learn or --heap"},
	{{"w", "--heap", "--once", "x"}, NO_HEAP "--once or --heap"},
	{{"w", "--heap", "-o", "folded", "x"}, "--heap reports as text or "
	    "json"},
	{{"w", "--heap-quarantine", "1M", "-w", "a", "x"}, "--heap-quarantine "
	    "is for --heap"},
	{{"w", "--heap", "--heap-quarantine", "1T", "x"}, "--heap-quarantine "
	    "'1T': not a size"},
	{{"w", "--heap-runs", "3", "-w", "a", "x"}, "--heap-runs is for "
	    "--heap"},
	{{"w", "--heap", "--heap-runs", "-1", "x"}, "--heap-runs '-1': not a "
	    "whole number from 0 to 1000"},
	{{"w", "--delivery", "fax"}, "--delivery 'fax': no such way"},
	{{"w", "-w", "a", "--delivery", "bpf", "--stop", "x"}, "--delivery bpf "
	    "does not go with --stop"},
	{{"w", "-w", "a", "--delivery", "bpf", "--count", "x"}, "--delivery "
	    "bpf does not go with --count"},
	{{"w", "-w", "a", "--delivery", "bpf", "-r", "b", "x"}, "--delivery "
	    "bpf does not go with a watch for reads"},
	{{"w", "--inside", "-w", "a", "--delivery", "ring", "x"}, "--delivery "
	    "ring does not go with --inside"},
	{{"report", "--explain-memory", "31M", "f"}, "--explain-memory '31M'"},
	{{"report", "--explain-memory", "1025G", "f"}, "--explain-memory"},
	{{"report", "--explain-memory", "1T", "f"}, "--explain-memory '1T'"},
	{{"report", "--explain-memory", "-1G", "f"}, "--explain-memory '-1G'"},
	{{"w", "-t", "0"}, "-t '0': not a time; "},
	{{"w", "-t", "-1"}, "-t '-1': not a time; "},
	{{"w", "-t", "nan"}, "-t 'nan': not a time; "},
	{{"w", "-t", "inf"}, "-t 'inf': not a time; "},
	{{"w", "-t", "1.1e9"}, "-t '1.1e9': not a time; "},
	{{"w", "-t", "5s"}, "-t '5s': not a time; "},
	{{"w", "-t", ""}, "-t '': not a time; "},
	{{"w", "-o", "xml"}, "-o 'xml': no such form; there are text, json, "
	    "folded, summary, 'summary,json', html, gcc, trace and "
	    "perf"},
	{{"w", "-o", "summary,text"}, "-o 'summary,text': no such form; "},
	{{"w", "-w", "a", "-o", "perf", "ls"},
	    "-o perf writes a binary file: name it with -O FILE"},
	{{"w", "-w", "a", "--top", "-o", "json", "ls"}, "--top shows the "
	    "writers on the terminal, and then the summary, and does not go "
	    "with -o: "},
	{{"w", "-w", "a", "--top", "-O", "f", "ls"}, "--top shows"},
	{{"w", "-w", "a", "--top", "--count", "ls"}, "--top shows"},
	{{"w", "--inside", "-w", "a", "--top", "ls"}, "--top shows"},
	{{"report", "--top", "f"}, "no option --top"},
	{{"w", "-w", "a", "-O", "f%x", "ls"}, "-O: %x stands for nothing: "},
	{{"w", "-w", "a", "-O", "f%%%", "ls"}, "-O: a % at the end of"},
	{{"w", "-w", "a", "-O", "%p", "--exe", "x"}, "-O '%p': %p is the first "
	    "process, which --exe may not have yet: "},
	{{"w", "-w", "kernel!jiffies", "-O", "%p"}, "-O '%p': %p is the first"},
	{{"report", "-O", "%p", "f"}, "-O '%p': %p is a process that is "
	    "watched, and report watches none: "},
	{{"w", "-w", "a", "-o", "perf", "-O", "f", "--count", "ls"},
	    "--count has no records to write with -o perf"},
	{{"w", "-w", "a", "-o", "perf", "-O", "-", "ls"},
	    "-o perf writes a binary file: name it with -O FILE"},
	{{"w", "-w", "a", "-o", "folded", "--count", "ls"},
	    "--count has no backtraces for -o folded: "},
	{{"w", "-w", "a", "-o", "gcc", "--count", "ls"},
	    "--count has no backtraces for -o gcc: "},
	{{"w", "-w", "a", "-o", "trace", "--count", "ls"},
	    "--count has no backtraces for -o trace: "},
	{{"w", "-w", "a", "-o", "html", "--count", "ls"},
	    "--count has no backtraces for -o html: "},
	{{"w", "-w", "a", "-o", "summary", "--count", "ls"},
	    "--count has no backtraces for -o summary: "},
	{{"w", "-w", "a", "-o", "summary,json", "--count", "ls"},
	    "--count has no backtraces for -o summary: "},
	{{"w", "--stacks", "all"}, "--stacks 'all': there is only once; "},
	{{"w", "-w", "a", "--stacks", "once", "x"},
	    "--stacks once is for -o json: "},
	{{"w", "-w", "a", "--stacks", "once", "-o", "folded", "x"},
	    "--stacks once is for -o json: "},
	{{"report", "--stacks", "once", "x"},
	    "--stacks once is for -o json: "},
	{{"w", "-w", "a", "--stacks", "once", "-o", "json", "--count", "x"},
	    "--count has no backtraces for --stacks: "},
	{{"w", "--allow"}, "--allow needs an argument" SEE},
	{{"w", "--allow", ""}, "--allow '': matches nothing; "},
	{{"w", "--error-exitcode", "0"},
	    "--error-exitcode '0'" NUMBER("255")},
	{{"w", "--error-exitcode", "256"},
	    "--error-exitcode '256'" NUMBER("255")},
	{{"w", "--error-exitcode", "-1"},
	    "--error-exitcode '-1'" NUMBER("255")},
	{{"w", "-w", "a", "-o", "perf", "-O", "f", "--allow", "g", "ls"},
	    "-o perf explains nothing while it records: "},
	{{"w", "-w", "a", "-o", "perf", "-O", "f", "--error-exitcode", "1",
	    "ls"}, "-o perf explains nothing while it records: "},
	{{"w", "-w", "a", "--count", "--allow", "g", "ls"},
	    "--allow judges by backtraces, and --count has none: "},
#define MOVES "--follow moves the watches of one process, whose hits come by " \
	"the kernel's rings; it does not go with "
	{{"w", "-w", "a->b", "--follow", "-p", "1", "-f"}, MOVES "-f: leave "
	    "out one of them"},
	{{"w", "-w", "a->b", "--follow", "--each", "3", "ls"}, MOVES "--each: "
	    "leave out one of them"},
	{{"w", "-w", "a->b", "--follow", "--exe", "a"}, MOVES "--exe: leave "
	    "out one of them"},
	{{"w", "-w", "a->b", "--follow", "--inside", "ls"}, MOVES "--inside: "
	    "leave out one of them"},
	{{"w", "-w", "a->b", "--follow", "-o", "perf", "-O", "f", "ls"}, MOVES
	    "-o perf: leave out one of them"},
	{{"w", "-w", "a->b", "--follow", "--if-missing", "skip", "ls"}, MOVES
	    "--if-missing: leave out one of them"},
	{{"w", "-w", "a->b", "--follow", "--delivery", "bpf", "ls"}, MOVES
	    "--delivery bpf: leave out one of them"},
	{{"w", "-w", "a", "--exe", "a", "--exe", "b"}, "--exe is given twice: "
	    "one executable at a time"},
	{{"w", "-w", "a", "--exe", "a", "-p", "b"}, "--exe and -p exclude each "
	    "other: --exe finds the processes that run now, too"},
	{{"w", "-w", "a", "--cgroup", "a", "-p", "b"}, "--cgroup and -p "
	    "exclude each other: --cgroup finds the processes that run now, "
	    "too"},
	{{"w", "-w", "a", "--cgroup", "a", "--exe", "b"}, "--exe and --cgroup "
	    "exclude each other: "},
	{{"w", "-w", "a", "--all-cpus", "--cgroup", "b"}, "--cgroup and "
	    "--all-cpus exclude each other: "},
	{{"w", "-w", "a", "--all-cpus", "-p", "1"}, "--all-cpus and -p exclude "
	    "each other: "},
	{{"w", "-w", "a", "--cgroup", "a", "--cgroup", "b"}, "--cgroup is "
	    "given twice: one group at a time"},
	{{"w", "-w", "a@12", "--cgroup", "a"}, "--cgroup watches "
	    "processes, and a@12 is of one thread: give -p"},
	{{"w", "-w", "a", "--all-cpus", "ls"}, "--all-cpus and a command (ls) "
	    "exclude each other"},
	{{"w", "-w", "a", "--all-cpus", "--on-hit", "core"}, "--all-cpus "
	    "attaches to processes that have begun "},
	{{"w", "-w", "a->b", "--follow", "--cgroup", "a"}, MOVES "--cgroup: "},
	{{"w", "-w", "a", "--slots", "rotate", "--all-cpus"}, ROTATE_NOT
	    "--all-cpus" LEAVE},
	{{"w", "-w", "kernel!a", "--cgroup", "/x"}, "kernel!a" IN_ALL
	    "--cgroup"},
	{{"w", "-w", "a", "-O", "%p", "--all-cpus"}, "-O '%p': %p is the first "
	    "process, which --all-cpus may not have yet: "},
	{{"w", "-w", "a", "--exe", "a", "ls"}, "--exe and a command (ls) "
	    "exclude each other"},
	{{"w", "-w", "a", "--exe", "a", "--stop"}, "--exe attaches to "
	    "processes that have begun and does not trace them, as --stop and "
	    "--on-hit do: leave out one of them"},
	{{"w", "-w", "a", "--exe", "a", "--inside"}, "--inside loads a library "
	    "into a command that it starts, so it excludes --exe"},
	{{"w", "-w", "a", "--exe", "a", "-o", "perf", "-O", "f"}, "-o perf "
	    "begins with all that is watched, and --exe adds to that: leave "
	    "out one of them"},
	{{"w", "-w", "a", "-p", "name", "ls"}, "-p and a command (ls) exclude "
	    "each other"},
	{{"w", "-w", "a", "--inside", "-p", "name"}, "--inside loads a library "
	    "into a command that it starts, so it excludes -p"},
	{{"w", "-w", "a", "--inside", "-p", "1"},
	    "--inside loads a library into a command that it starts, so it "},
	{{"w", "-w", "a", "--inside", "--count", "ls"},
	    "--inside reports each hit as it is made: leave out --count "},
	{{"w", "-w", "a", "--inside", "-o", "perf", "-O", "f", "ls"},
	    "--inside writes no recording: "},
	{{"w", "-w", "a", "--inside", "--stack", "16385", "ls"},
	    "--stack 16392: with --inside at most 16384"},
	{{"w", "--on-hit"}, "--on-hit needs an argument" SEE},
	{{"w", "-w", "a", "--on-hit", "jump", "ls"},
	    "--on-hit 'jump': no such action; "},
	{{"w", "-w", "a", "--stop", "--count", "ls"},
	    "--count has no hits to stop at: "},
	{{"w", "-w", "a", "--on-hit", "core", "--inside", "ls"},
	    "--inside already makes a thread wait at its hit: "},
	{{"w", "-w", "a", "--on-hit", "core", "-o", "perf", "-O", "f", "ls"},
	    "-o perf explains nothing while it records, and so has no hits "},
	{{"w", "-w", "a", "--junit", "f", "--junit", "g", "x"},
	    "--junit is given twice: one file at a time"},
	{{"w", "-w", "a", "--sarif", "", "x"}, "--sarif '': name a file"},
	{{"w", "-w", "a", "--github", "--count", "x"}, "--github is about "
	    "writers, which --count does not identify: "},
	{{"w", "-w", "a", "--learn", "f", "-o", "perf", "-O", "g", "x"},
	    "-o perf explains nothing while it records: give --learn to "},
	{{"w", "-w", "a", "--learn", "f", "--allow", "g", "x"}, "--learn "
	    "records who accesses what, and judges nobody: leave out --learn "
	    "or --allow\n"},
	{{"w", "-w", "a", "--learn", "f", "--github", "x"}, "--learn records "},
	{{"w", "-w", "a\nb", "--learn", "f", "x"}, "'a\\nb': --learn "
	    "writes it in one line: "},
	{{"w", "-w", "a", "--junit", "f", "--every", "2", "x"}, "--every "
	    "leaves out hits without judging them, and one of these may be "
	    "stray: leave out --every or --junit\n"},
	{{"w", "-w", "a", "--learn", "f", "--every", "2", "x"}, "--every "
	    "leaves out hits, and --learn would not know who made them: leave "
	    "out --every or --learn\n"},
	{{"report", "--learn", "f", "--max-rate", "2", "x"}, "--max-rate "
	    "leaves out hits, and --learn "},
	{{"w", "-w", "a", "--learn", "f", "--each", "2", "x"}, "--each leaves "
	    "out hits, and --learn "},
	{{"w", "-w", "a", "--learn", "f", "--last", "2", "x"}, "--last leaves "
	    "out hits, and --learn would not know who made them: leave out "
	    "--last or --learn\n"},
	{{"w", "-w", "a", "--top", "--last", "2", "x"}, "--top shows the "
	    "writers on the terminal, and then the summary, and does not go "
	    "with --last: "},
	{{"w", "-w", "a", "--top", "-v", "x"}, "-v is for the table at the end "
	    "of a text: leave out -v or --top\n"},
	{{"w", "-w", "a", "--github", "-o", "perf", "-O", "f", "x"}, "-o perf "
	    "explains nothing while it records: give --github to "},
	{{"w", "-w", "a", "--sarif", "f", "--last", "2", "x"}, "--last leaves "
	    "out hits without judging them, and one of these may be stray: "
	    "leave out --last or --sarif\n"},
	{{"w", "--policy", "/nonexistent/p", "x"}, "/nonexistent/p: cannot be "
	    "read: No such file or directory\n"},
	{{"w", "--policy", "/dev/null", "x"}, "/dev/null: not a regular file"},
	{{"w", "-w", "a", "--if", "new <", "x"},
	    "--if 'new <': a value is missing (column 6)\n"},
	{{"w", "-w", "a", "--if", "", "x"},
	    "--if '': a value is missing (column 1)\n"},
	{{"w", "-w", "a", "--if", "1", "--if", "2", "x"},
	    "--if is given twice: join the conditions by &&\n"},
	{{"w", "-w", "a", "--if"}, "--if needs an argument" SEE},
	{{"report", "--if", "new = 3", "f"},
	    "--if 'new = 3': nothing is assigned here; == compares (column 5)"},
	{{"w", "-w", "a", "--every", "0", "x"}, "--every '0': not a whole"},
	{{"w", "-w", "a", "--max-rate", "1/s", "x"},
	    "--max-rate '1/s': not a whole number"},
	{{"w", "-w", "a", "--once=2", "x"},
	    "--once=2: that option takes no argument" SEE},
	{{"w", "-w", "a", "--count", "--if", "1", "x"},
	    "--if chooses among hits that are reported, and --count only "},
	{{"w", "-w", "a", "--count", "--once", "x"},
	    "--once chooses among hits that are reported, and --count only "},
	{{"w", "-w", "a", "--if", "1", "-o", "perf", "-O", "f", "x"},
	    "-o perf explains nothing while it records: give --if to "},
	{{"w", "-w", "a", "--every", "2", "-o", "perf", "-O", "f", "x"},
	    "-o perf explains nothing while it records: give --every to "},
	{{"w", "-w", "a", "--every", "2", "--error-exitcode", "6", "x"},
	    "--every leaves out hits without judging them, and one of "},
	{{"report", "--max-rate", "2", "--error-exitcode", "6", "f"},
	    "--max-rate leaves out hits without judging them, and one of "},
	{{"w", "-w", "a", "--each", "0", "x"}, "--each '0': not a whole"},
	{{"w", "-w", "a", "--each", "5", "--count", "x"},
	    "--each chooses among hits that are reported, and --count only "},
	{{"w", "-w", "a", "--each", "5", "-o", "perf", "-O", "f", "x"},
	    "-o perf explains nothing while it records: give --each to "},
	{{"w", "-w", "a", "--each", "5", "--error-exitcode", "6", "x"},
	    "--each leaves out hits without judging them, and one of "},
	{{"w", "-w", "a", "--each", "5", "--last", "6", "x"},
	    "--last keeps hits without examining them, which --each needs"},
	{{"report", "--each", "x", "f"}, "--each 'x': not a whole number"},
	{{"w", "-w", "a", "--with", "page-fault", "x"},
	    "--with 'page-fault': no such counter, nearest: page-faults; "},
	{{"w", "-w", "a", "--with", "", "x"},
	    "--with '': no such counter"},
	{{"w", "-w", "a", "--with", "cycles,", "x"},
	    "--with '': no such counter"},
	{{"w", "-w", "a", "--with", "cycles", "--count", "x"},
	    "--with reports counters with each hit, and --count cannot show "},
	{{"w", "-w", "a", "--with", "cycles", "-o", "summary", "x"},
	    "--with reports counters with each hit, and -o summary cannot "},
	{{"w", "-w", "a", "--with", "cycles", "-o", "folded", "x"},
	    "--with reports counters with each hit, and -o folded cannot "},
	{{"w", "-w", "a", "--with", "cycles", "-o", "gcc", "x"},
	    "--with reports counters with each hit, and -o gcc cannot show "},
	{{"w", "-w", "a", "--with", "cycles", "-o", "trace", "x"},
	    "--with reports counters with each hit, and -o trace cannot show "},
	{{"w", "-w", "a", "--with", "cycles", "--stop", "x"},
	    "--with counts what a thread does between its hits, and a stop "
	    "at each is a context switch itself: leave out --with or --stop"},
	{{"w", "-w", "a", "--with", "cycles", "--on-hit", "core", "x"},
	    "--with counts what a thread does between its hits, and a stop "
	    "at each is a context switch itself: leave out --with or --on-h"},
	{{"w", "-w", "a", "--with", "cycles", "--inside", "x"},
	    "--with reads counters in the kernel, and --inside catches hits "},
	{{"w", "-a", "a", "--with", "cycles", "x"},
	    "--with needs BPF programs, which read counters at the hit, and a "
	    "watch for reads has none: leave out one of them"},
	{{"w", "-w", "a", "--with", "cycles", "--delivery", "ring", "x"},
	    "--with needs BPF programs, which read counters at the hit, and d"},
	{{"w", "-w", "a", "--with", "cycles", "--follow", "x"},
	    "--with needs BPF programs, which read counters at the hit, and "
	    "--f"},
	{{"report", "--with", "cycles", "f"}, "no option --with"},
	{{"w", "-w", "a", "--last", "0", "x"}, "--last '0': not a whole"},
	{{"w", "-w", "a", "--last", "3", "--count", "x"},
	    "--count only counts hits, and --last reports some: leave out "},
	{{"w", "-w", "a", "--last", "3", "--stop", "x"},
	    "--stop reports each hit as it is made, and --last none until "},
	{{"w", "-w", "a", "--last", "3", "--on-hit", "core", "x"},
	    "--on-hit reports each hit as it is made, and --last none "},
	{{"w", "-w", "a", "--last", "3", "--inside", "x"},
	    "--inside reports each hit as it is made, and --last none "},
	{{"w", "-w", "a", "--last", "3", "--if", "new == 2", "x"},
	    "--last keeps hits without examining them, which --if needs"},
	{{"w", "-w", "a", "--last", "3", "--changed", "x"},
	    "--last keeps hits without examining them, which --changed needs"},
	{{"w", "-w", "a", "--last", "3", "-n", "3", "x"},
	    "-n ends at a hit that is reported, and --last reports none "},
	{{"w", "-w", "a", "--last", "3", "--error-exitcode", "3", "x"},
	    "--last leaves out hits without judging them, and one of these "},
	{{"w", "-w", "a", "--last", "3", "-o", "perf", "-O", "f", "x"},
	    "-o perf records all hits: watchctl report explains them, or "},
	{{"w", "-w", "a", "--until", "new = 3", "x"},
	    "--until 'new = 3': nothing is assigned here; == compares "},
	{{"w", "-w", "a", "--until", "1", "--until", "0", "x"},
	    "--until is given twice: join the conditions by ||\n"},
	{{"w", "-w", "a", "--until", "1", "--count", "x"},
	    "--until looks at hits that are reported, and --count only "},
	{{"w", "-w", "a", "--until", "1", "-o", "perf", "-O", "f", "x"},
	    "-o perf explains nothing while it records: give --until to "},
	{{"w", "-w", "a", "--until", "1", "--last", "1639", "x"},
	    "--last 1639: with --until, which explains each hit, at most "
	    "1638 with so much --stack\n"},
	{{"w", "-w", "a", "--until", "1", "--last", "2001", "--stack", "8",
	    "x"}, "--last 2001: with --until, which explains each hit, at "
	    "most 2000 "},
	{{"w", "-r", "a", "--until", "1", "--last", "2", "x"},
	    "-r has writes in between, which are not held as --last with "},
	{{"report", "--last", "3", "f"}, "no option --last" },
	{{"w", "-w", "a", "--changed", "--count", "x"},
	    "--changed needs values, which --count does not find: leave out "
	    "one of them"},
	{{"w", "-w", "a", "--changed", "-o", "perf", "-O", "f", "x"},
	    "--changed needs values, which -o perf does not find: leave out "
	    "one of them"},
	{{"w", "-w", "a", "-p", "1", "--if-missing", "skip"},
	    "--if-missing skip is for the programs that a command executes, "
	    "or that --cgroup or --all-cpus have: "},
	{{"w", "-w", "a", "--if-missing", "end", "x"},
	    "--if-missing 'end': there is only skip; "},
	{{"w", "-w", "a", "--if-missing", "skip", "--count", "x"},
	    "--if-missing skip finds its watches while programs begin, which "
	    "--count cannot: leave out one of them"},
	{{"w", "-w", "a", "--if-missing", "skip", "--inside", "x"},
	    "--if-missing skip finds its watches while programs begin, which "
	    "--inside cannot: leave out one of them"},
	{{"w", "-w", "a", "-w", "0x10", "--if-missing", "skip", "x"},
	    "--if-missing skip: the address 0x10 means something else in each "
	    "program: give a name"},
	{{"w", "-w", "a", "-p", "1", "--no-aslr"},
	    "--no-aslr is for a command that watchctl starts: "},
	{{"report", "--allow"}, "--allow needs an argument" SEE},
	{{"report"}, "report reads FILEs, and none is given" SEE},
	{{"report", "-w", "a", "b"}, "no option -w" SEE},
	{{"report", "a", "-f"}, "no option -f" SEE},
	{{"report", "--count", "b"}, "no option --count" SEE},
	{{"report", "b", "--stack", "8"}, "--stacks '8': there is only "},
	{{"report", "-v", "-o", "json", "a"}, "-v is for the table at the end "
	    "of a text: leave out -v or -o"},
	{{"w", "-v", "--count", "-w", "a", "true"}, "-v is for the table at "
	    "the end of a text: leave out -v or --count"},
	{{"report", "-O"}, "-O needs an argument" SEE},
	{{"report", "-o", "perf", "a"}, "report reads perf.data files and "
	    "does not write them: choose text, json, folded, html, gcc, "
	    "trace or summary"},
};

TEST(refusals)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		const char *want = refused[i].line;
		struct options o;
		char *said;
		int result = parse(refused[i].args, &o, STDERR_FILENO, &said);

		if (result != -EINVAL ||
		    strncmp(said, "watchctl: ", 10) != 0 ||
		    strncmp(said + 10, want, strlen(want)) != 0 ||
		    strchr(said, '\n') != said + strlen(said) - 1)
			fail_msg("%s ... %d: %snot: %s", refused[i].args[0],
			    result, said, want);
	}
}

/* What it watches is watched, too, each once. */
TEST(policies_name_watches)
{
	static const char *const args[] = {"w", "-w", "a", "--policy", "f",
	    "x", NULL};
	struct options o;
	char *said;

	scratch_write("f", "[watch]\nspec = b->c\naccess = access\n"
	    "[watch]\nspec = a\n[watch]\nspec = a\naccess = read\n");
	assert_int_equal(parse(args, &o, STDERR_FILENO, &said), 0);
	assert_int_equal(o.nspecs, 3);
	assert_string_equal(o.spec[1].text, "b->c");
	assert_int_equal(o.spec[1].access, WP_ACCESS);
	assert_int_equal(o.spec[2].access, WP_READ);
	assert_true(options_judge(&o) && !options_vouch(&o));
	assert_int_equal(o.stack, 16384);
	scratch_write("f", "[watch]\n\nspec = a[\n");
	assert_int_equal(parse(args, &o, STDERR_FILENO, &said), -EINVAL);
	assert_memory_equal(said, "watchctl: f:3: ", 15);
	scratch_write("f", "# nothing\n");
	assert_int_equal(parse(args, &o, STDERR_FILENO, &said), -EINVAL);
	assert_string_equal(said, "watchctl: f: it has no [watch]\n");
}

TEST(help_and_version)
{
	static const struct {
		const char *args[4];
		const char *begins;
	} cases[] = {
		{{"w", "-h"}, "usage: watchctl [OPTIONS]"},
		{{"w", "-w", "a", "--help"}, "usage: watchctl [OPTIONS]"},
		{{"report", "--help"}, "usage: watchctl [OPTIONS]"},
		{{"w", "-V"}, "watchctl " VERSION "\n"},
		{{"report", "--version"}, "watchctl " VERSION "\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct options o;
		char *said;

		assert_int_equal(parse(cases[i].args, &o, STDOUT_FILENO,
		    &said), 1);
		assert_memory_equal(said, cases[i].begins,
		    strlen(cases[i].begins));
	}
}

/* What stands for an argument in the help, and one that is right. */
static const char *
sample(const struct option_entry *e)
{
	static const char *const samples[][2] = {
		{"N", "5"}, {"SECONDS", "1"}, {"CONDITION", "new == 1"},
		{"ACTION", "pause"}, {"BYTES", "8"}, {"SIZE", "64M"},
		{"WAY", "bpf"}, {"PATTERN", "f"}, {"FORM", "json"},
		{"FILE", "f"}, {"once", "once"}, {"skip", "skip"},
		{"EVENT", "cycles"}, {"rotate", "rotate"},
	};

	for (size_t i = 0; i < COUNT(samples); i++)
		if (strcmp(e->argument, samples[i][0]) == 0)
			return samples[i][1];
	fail_msg("what is %s?", e->argument);
	return NULL;
}

/* Whether one option is accepted in a form of the command line. */
static bool
is_accepted(const struct option_entry *e, unsigned form)
{
	const char *args[ARGS] = {form == OPTION_REPORT ? "report" : "w"};
	char option[32];
	struct options o;
	char *said;
	int n = 1, result;

	if (form != OPTION_REPORT)
		args[n++] = "-wcounter";
	if (form == OPTION_ATTACH)
		args[n++] = "-p1";
	if (form == OPTION_INSIDE)
		args[n++] = "--inside";
	if (e->name != NULL && strcmp(e->name, "stacks") == 0)
		args[n++] = "-ojson";
	if (e->name != NULL && strcmp(e->name, "policy") == 0)
		scratch_write("f", "[watch]\nspec = counter\n");
	if (e->name != NULL)
		(void)snprintf(option, sizeof(option), "--%s", e->name);
	else
		(void)snprintf(option, sizeof(option), "-%c", e->letter);
	args[n++] = option;
	if (e->argument != NULL)
		args[n++] = sample(e);
	if (form != OPTION_ATTACH)
		args[n++] = "true";
	result = parse(args, &o, STDERR_FILENO, &said);
	return result == 0;
}

/* What the table says of each option is what is accepted. */
TEST(each_option_has_its_forms)
{
	for (const struct option_entry *e = option_table; e->help != NULL;
	    e++)
		for (unsigned form = OPTION_ATTACH; form <= OPTION_REPORT;
		    form <<= 1)
			if (!option_is_for(e, OPTION_APART) &&
			    is_accepted(e, form) != option_is_for(e, form))
				fail_msg("%s: form %u", e->name != NULL ?
				    e->name : e->help, form);
}

/* Every option is in the help, which fits a terminal. */
TEST(help_is_whole)
{
	static const char *const options[] = {
		"-w SPEC", "-r SPEC", "-a SPEC", "-x SPEC", "-p PID", "-f ",
		"-n N", "-t SECONDS", "--count", "--user-only", "--changed",
		"--if CONDITION", "--every N", "--max-rate N", "--once",
		"--last N", "--until CONDITION",
		"--stack BYTES", "--stacks once", "--allow PATTERN",
		    "--error-exitcode N",
		"-o FORM", "-O FILE", "-h, --help",
		"-V, --version", "watchctl report", "watchctl doctor",
	};
	struct options o;
	char *said;

	assert_int_equal(parse((const char *const []){"w", "-h", NULL}, &o,
	    STDOUT_FILENO, &said), 1);
	for (size_t i = 0; i < COUNT(options); i++)
		if (strstr(said, options[i]) == NULL)
			fail_msg("no %s in the help", options[i]);
	for (char *line = strtok(said, "\n"); line != NULL;
	    line = strtok(NULL, "\n"))
		if (strlen(line) > 80)
			fail_msg("%zu columns: %s", strlen(line), line);
}

/* Only where it does not matter which hit it is. */
TEST(hits_are_counted_for_a_summary_alone)
{
	static const struct {
		const char *args[ARGS];
		bool tally;
	} all[] = {
		{{"w", "-w", "a", "-o", "summary", "x"}, true},
		{{"w", "-w", "a", "-o", "summary,json", "-f", "x"}, true},
		{{"w", "-w", "a", "x"}, false},
		{{"w", "-w", "a", "-o", "folded", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "-n", "5", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--each", "5", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--every", "5", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--if", "tid", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--changed", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--allow", "f", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--learn", "f", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--stop", "x"}, false},
		{{"w", "-w", "a", "-o", "summary", "--inside", "x"}, false},
	};

	for (size_t i = 0; i < COUNT(all); i++) {
		struct options o;

		accept(&o, all[i].args);
		assert_int_equal(options_tally(&o), all[i].tally);
	}
}

RUN_TESTS(.before_all = scratch_enter, .after_all = scratch_leave)
