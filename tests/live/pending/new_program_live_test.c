/*
 * new_program: SPECs are resolved anew in each program that a process under
 * watch executes (victim/relay), and programs without them are named.
 */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "live.h"
#include "scratch.h"
#include "uprobes.h"
#include "watching.h"

#define SKIP "--if-missing", "skip"
#define VOUCHED "--allow", "prepare", "--allow", "bump", "--error-exitcode", \
	"66"

static const char *const modes[] = {"--user-only", "--stop"};

/* Run a shell's script, with the victim as $0, under watch. */
static void
run_script(struct outcome *o, const char *const *options, const char *script)
{
	const char *argv[ARGS], *report = scratch_path("report");
	size_t n;

	n = append(argv, 0, LIST(watchctl(), "-w", "counter", "-o", "json",
	    "-O", report));
	n = append(argv, n, options);
	(void)append(argv, n, LIST("--", "/bin/sh", "-c", script,
	    victim("relay")));
	run(o, argv);
	outcome_take(o, report);
}

/* Changes of watches with this event, of programs whose path ends so. */
static size_t
count_events(const struct outcome *o, const char *event, const char *program)
{
	size_t i, n = 0;
	json_t *line;

	json_array_foreach(o->lines, i, line) {
		const char *path = maybe_text(line, "program");
		const size_t len = strlen(path), end = strlen(program);

		n += strcmp(maybe_text(line, "event"), event) == 0 &&
		    len >= end && strcmp(path + len - end, program) == 0;
	}
	return n;
}

/* Hits, each in a process with an armed watch, and with the values of that. */
static void
expect_counts(const struct outcome *o, unsigned processes, unsigned each)
{
	long expected = 0;
	pid_t before = 0;
	size_t i, n = 0;
	json_t *hit;

	each_hit(o, i, hit) {
		const pid_t pid = (pid_t)number_of(hit, "pid");
		char value[32];

		expected = pid == before ? expected + 1 : 1;
		before = pid;
		(void)snprintf(value, sizeof(value), "0x%lx", expected);
		assert_string_equal(text_of(hit, "new"), value);
		assert_int_equal(number_of(hit, "watch"), 1);
		expect_function(hit, 0, expected == 1 ? "prepare" : "bump");
		n++;
	}
	assert_int_equal(n, processes * each);
}

TEST(a_shell_executes_what_is_watched)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		run_script(&o, LIST(modes[m], SKIP, VOUCHED),
		    "exec env \"$0\" 3");
		if (o.status != 7)
			fail_msg("%s: %d: %s", modes[m], o.status, o.err);
		expect_counts(&o, 1, 4);
		assert_int_equal(count_events(&o, "missing", "sh"), 1);
		assert_int_equal(count_events(&o, "missing", "env"), 1);
		assert_int_equal(count_events(&o, "armed", "relay"), 1);
	}
}

TEST(a_symbol_that_is_not_mapped_yet_is_pending)
{
	struct outcome o;
	const json_t *watch;

	run_script(&o, LIST(SKIP), "exec \"$0\" 1");
	watch = json_array_get(json_object_get(first_of(&o, "start"),
	    "watches"), 0);
	assert_true(json_is_true(json_object_get(watch, "pending")));
	assert_null(json_object_get(watch, "addr"));
	assert_int_equal(number_of(watch, "id"), 1);
}

/* Each program of a suite, those that a child's child executes as well. */
TEST(a_suite_of_many_programs)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		run_script(&o, LIST(modes[m], "-f", SKIP, VOUCHED),
		    "true; \"$0\" 2; (/bin/true; \"$0\" 2); "
		    "/bin/sh -c '/bin/true; \"$0\" 2' \"$0\"; /bin/true");
		if (o.status != 0)
			fail_msg("%s: %d: %s", modes[m], o.status, o.err);
		expect_counts(&o, 3, 3);
		assert_int_equal(count_events(&o, "armed", "relay"), 3);
		assert_int_equal(count_events(&o, "missing", "true"), 3);
		assert_int_equal(number_of(account_of(&o), "lost"), 0);
	}
}

/* No hit is from before its watch. */
TEST(what_is_armed_hits_later)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		double armed = -1;
		struct outcome o;
		json_t *line;
		size_t i;

		run_script(&o, LIST(modes[m], SKIP), "exec \"$0\" 20");
		json_array_foreach(o.lines, i, line)
			if (strcmp(maybe_text(line, "event"), "armed") == 0)
				armed = json_real_value(json_object_get(line,
				    "time"));
		assert_true(armed > 0);
		each_hit(&o, i, line)
			assert_true(json_real_value(json_object_get(line,
			    "time")) >= armed);
	}
}

TEST(without_f_only_the_command_itself)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		run_script(&o, LIST(modes[m], SKIP),
		    "\"$0\" 2; exec \"$0\" 2");
		assert_int_equal(o.status, 7);
		expect_counts(&o, 1, 3);
	}
}

TEST(a_watched_program_executes_another)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "--stop", "-w", "counter", "-o", "json", "-O",
	    "-", VOUCHED, "--", victim("relay"), "2", victim("relay"), "2"));
	if (o.status != 7)
		fail_msg("%d: %s", o.status, o.err);
	assert_int_equal(count_of(&o, "hit"), 6);
	assert_int_equal(count_events(&o, "armed", "relay"), 1);
	assert_holds(o.err, "6 hits, 6 reported, 0 lost");
}

/* The child began as a copy of the watched program, and has mappings of its own
   now. */
TEST(a_child_of_a_watched_program_executes_another)
{
	struct outcome o;
	size_t i, n = 0;
	json_t *hit;

	run(&o, LIST(watchctl(), "--stop", "-f", "-w", "counter", "-o", "json",
	    "-O", "-", VOUCHED, "--", victim("relay"), "-2", victim("relay"),
	    "2"));
	if (o.status != 7)
		fail_msg("%d: %s", o.status, o.err);
	assert_int_equal(count_of(&o, "hit"), 6);
	assert_int_equal(count_events(&o, "armed", "relay"), 1);
	each_hit(&o, i, hit)
		expect_function(hit, 0, n++ % 3 == 0 ? "prepare" : "bump");
}

TEST(a_program_without_it_is_doubted)
{
	struct outcome o;

	run_status(&o, 120, LIST(watchctl(), "--stop", "-w", "counter", VOUCHED,
	    "--", victim("relay"), "2", "/bin/true"));
	assert_holds(o.err, "true has no counter");
}

/* One that is watched is not traced, and so not caught as it executes
   another. */
TEST(what_a_watched_program_executes_is_doubted)
{
	static const char *const scripts[] = {
		"\"$0\" 2 \"$0\" 2", "exec \"$0\" 2 /bin/true",
	};

	for (size_t i = 0; i < 2; i++) {
		struct outcome o;

		run_script(&o, LIST("-f", SKIP, VOUCHED), scripts[i]);
		if (o.status != 120 || strstr(o.err,
		    "executed another program, which was not watched") == NULL)
			fail_msg("%s: %d: %s", scripts[i], o.status, o.err);
		expect_counts(&o, 1, 3);
	}
}

/* Watch for so long what is executed quickly, and another program after that.
   Result: whether it came so far. */
static bool
is_doubted_after(const char *seconds, const char *sleeps)
{
	char script[128];
	struct outcome o;
	bool whole;

	(void)snprintf(script, sizeof(script), "\"$0\" 1 \"$0\" 0; \"$0\" 1; "
	    "exec sleep %s", sleeps);
	run_script(&o, LIST("-f", "-t", seconds, SKIP, VOUCHED), script);
	whole = count_of(&o, "hit") > 2;
	if (!whole)
		print_message("not whole in %s s: %s", seconds, o.err);
	if (whole && (o.status != 120 || strstr(o.err, "executed another "
	    "program, which was not watched") == NULL))
		fail_msg("%d: %s", o.status, o.err);
	return whole;
}

/* Also when that has ended before anybody could see it, and the watch goes on.
   A busy machine may take longer to come so far. */
TEST(what_a_watched_program_executes_quickly_is_doubted)
{
	static const char *const seconds[] = {"0.5", "4", "32", "128"};
	static const char *const longer[] = {"0.6", "4.1", "32.1", "128.1"};

	for (size_t i = 0; !is_doubted_after(seconds[i], longer[i]); i++)
		assert_true(i + 1 < COUNT(seconds));
	assert_true(is_doubted_after("600", "0"));
}

TEST(nothing_was_ever_watched)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		struct outcome o;

		run_script(&o, LIST(modes[m], SKIP, VOUCHED), "exit 0");
		assert_int_equal(o.status, 120);
		assert_holds(o.err, "nothing was ever watched");
	}
}

/* One that cannot be watched, for want of slots, is left alone: the next one is
   watched as if it had not been. */
TEST(a_program_that_cannot_be_watched)
{
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct outcome o;

		run(&o, LIST(watchctl(), modes[i], "-f", SKIP, "-x",
		    "places.c:103", "-x", "places.c:103", "-x", "combine",
		    "-w", "counter", "-o", "json", "--", "/bin/sh", "-c",
		    "$0; $1 2", victim("arguments_plain"), victim("relay")));
		/* how many there are is others' business, too */
		if (o.status != 7 || strstr(o.err, "which is not watched: the "
		    "watches take ") == NULL ||
		    strstr(o.err, " slots together") == NULL ||
		    strstr(o.err, "\"hits\":3,\"reported\":3,\"lost\":0") ==
		    NULL)
			fail_msg("%s: status %d: %s", modes[i], o.status,
			    o.err);
	}
}

/* A process that a shell leaves behind when it ends. */
static pid_t
left_behind(struct running *w)
{
	struct wp_proc_status sleeper, shell;
	char line[64];
	pid_t pid;

	hear(w, line, sizeof(line));
	assert_true((pid = atoi(line)) > 0);
	do {
		assert_int_equal(wp_proc_status(pid, &sleeper), 0);
	} while (wp_proc_status(sleeper.parent, &shell) == 0 &&
	    shell.parent == w->pid && usleep(1000) == 0);
	return pid;
}

/* Then nobody else is there whom a signal to watchctl could be meant for. */
TEST(signals_end_it_when_its_command_has_ended)
{
	static const char leaves_one[] =
	    "sleep 600 <&- >&- 2>&- & echo $!; exit 7";
	static const int signals[] = {SIGINT, SIGTERM};

	for (size_t i = 0; i < COUNT(modes) * COUNT(signals); i++) {
		struct running w;
		struct outcome o;
		pid_t pid;

		start(&w, LIST(watchctl(), modes[i / COUNT(signals)], "-f",
		    SKIP, "-w", "counter", "--", "/bin/sh", "-c", leaves_one));
		pid = left_behind(&w);
		for (unsigned ms = 0; !has_ended(w.pid); ms += 10) {
			assert_true(ms < LIVE_PATIENCE_MS);
			(void)kill(w.pid, signals[i % COUNT(signals)]);
			(void)usleep(10000);
		}
		finish(&w, &o);
		if (o.status != 7)
			fail_msg("%zu: status %d: %s", i, o.status, o.err);
		assert_int_equal(wp_proc_tracer(pid), 0);
		assert_int_equal(kill(pid, SIGKILL), 0);
	}
}

/* A program that holds slots of its own, which outlive its execve(2). */
static void
make_holder(void)
{
	scratch_write("holder.c", "#include <linux/hw_breakpoint.h>\n"
	    "#include <linux/perf_event.h>\n#include <stdlib.h>\n"
	    "#include <sys/syscall.h>\n#include <unistd.h>\n"
	    "static long word;\n"
	    "int main(int argc, char **argv) {\n"
	    "struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT, "
	    ".size = sizeof(attr), .bp_type = HW_BREAKPOINT_W, .bp_addr = "
	    "(unsigned long)&word, .bp_len = 8, .exclude_kernel = 1};\n"
	    "for (int n = argc > 1 ? atoi(argv[1]) : 0; n > 0; n--)\n"
	    "if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0)\n"
	    "return 1;\n"
	    "return execv(argv[2], argv + 2); }\n");
	scratch_run("gcc -o holder holder.c");
	scratch_write("own.c", "__thread long own; long counter;\n"
	    "int main(void) { own = 1; counter = 2; return 7; }\n");
	scratch_run("gcc -g -o own own.c");
}

/* Where the program's beginning is to be stopped, uprobes serve; where they are
   not permitted, the message names the slots, as it does for the watch. */
TEST(others_hold_the_slots)
{
	static const struct {
		const char *without, *n, *spec, *says;
	} rows[] = {
		{"-wake_alarm", "3", "own", "\n#1   write  own "},
		{"-wake_alarm", "4", "own", ", which is not watched: no free slot "
		 "in thread "},
		{"-wake_alarm", "4", "own", ": 1 of the processor's 4 are wanted, "
		 "and other perf events hold the rest"},
		{"-sys_admin", "3", "own", ": 2 of the processor's 4 are "
		 "wanted, to stop it when its libraries are mapped, and other "
		 "perf events hold the rest (see what runs perf, gdb or "
		 "watchctl on it); uprobes, which take none, need root"},
		{"-wake_alarm", "3", "counter", "\n#1   write  counter "},
	};
	char without[64];
	struct outcome o;

	NEEDS_UPROBES;
	make_holder();
	for (size_t i = 0; i < COUNT(rows); i++) {
		(void)snprintf(without, sizeof(without), "--bounding-set=%s",
		    rows[i].without);
		run(&o, LIST("/usr/bin/env", "setpriv", without, watchctl(),
		    SKIP, "-w", rows[i].spec, "--",
		    scratch_path("holder"), rows[i].n, scratch_path("own")));
		if (o.status != 7 || strstr(o.err, rows[i].says) == NULL)
			fail_msg("%s %s %s: %d: %s", rows[i].without,
			    rows[i].n, rows[i].spec, o.status, o.err);
	}
}

/* Wait until somebody opens a pipe for reading, who gets nothing to read. */
static int
open_for_reader(const char *path)
{
	int fd = -1;

	for (unsigned ms = 0; fd < 0 && ms < LIVE_PATIENCE_MS; ms++) {
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		(void)usleep(1000);
	}
	assert_true(fd >= 0);
	return fd;
}

/* A program whose loader waits for a library, which a pipe stands for, does not
   keep watchctl from what it is told. */
TEST(a_loader_that_waits)
{
	const char *path = scratch_path("pipe");

	assert_int_equal(mkfifo(path, 0600), 0);
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct running w;
		struct outcome o;
		int fd;

		start(&w, LIST(watchctl(), modes[i], SKIP, "-w", "nothing",
		    "--", "/bin/sh", "-c", "LD_PRELOAD=$1 exec \"$0\" 1",
		    victim("relay"), path));
		fd = open_for_reader(path);
		assert_int_equal(kill(w.pid, SIGTERM), 0);
		finish(&w, &o);
		if (o.status != 128 + SIGTERM)
			fail_msg("%s: status %d: %s", modes[i], o.status,
			    o.err);
		(void)close(fd);
	}
}

/* It is not waited for without end, either: others may be waiting for us. */
TEST(a_loader_that_waits_long)
{
	const char *path = scratch_path("slow");
	struct running w;
	struct outcome o;
	char line[64];
	pid_t pid;
	int fd;

	if (getenv("THOROUGH") == NULL)
		return;		/* it takes ten seconds */
	assert_int_equal(mkfifo(path, 0600), 0);
	start(&w, LIST(watchctl(), "--stop", SKIP, VOUCHED, "-w", "nothing",
	    "--", "/bin/sh", "-c", "echo $$; LD_PRELOAD=$1 exec \"$0\" 1",
	    victim("relay"), path));
	hear(&w, line, sizeof(line));
	pid = (pid_t)atol(line);
	fd = open_for_reader(path);
	for (unsigned ms = 0; ms < LIVE_PATIENCE_MS && wp_proc_tracer(pid) != 0;
	    ms++)
		(void)usleep(1000);
	assert_int_equal(wp_proc_tracer(pid), 0);
	(void)close(fd);
	finish(&w, &o);
	if (o.status != 120 ||
	    strstr(o.err, "its dynamic loader was not done") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

/* Whatever watchctl is doing, the programs go on, and end as they would. */
TEST(watchctl_is_killed)
{
	static const char script[] =
	    "i=0; while [ $i -lt 60 ]; do /bin/true || exit 1; i=$((i+1)); "
	    "done; echo 5 >\"$1\"";

	for (size_t i = 0; i < COUNT(modes); i++) {
		const char *file = scratch_path("done"), *argv[ARGS];
		struct running w;
		char text[8] = "";
		FILE *f = NULL;
		int status;

		(void)remove(file);
		(void)append(argv, 0, LIST(watchctl(), modes[i], "-f",
		    SKIP, "-w", "counter", "-o", "json", "-O", "-", "--",
		    "/bin/sh", "-c", script, "sh", file));
		start(&w, argv);
		await(w.out, "\"missing\"");
		(void)usleep(20000);
		assert_int_equal(kill(w.pid, SIGKILL), 0);
		assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
		for (unsigned ms = 0; ms < LIVE_PATIENCE_MS && (f == NULL ||
		    fgets(text, sizeof(text), f) == NULL); ms++) {
			if (f != NULL)
				(void)fclose(f);
			(void)usleep(1000);
			f = fopen(file, "r");
		}
		assert_string_equal(text, "5\n");
		(void)fclose(f);
		(void)close(w.in);
		(void)close(w.out);
		(void)close(w.err);
	}
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
