/*
 * no_breakpoints: -x where no breakpoint fires, or none is free: uprobes serve.
 * Where breakpoints fire, the tests take all of them.
 */
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "live.h"
#include "no_slots.h"
#include "refuse.h"
#include "uprobes.h"
#include "watching.h"

static bool
possible(void)
{
	return uprobes_work();
}

static void
watch_places(struct running *w, struct target *t, const char *const *options)
{
	const char *argv[ARGS];
	char line[4096];
	size_t n;

	target_start(t, LIST(victim("places")));
	n = append(argv, 0, LIST(watchctl(), "-x", "place0", "-x", "place11",
	    "-o", "json", "-p", t->pid));
	(void)append(argv, n, options);
	watch_hear(w, argv, line);
	assert_holds(line, "\"uprobe\":true");
	assert_lacks(line, "\"slots\":");
}

static void
call(struct target *t, const char *what)
{
	say(&t->run, what);
	(void)target_done(&t->run);
}

TEST(all_threads_of_a_process)
{
	struct target t;
	struct running w;
	struct outcome o;

	watch_places(&w, &t, LIST(NULL));
	call(&t, "threads\n");
	end_all(&w, &t, &o, 4 * 10 * (1 + 12));
	assert_holds(text_of(first_of(&o, "warning"), "text"),
	    "uprobes watch execution, since breakpoints cannot: ");
}

TEST(arguments_and_backtraces)
{
	struct target t;
	struct running w;
	struct outcome o;
	char text[16];

	watch_places(&w, &t, LIST(NULL));
	call(&t, "recurse\n");
	end_all(&w, &t, &o, 11);
	for (int i = 0; i <= 10; i++) {
		const json_t *hit = hit_at(&o, (size_t)i);
		const json_t *arg = json_array_get(json_object_get(hit,
		    "args"), 0);

		for (int k = 0; k <= i; k++)
			expect_function(hit, k, "place11");
		expect_function(hit, -1, "_start");
		(void)snprintf(text, sizeof(text), "%d", 10 - i);
		if (!SANITIZED || arg != NULL)
			assert_string_equal(text_of(arg, "text"), text);
	}
}

TEST(conditions_limits_and_counts)
{
	struct target t;
	struct running w;
	struct outcome o;

	watch_places(&w, &t, LIST("--if", "caller(\"main\") && "
	    "count % 2 == 1"));
	call(&t, "recurse\n");
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	assert_int_equal(count_of(&o, "hit"), 6);

	watch_places(&w, &t, LIST("--each", "2"));
	call(&t, "threads\n");
	finish_status(&w, &o, 0);
	assert_int_equal(count_of(&o, "hit"), 4);
	target_end(&t, 7);

	watch_places(&w, &t, LIST("-n", "3"));
	call(&t, "threads\n");
	finish_status(&w, &o, 0);
	assert_int_equal(count_of(&o, "hit"), 3);
	target_end(&t, 7);

	watch_places(&w, &t, LIST("--count"));
	call(&t, "threads\n");
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    4 * 10 * (1 + 12));
}

/* Behind the push of a register; of the second run the address is the hit's of
   the first. */
TEST(other_places_of_a_function)
{
	char spec[32] = "place11+1";
	struct target t;

	target_start(&t, LIST(victim("places")));
	for (int i = 0; i < 2; i++) {
		struct running w;
		struct outcome o;
		char line[4096];

		watch_hear(&w, LIST(watchctl(), "-x", spec, "-n", "11", "-o",
		    "json", "-p", t.pid), line);
		assert_holds(line, "\"uprobe\":true");
		call(&t, "recurse\n");
		finish_status(&w, &o, 0);
		assert_int_equal(count_of(&o, "hit"), 11);
		expect_function(hit_at(&o, 10), 10, "place11");
		(void)snprintf(spec, sizeof(spec), "%s",
		    text_of(hit_at(&o, 0), "pc"));
	}
	target_end(&t, 7);
}

/* The command is stopped where its libraries are mapped: by a uprobe. */
TEST(functions_of_a_command_and_its_libraries)
{
	struct outcome o;

	run_status(&o, 3, LIST(watchctl(), "-x", "once", "-x",
	    "libc.so.6!malloc", "-o", "json", "-O", "-", "--",
	    victim("arguments_plain")));
	assert_true(count_of(&o, "hit") > 0);
	assert_holds(o.err, " 0 lost");
}

TEST(a_library_that_is_opened_later)
{
	struct outcome o;
	size_t i;
	json_t *hit;

	run_status(&o, 7, LIST(watchctl(), "-x", "plug!plug_write", "-o",
	    "json", "-O", "-", "--", victim("opener"), "2", victim("plug")));
	assert_int_equal(count_of(&o, "hit"), 2 * 2);
	each_hit(&o, i, hit)
		expect_function(hit, 0, "plug_write");
	assert_holds(o.err, " 0 lost");
}

static void
refused(const char *const *options, const char *words)
{
	const char *argv[ARGS];
	struct outcome o;
	size_t n = append(argv, 0, LIST(watchctl()));

	n = append(argv, n, options);
	(void)append(argv, n, LIST("--", victim("places")));
	run_status(&o, 125, argv);
	assert_holds(o.err, words);
	assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
}

/* One line has the reason of both. */
TEST(where_uprobes_are_refused_too)
{
	const char *argv[ARGS];
	struct running w;
	struct outcome o;

	refused(LIST("-x", "place0", "--stop"), "uprobes, which do without "
	    "breakpoints, stop a thread one instruction too late for "
	    "--stop\n");
	refused(LIST("-x", "place11+2"), "are where an instruction surely "
	    "begins: at a function, a line, or another place that its code "
	    "leads to\n");
	run_status(&o, 125, LIST(watchctl(), "-x", "place0", "-w", "calls:8",
	    "--", victim("places")));
	assert_lacks(o.err, "uprobes");
	(void)append(argv, 0, LIST(watchctl(), "-x", "place0", "--",
	    victim("places")));
	start_prepared(&w, argv, be_nobody, 0);
	finish_status(&w, &o, 125);
	assert_holds(o.err, "need root, or CAP_SYS_ADMIN");
}

RUN_TESTS(.possible = possible, .before_all = take_slots,
    .after_all = give_slots)
