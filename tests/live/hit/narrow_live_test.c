/*
 * narrow: 32-bit programs: callers, types, arguments, system calls, expressions,
 * verdicts, thread-local variables and modules as of 64-bit ones; from outside,
 * and from inside.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

/* What they read is a file that is there. */
#define FILE_READ	"/etc/passwd"

/* Watch the program as the arguments say. */
static void
watch_to(struct outcome *o, const char *name, const char *form,
    const char *file, const char *const *more)
{
	const char *argv[ARGS] = {watchctl(), "-o", form, "-O", file};
	size_t n = append(argv, 5, more);

	(void)append(argv, n, (const char *const []){"--", victim(name),
	    FILE_READ, NULL});
	run(o, argv);
}

static void
watch(struct outcome *o, const char *name, const char *const *more)
{
	watch_to(o, name, "json", "-", more);
}

/* The functions of the program itself, up to main. */
static void
expect_callers(const json_t *hit, const char *const *callers)
{
	size_t i;

	for (i = 0; callers[i] != NULL; i++)
		expect_function(hit, (int)i, callers[i]);
	expect_complete(hit);
}

#define CALLERS(...)	((const char *const []){__VA_ARGS__, "main", NULL})

/* Without a stop it may be that a value is not known. */
static void
expect_counter(const struct outcome *o, bool stop)
{
	static const char *const value[] = {"1", "7", "12", "13", "14", "15",
	    "16"};

	assert_int_equal(o->status, 0);
	expect_hits(o, COUNT(value));
	expect_callers(hit_at(o, 0), CALLERS("set", "set", "set", "set"));
	expect_callers(hit_at(o, 1), CALLERS("set", "set", "set"));
	expect_callers(hit_at(o, 2), CALLERS("add"));
	expect_function(hit_at(o, 3), 0, "compare");
	expect_complete(hit_at(o, 3));
	for (size_t i = 0; i < COUNT(value); i++) {
		const json_t *hit = hit_at(o, i);

		assert_string_equal(text_of(hit, "value_type"), "int");
		assert_string_equal(text_of(hit, "path"), "counter");
		if (stop || *maybe_text(hit, "new_text") != '\0')
			assert_string_equal(text_of(hit, "new_text"),
			    value[i]);
		assert_string_equal(text_of(json_object_get(hit, "insn"),
		    "confidence"), "exact");
		assert_holds(text_of(frame_of(hit, 0), "file"),
		    "narrow_libc.c");
	}
	expect_function(hit_at(o, 6), 0, "thread");
	assert_null(json_object_get(hit_at(o, 6), "truncated"));
}

TEST(callers_types_and_values)
{
	struct outcome o;

	skip_unless_narrow_runs(victim("narrow_libc"));
	watch(&o, "narrow_libc", LIST("-w", "counter"));
	expect_counter(&o, false);
	watch(&o, "narrow_libc", LIST("--stop", "-w", "counter"));
	expect_counter(&o, true);
}

TEST(members)
{
	struct outcome o;

	skip_unless_narrow_runs(victim("narrow_libc"));
	watch(&o, "narrow_libc", LIST("--stop", "-w", "point.big"));
	assert_int_equal(o.status, 0);
	expect_hits(&o, 4);
	assert_string_equal(text_of(hit_at(&o, 1), "value_type"), "long long");
	assert_string_equal(text_of(hit_at(&o, 1), "path"), "point.big");
	assert_string_equal(text_of(hit_at(&o, 1), "new_text"), "8589934592");
	assert_string_equal(text_of(hit_at(&o, 3), "new_text"), "60129542144");
}

TEST(arguments_on_the_stack)
{
	static const char *const text[] = {"5", NULL, "6"};
	static const char *const type[] = {"int", "const char *", "long long"};
	const json_t *args, *arg;
	struct outcome o;
	size_t i;

	skip_unless_narrow_runs(victim("narrow_libc"));
	watch(&o, "narrow_libc", LIST("-x", "add"));
	assert_int_equal(o.status, 0);
	expect_hits(&o, 1);
	args = json_object_get(hit_at(&o, 0), "args");
	assert_int_equal(json_array_size(args), COUNT(text));
	json_array_foreach(args, i, arg) {
		assert_string_equal(text_of(arg, "type"), type[i]);
		if (text[i] != NULL)
			assert_string_equal(text_of(arg, "text"), text[i]);
	}
	expect_callers(hit_at(&o, 0), CALLERS("add"));
}

/* What the kernel does not sample, the first argument, the code shows. */
static const char *const calls_made[] = {"read", "recvfrom"};

TEST(system_calls)
{
	const json_t *hit;
	struct outcome o;

	skip_unless_narrow_runs(victim("narrow_libc"));
	if (!live_features.kernel || !live_features.callchain) {
		print_message("the kernel's accesses may not be watched\n");
		skip();
	}
	for (unsigned stop = 0; stop < 2; stop++) {
		watch(&o, "narrow_libc", stop ? LIST("-w", "buffer", "--stop") :
		    LIST("-w", "buffer"));
		assert_int_equal(o.status, 0);
		expect_hits(&o, 2);
		for (unsigned i = 0; i < 2; i++) {
			hit = hit_at(&o, i);
			assert_string_equal(text_of(hit, "syscall"),
			    calls_made[i]);
			assert_string_equal(text_of(hit, "access"), "write");
			assert_int_equal(number_of(hit, "syscall_bytes"), 8);
			assert_int_equal(number_of(hit, "fd"), i == 0 ? 3 : 5);
			assert_int_equal(number_of(hit, "len"), i == 0 ? 8 : 4);
			expect_complete(hit);
		}
		if (stop)
			assert_string_equal(text_of(hit_at(&o, 0), "file"),
			    FILE_READ);
	}
}

TEST(pointers_are_followed)
{
	const json_t *hit;
	struct outcome o;

	skip_unless_narrow_runs(victim("narrow_libc"));
	watch(&o, "narrow_libc", LIST("--follow", "--stop", "-w",
	    "head->next->value"));
	assert_int_equal(o.status, 0);
	expect_hits(&o, 1);
	hit = hit_at(&o, 0);
	assert_string_equal(text_of(hit, "value_type"), "int");
	assert_string_equal(text_of(hit, "new_text"), "3");
	expect_callers(hit, (const char *const []){"main", NULL});
}

TEST(recordings_and_backtraces_once)
{
	struct outcome live, later;
	const char *data = scratch_path("narrow.data");

	skip_unless_narrow_runs(victim("narrow_libc"));
	watch_to(&live, "narrow_libc", "perf", data, LIST("-w", "counter"));
	assert_int_equal(live.status, 0);
	watch(&live, "narrow_libc", LIST("-w", "counter"));
	run_status(&later, 0, LIST(watchctl(), "report", "-o", "json", data));
	expect_hits(&later, 7);
	expect_callers(hit_at(&later, 0), CALLERS("set", "set", "set", "set"));
	expect_complete(hit_at(&later, 3));
	assert_string_equal(text_of(hit_at(&later, 2), "value_type"), "int");
	assert_string_equal(text_of(hit_at(&later, 2), "stack"),
	    text_of(hit_at(&live, 2), "stack"));
	run_status(&later, 0, LIST(watchctl(), "report", "-o", "json",
	    "--stacks", "once", data));
	assert_int_equal(count_of(&later, "stack"), 7);
}

/* A caller that may be missing is no verdict. */
TEST(verdicts)
{
	static const struct {
		const char *victim, *allow;
		int status;
	} runs[] = {
		{"narrow_libc", "set,add,compare,thread", 0},
		{"narrow_libc", "set,add,compare", 66},
		{"narrow_bare", "main", 120},
		{"narrow_bare", "set", 120},
	};
	struct outcome o;

	skip_unless_narrow_runs(victim("narrow_bare"));
	for (size_t i = 0; i < COUNT(runs); i++) {
		char list[64], *rest = list, *name;
		const char *argv[ARGS] = {"-w", "counter", "--error-exitcode",
		    "66"};
		size_t n = 4;

		(void)snprintf(list, sizeof(list), "%s", runs[i].allow);
		while ((name = strsep(&rest, ",")) != NULL) {
			argv[n++] = "--allow";
			argv[n++] = name;
		}
		watch(&o, runs[i].victim, argv);
		if (o.status != runs[i].status)
			fail_msg("%s, %s: %d: %s", runs[i].victim,
			    runs[i].allow, o.status, o.err);
	}
}

/* The command runs up to its libraries for them; and not at all if there is no
   such symbol in them. */
TEST(symbols_of_libraries)
{
	struct outcome o;

	skip_unless_narrow_runs(victim("narrow_libc"));
	watch(&o, "narrow_libc", LIST("-x", "libc!open", "-n", "1"));
	assert_int_equal(o.status, 0);
	expect_hits(&o, 1);
	watch(&o, "narrow_libc", LIST("-w", "no_such_symbol"));
	assert_int_equal(o.status, 125);
	assert_holds(o.err, "no symbol 'no_such_symbol'");
}

/* Each thread has its own, in front of its control block. */
TEST(thread_local_variables)
{
	struct running r, w;
	struct outcome o;
	char line[256], pid[16], tid[16], spec[32];

	skip_unless_narrow_runs(victim("locals_narrow"));
	start(&r, LIST(victim("locals_narrow"), victim("plug_narrow")));
	hear(&r, line, sizeof(line));
	assert_int_equal(sscanf(line, "%15s %15s", pid, tid), 2);

	(void)snprintf(spec, sizeof(spec), "own+4@%s:4", pid);
	watch_start(&w, LIST(watchctl(), "-w", spec, "-o", "json", "-n", "2",
	    "-p", pid));
	say(&r, "w\n");
	hear(&r, line, sizeof(line));
	finish_status(&w, &o, 0);
	expect_hits(&o, 2);
	assert_int_equal(number_of(hit_at(&o, 0), "tid"), atoi(pid));
	assert_int_equal(number_of(hit_at(&o, 1), "tid"), atoi(tid));
	assert_string_equal(text_of(hit_at(&o, 1), "new"), "0x3");

	watch_start(&w, LIST(watchctl(), "-w", "own", "--stop", "-o", "json",
	    "-n", "3", "-p", pid));
	say(&r, "w\n");
	hear(&r, line, sizeof(line));
	say(&r, "a\n");
	hear(&r, line, sizeof(line));
	finish_status(&w, &o, 0);
	expect_hits(&o, 3);
	assert_int_equal(number_of(hit_at(&o, 0), "tid"), atoi(tid));
	assert_string_equal(text_of(hit_at(&o, 0), "new"), "0x1");
	assert_int_equal(number_of(hit_at(&o, 1), "tid"), atoi(pid));
	expect_function(hit_at(&o, 2), 0, "write_again");
	finish_status(&r, &o, 7);
}

TEST(modules_that_a_process_maps_later)
{
	struct running r, w;
	struct outcome o;
	char line[64], pid[16];

	skip_unless_narrow_runs(victim("opener_narrow"));
	start(&r, LIST(victim("opener_narrow"), "2", victim("plug_narrow"),
	    "wait"));
	hear(&r, line, sizeof(line));
	assert_string_equal(line, "ready");
	(void)snprintf(pid, sizeof(pid), "%d", r.pid);
	watch_start(&w, LIST(watchctl(), "-w", "plug_narrow!plug_state", "-o",
	    "json", "-p", pid));
	say(&r, "\n");
	finish_status(&r, &o, 7);
	finish_status(&w, &o, 0);
	expect_hits(&o, 6);
	expect_function(hit_at(&o, 0), 0, "plug_prepare");
	expect_function(hit_at(&o, 1), 0, "plug_write");
}

static const char *const delivery[] = {"sigtrap", "async", "ptrace"};

static void
deliver(const char *how)
{
	(void)(how != NULL ? setenv("WATCHPOINT_DELIVERY", how, 1) :
	    unsetenv("WATCHPOINT_DELIVERY"));
}

/* The library is the one that is found; that of the other tests is of 64 bits.
   A sanitized watchctl finds none. */
static void
inside_begin(void)
{
	const char *end = strrchr(watchctl(), '/'), *top = getenv("TOP");
	char library[PATH_MAX];

	skip_unless_narrow_runs(victim("narrow_inside"));
	(void)unsetenv("WATCHPOINT_LIBRARY");
	assert_non_null(end);
	(void)snprintf(library, sizeof(library), "%.*s/../lib/narrow/"
	    "libwatchpoint.so.0", (int)(end - watchctl()), watchctl());
	if (top == NULL || access(library, R_OK) == 0)
		return;
	(void)snprintf(library, sizeof(library),
	    "%s/lib/narrow/libwatchpoint.so.0", top);
	(void)setenv("WATCHPOINT_LIBRARY", library, 1);
}

/* The library for 32-bit programs is put into it; what it writes is explained
   by a process of 64 bits. */
TEST(inside)
{
	struct outcome o;

	inside_begin();
	for (size_t i = 0; i < COUNT(delivery); i++) {
		deliver(delivery[i]);
		watch(&o, "narrow_libc", LIST("--inside", "-w", "counter"));
		deliver(NULL);
		expect_counter(&o, false);
	}
}

/* The kernel's writes are seen, too. */
TEST(inside_system_calls)
{
	struct outcome o;

	inside_begin();
	watch(&o, "narrow_libc", LIST("--inside", "-w", "buffer"));
	assert_int_equal(o.status, 0);
	if (!live_features.kernel) {
		print_message("the kernel's accesses may not be watched\n");
		return;
	}
	expect_hits(&o, 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *hit = hit_at(&o, i);

		assert_string_equal(text_of(hit, "origin"), "kernel");
		assert_string_equal(text_of(hit, "syscall"), calls_made[i]);
		assert_int_equal(number_of(hit, "syscall_bytes"), 8);
		assert_int_equal(number_of(hit, "fd"), i == 0 ? 3 : 5);
	}
}

TEST(inside_verdicts)
{
	struct outcome o;

	inside_begin();
	watch(&o, "narrow_libc", LIST("--inside", "-w", "counter",
	    "--error-exitcode", "66", "--allow", "set", "--allow", "add",
	    "--allow", "compare", "--allow", "thread"));
	assert_int_equal(o.status, 0);
	watch(&o, "narrow_libc", LIST("--inside", "-w", "counter",
	    "--error-exitcode", "66", "--allow", "set"));
	assert_int_equal(o.status, 66);
}

/* Such a program with the library in it, alone and with a helper of 64 bits. */
TEST(library)
{
	const char *const argv[] = {victim("narrow_inside"), NULL};
	struct outcome o;

	skip_unless_narrow_runs(argv[0]);
	for (size_t i = 0; i < 2 * COUNT(delivery); i++) {
		deliver(delivery[i / 2]);
		(void)setenv("WATCHPOINT_HELPER", i % 2 == 0 ? watchctl() : "",
		    1);
		run(&o, argv);
		deliver(NULL);
		(void)unsetenv("WATCHPOINT_HELPER");
		/* without one, debug registers are nobody's to set */
		if (i == 5)
			continue;
		if (o.status != 0)
			fail_msg("%s: %d: %s", delivery[i / 2], o.status,
			    o.err);
		assert_holds(o.err, "write");
		assert_holds(o.err, "stray");
		if (i % 2 == 0) {
			assert_holds(o.err, "narrow_inside.c:21");
			assert_holds(o.err, "0 lost");
		}
	}
}

TEST(inside_needs_the_library)
{
	struct outcome o;

	inside_begin();
	(void)setenv("WATCHPOINT_LIBRARY", "/nonexistent", 1);
	watch(&o, "narrow_libc", LIST("--inside", "-w", "counter"));
	(void)unsetenv("WATCHPOINT_LIBRARY");
	assert_int_equal(o.status, 125);
	assert_holds(o.err, "--inside needs libwatchpoint.so.0 for 32-bit "
	    "programs");
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
