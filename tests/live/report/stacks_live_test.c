/*
 * stacks: --stacks once, in each way of watching and for each kind of
 * recording.  Each backtrace is written once, before its first use, and with it
 * every hit contains the same as without the option.
 */
#include "test.h"

#include <sys/stat.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

/* A backtrace, and which of those that have its name. */
static const char *
name_of(const json_t *line, const char *key, char name[64])
{
	(void)snprintf(name, 64, "%s-%lld", text_of(line, key),
	    json_integer_value(json_object_get(line, "variant")));
	return name;
}

/* Put the backtraces back into the hits, and take their lines out.  Result: how
   many there were. */
static size_t
unfold(json_t *lines)
{
	json_t *stacks = json_object(), *line, *stack;
	char name[64];
	size_t i = 0, n;

	while (i < json_array_size(lines)) {
		line = json_array_get(lines, i);
		if (strcmp(text_of(line, "type"), "stack") == 0) {
			assert_null(json_object_get(stacks, name_of(line,
			    "id", name)));
			(void)json_object_set(stacks, name, line);
			(void)json_array_remove(lines, i);
			continue;
		}
		i++;
		if (!is_hit(line))
			continue;
		assert_null(json_object_get(line, "frames"));
		stack = json_copy(json_object_get(stacks, name_of(line,
		    "stack", name)));
		assert_non_null(stack);
		(void)json_object_del(stack, "type");
		(void)json_object_del(stack, "id");
		(void)json_object_del(stack, "variant");
		assert_true(json_array_size(json_object_get(stack,
		    "frames")) > 0);
		(void)json_object_update(line, stack);
		json_decref(stack);
	}
	n = json_object_size(stacks);
	json_decref(stacks);
	return n;
}

/* The recording, with and without the option.  Result: how many backtraces. */
static size_t
compare_reports(const char *data)
{
	struct outcome each, once;
	size_t i, n;
	json_t *line;

	run(&each, LIST(watchctl(), "report", "-o", "json",
	    scratch_path(data)));
	run(&once, LIST(watchctl(), "report", "-o", "json", "--stacks", "once",
	    scratch_path(data)));
	assert_int_equal(each.status, 0);
	assert_int_equal(once.status, 0);
	assert_null(first_of(&each, "stack"));
	assert_true(strlen(once.out) < strlen(each.out) / 2);
	n = unfold(once.lines);
	json_array_foreach(once.lines, i, line) {
		(void)json_object_del(line, "variant");
		if (!json_equal(line, json_array_get(each.lines, i)))
			fail_msg("line %zu differs", i);
	}
	assert_int_equal(i, json_array_size(each.lines));
	return n;
}

/* Have threads of the victim write; the report goes into a file. */
static void
watch_counter(const char *mode, const char *form, const char *file,
    const char *once)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), mode, "-w", "counter", "-w", "filled", "-o",
	    form, "-O", scratch_path(file), once == NULL ? "--user-only" :
	    "--stacks=once", "--", victim("counter"), "2", "50"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	assert_holds(o.err, " 0 lost");
}

TEST(each_way_of_watching)
{
	static const char *const modes[] = {"-n200", "--stop", "--inside"};

	for (size_t i = 0; i < COUNT(modes); i++) {
		struct outcome o;
		json_t *hit;
		size_t k;

		watch_counter(modes[i], "json", "report", "once");
		memset(&o, 0, sizeof(o));
		outcome_take(&o, scratch_path("report"));
		/* of each thread, or of both; and of the system call, where
		   it is seen */
		assert_in_range(unfold(o.lines), 2, 3);
		assert_in_range(count_of(&o, "hit"), 100, 101);
		json_array_foreach(o.lines, k, hit) {
			if (is_hit(hit) && number_of(hit, "watch") == 1) {
				expect_function(hit, 0, "bump");
				expect_function(hit, 15, "level15");
			}
			assert_true(!is_hit(hit) ||
			    json_array_size(json_object_get(hit, "frames")) >
			    1);
		}
	}
}

TEST(recordings)
{
	watch_counter("-n200", "perf", "data", NULL);
	assert_in_range(compare_reports("data"), 1, 3);
}

/* The same program twice, at addresses of its own each time. */
TEST(several_processes)
{
	struct target t[2];
	struct running w;
	struct outcome o;
	char pids[40];
	struct stat st;

	for (size_t i = 0; i < 2; i++)
		target_start(&t[i], LIST(victim("counter"), "1", "50"));
	(void)snprintf(pids, sizeof(pids), "%s,%s", t[0].pid, t[1].pid);
	start(&w, LIST(watchctl(), "-w", "counter", "-o", "perf", "-O",
	    scratch_path("two"), "-p", pids));
	while (stat(scratch_path("two"), &st) < 0 || st.st_size == 0)
		(void)usleep(1000);
	for (size_t i = 0; i < 2; i++) {
		say(&t[i].run, "go\nend\n");
		finish(&t[i].run, &o);
	}
	finish(&w, &o);
	assert_holds(o.err, "100 hits, 100 reported, 0 lost");
	assert_true(compare_reports("two") >= 2);
}

/* What --on-hit exec gets of a hit is whole by itself. */
TEST(a_command_gets_the_frames)
{
	struct running w;
	struct outcome o;
	json_t *hit;
	char *text;

	start(&w, LIST(watchctl(), "-w", "counter", "-o", "json", "--stacks",
	    "once", "-O", scratch_path("report"), "-n", "1", "--on-hit",
	    "exec printf %s \"$WATCHCTL_HIT\" >&2", "--", victim("counter"),
	    "1", "1"));
	say(&w, "go\nend\n");
	finish(&w, &o);
	text = strchr(o.err, '{');
	assert_non_null(text);
	hit = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(hit);
	expect_function(hit, 0, "bump");
	json_decref(hit);
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
