/*
 * summary: -o summary and -o summary,json say what each backtrace did, in each
 * way of watching and of a recording; and --count what each thread did.
 */
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"
#include "bpf/thread_counter.h"
#include "proc/proc.h"
#include "scratch.h"
#include "watching.h"

/* The victim's writes: half by main, half by settle. */
enum { WRITES = 200, HALF = WRITES / 2 };

static const char *const modes[] = {"-n1000000", "--stop", "--inside"};

/* Watch a variable of the victim; the report, of this form, goes into a
   file. */
static void
watch(struct outcome *o, const char *form, const char *variable,
    const char *const *options)
{
	static const char *argv[ARGS];
	struct running w;
	size_t n = append(argv, 0, LIST(watchctl(), "-w", variable, "-o", form,
	    "-O", scratch_path("report")));

	n = append(argv, n, options);
	(void)append(argv, n, LIST("--", victim("signs")));
	start(&w, argv);
	say(&w, "go\nend\n");
	finish_status(&w, o, 7);
}

/* The line of this type whose backtrace has a function. */
static const json_t *
stack_with(const struct outcome *o, const char *function, bool has)
{
	json_t *line, *frame;
	size_t i, k;

	json_array_foreach(o->lines, i, line) {
		bool found = false;

		if (strcmp(text_of(line, "type"), "stack") != 0)
			continue;
		json_array_foreach(json_object_get(line, "frames"), k, frame)
			found = found || strcmp(maybe_text(frame, "function"),
			    function) == 0;
		if (found == has)
			return line;
	}
	fail_msg("no backtrace with%s %s", has ? "" : "out", function);
	return NULL;
}

static const json_t *
summary_of(const struct outcome *o, const json_t *stack)
{
	json_t *line;
	size_t i;

	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "summary") == 0 &&
		    strcmp(text_of(line, "stack"), text_of(stack, "id")) == 0)
			return line;
	fail_msg("no summary of %s", text_of(stack, "id"));
	return NULL;
}

/* values NULL: there are none. */
static void
expect_row(const json_t *row, json_int_t count, const char *const *values)
{
	static const char *const names[] = {"first", "last", "min", "max"};
	const json_t *has = json_object_get(row, "values");

	assert_int_equal(number_of(row, "count"), count);
	assert_int_equal(json_array_size(json_object_get(row, "threads")), 1);
	assert_true(json_number_value(json_object_get(row, "first")) <
	    json_number_value(json_object_get(row, "last")));
	if (values == NULL) {
		assert_null(has);
		return;
	}
	for (size_t i = 0; i < COUNT(names); i++)
		assert_string_equal(text_of(has, names[i]), values[i]);
}

/* Nothing but start, stack, summary and end lines; and these are right. */
static void
expect_rows(const struct outcome *o, const char *const *of_settle,
    const char *const *of_main)
{
	const json_t *end = first_of(o, "end");

	if (end == NULL)
		fail_msg("no account: %s", o->err);
	assert_int_equal(count_of(o, "start"), 1);
	assert_int_equal(count_of(o, "stack"), 2);
	assert_int_equal(count_of(o, "summary"), 2);
	assert_int_equal(json_array_size(o->lines), 6);
	assert_int_equal(number_of(end, "hits"), WRITES);
	assert_int_equal(number_of(end, "reported"), WRITES);
	assert_int_equal(number_of(end, "lost"), 0);
	expect_row(summary_of(o, stack_with(o, "settle", true)), HALF,
	    of_settle);
	expect_row(summary_of(o, stack_with(o, "settle", false)), HALF,
	    of_main);
}

/* Half are -4, -2, ... 4 and half are -5, -3, ... 3: of a signed type, of one
   without a sign, of an enumeration. */
static const struct {
	const char *variable, *of_settle[4], *of_main[4];
} cases[] = {
	{"balance", {"0xfffffffc", "0x4", "0xfffffffc", "0x4"},
	    {"0xfffffffb", "0x3", "0xfffffffb", "0x3"}},
	{"total", {"0xfffffffc", "0x4", "0x0", "0xfffffffe"},
	    {"0xfffffffb", "0x3", "0x1", "0xffffffff"}},
	{"tiny", {"0xfc", "0x4", "0xfc", "0x4"},
	    {"0xfb", "0x3", "0xfb", "0x3"}},
	{"state", {"0x0", "0x4", "0x0", "0x4"}, {"0x0", "0x3", "0x0", "0x3"}},
};

TEST(the_same_rows_in_each_way_of_watching)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			struct outcome o;

			if (i % 2 != m % 2)
				continue;
			watch(&o, "summary,json", cases[i].variable,
			    LIST(modes[m]));
			outcome_take(&o, scratch_path("report"));
			expect_rows(&o, cases[i].of_settle, cases[i].of_main);
		}
	}
}

TEST(and_of_a_recording)
{
	struct outcome o;

	watch(&o, "perf", "balance", LIST("-n1000000"));
	(void)rename(scratch_path("report"), scratch_path("data"));
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "summary,json",
	    scratch_path("data")));
	expect_rows(&o, cases[0].of_settle, cases[0].of_main);
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "summary",
	    scratch_path("data")));
	assert_holds(o.out, "1: ");
	assert_holds(o.out, "  -4 .. 4, from -4 to 4  ");
	assert_holds(o.out, "  -5 .. 3, from -5 to 3  ");
}

/* What the kernel writes is read later, which proves nothing. */
TEST(values_that_are_not_proved_are_left_out)
{
	for (unsigned stop = 0; stop < 2; stop++) {
		struct running w;
		struct outcome o;

		start(&w, LIST(watchctl(), stop ? "--stop" : "-n9", "-w",
		    "filled", "-o", "summary,json", "-O",
		    scratch_path("report"), "--", victim("counter"), "1", "1"));
		say(&w, "go\nend\n");
		finish(&w, &o);
		outcome_take(&o, scratch_path("report"));
		assert_int_equal(json_object_get(first_of(&o, "summary"),
		    "values") != NULL, stop);
	}
}

/* The table and its backtraces are all that there is. */
TEST(for_a_reader)
{
	struct outcome o;
	char *text;

	watch(&o, "summary", "balance", LIST("--if", "new < 0"));
	text = scratch_read("report", NULL);
	assert_lacks(text, "-> ");
	assert_holds(text, "watching balance ");
	assert_holds(text, "balance: 100 hits, 2 backtraces\n");
	assert_holds(text, "  60.0%  ");
	assert_holds(text, "  -5 .. -1, from -5 to -1  #1 ");
	assert_holds(text, "\n#1  write in store ");
	assert_holds(text, "\n#2  write in store ");
	assert_holds(text, "  settle ");
	assert_holds(o.err, "200 hits, 100 reported, 0 lost, 100 rejected");
}

/* --- --count --- */

/* Whether a program can count, which is all that is needed. */
static bool
needs_programs(void)
{
	const int map = wp_thread_counter_map(1);
	const int program = map < 0 ? map : wp_thread_counter_load(map, 0,
	    NULL, NULL);

	(void)unsetenv("WATCHCTL_DELIVERY");
	if (program < 0)
		print_message("a BPF program that counts: %s\n",
		    strerror(-program));
	else
		(void)close(program);
	if (map >= 0)
		(void)close(map);
	return program >= 0;
}
#define NEEDS_PROGRAMS if (!needs_programs()) skip()

/* Lines of threads; the counts of those that have none are added to
   *unknown. */
static size_t
thread_counts(const struct outcome *o, json_int_t each, json_int_t *unknown)
{
	json_t *line;
	size_t i, n = 0;

	*unknown = 0;
	json_array_foreach(o->lines, i, line) {
		if (strcmp(text_of(line, "type"), "count") != 0)
			continue;
		if (json_object_get(line, "tid") == NULL) {
			*unknown += number_of(line, "count");
			continue;
		}
		assert_int_equal(number_of(line, "count"), each);
		n++;
	}
	return n;
}

/* Each thread's own, whether it has ended or not, also while all write flat
   out. */
TEST(counts_of_threads)
{
	static const struct {
		const char *threads, *writes;
		size_t nthreads;
		json_int_t nwrites;
	} all[] = {
		{"1", "30", 1, 30}, {"4", "5000", 4, 5000},
		{"40", "3", 40, 3},
	};

	NEEDS_PROGRAMS;
	for (size_t i = 0; i < COUNT(all); i++) {
		const json_int_t n = (json_int_t)all[i].nthreads *
		    all[i].nwrites;
		struct running w;
		struct outcome o;
		json_int_t unknown;

		start(&w, LIST(watchctl(), "--count", "-w", "counter", "-o",
		    "json", "-O", scratch_path("report"), "--",
		    victim("counter"), all[i].threads, all[i].writes));
		say(&w, "go\nend\n");
		finish_status(&w, &o, 7);
		outcome_take(&o, scratch_path("report"));
		assert_int_equal(number_of(first_of(&o, "end"), "hits"), n);
		assert_int_equal(thread_counts(&o, all[i].nwrites, &unknown),
		    all[i].nthreads);
		assert_int_equal(unknown, 0);
	}
}

/* What the kernel writes is the caller's, and of a running process, too. */
TEST(counts_of_a_running_process)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_t *line;
	size_t i, n, filled = 0;

	NEEDS_PROGRAMS;
	target_start(&t, LIST(victim("counter"), "3", "200"));
	watch_start(&w, LIST(watchctl(), "--count", "-w", "counter", "-w",
	    "filled", "-o", "json", "-p", t.pid));
	say(&t.run, "go\nend\n");
	finish(&t.run, &o);
	finish_status(&w, &o, 0);
	n = 0;
	json_array_foreach(o.lines, i, line) {
		if (strcmp(text_of(line, "type"), "count") != 0)
			continue;
		assert_true(number_of(line, "tid") > 0);
		assert_int_equal(number_of(line, "pid"), atoi(t.pid));
		if (number_of(line, "watch") == 2)
			filled++;
		else
			assert_int_equal(number_of(line, "count"), 200);
		n++;
	}
	assert_int_equal(n, 4);
	assert_int_equal(filled, 1);
}

/* The only child of a process; 0: it has none. */
static int
child_of(pid_t pid)
{
	struct wp_proc_status status;
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	int child = 0;

	assert_non_null(dir);
	while (child == 0 && (entry = readdir(dir)) != NULL)
		if (atoi(entry->d_name) > 0 &&
		    wp_proc_status(atoi(entry->d_name), &status) == 0 &&
		    status.parent == pid)
			child = atoi(entry->d_name);
	(void)closedir(dir);
	return child;
}

/* As in a container: its threads have other ids there. */
TEST(counts_of_threads_in_another_pid_namespace)
{
	const ino_t first = 0xeffffffc;
	struct running v, w;
	struct outcome o;
	char line[256], pid[16];
	json_int_t unknown;
	struct stat ns;

	NEEDS_PROGRAMS;
	if (geteuid() != 0 || stat("/proc/self/ns/pid", &ns) != 0 ||
	    ns.st_ino != first) {
		print_message("not root in the machine's pid namespace\n");
		skip();
	}
	start(&v, LIST("/usr/bin/unshare", "--pid", "--fork", victim("counter"), "2",
	    "50"));
	hear(&v, line, sizeof(line));
	(void)snprintf(pid, sizeof(pid), "%d", child_of(v.pid));
	watch_start(&w, LIST(watchctl(), "--count", "-w", "counter", "-o",
	    "json", "-p", pid));
	say(&v, "go\nend\n");
	finish(&v, &o);
	finish_status(&w, &o, 0);
	assert_int_equal(thread_counts(&o, 50, &unknown), 2);
	assert_int_equal(unknown, 0);
}

/* Without BPF it is not known whose they are. */
TEST(counts_without_bpf)
{
	struct running w;
	struct outcome o;
	json_int_t unknown;

	start(&w, LIST(watchctl(), "--count", "--delivery", "ring", "-w",
	    "counter", "-o", "json", "-O", scratch_path("report"), "--",
	    victim("counter"), "2", "50"));
	say(&w, "go\nend\n");
	finish(&w, &o);
	outcome_take(&o, scratch_path("report"));
	assert_int_equal(thread_counts(&o, 50, &unknown), 0);
	assert_int_equal(unknown, 100);
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
