/*
 * hotplug: a processor is taken offline and brought back while a program is
 * watched; another comes online only then.
 *
 * For some tenths of a second the machine has one processor less.  Whatever
 * happens to the test, another process brings it back.
 */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

static int cpu = -1;		/* that goes */
static int watchman[2];		/* the pipe whose end gives it back */
static pid_t giver;

static int
switch_cpu(bool on)
{
	char path[64];
	int fd, err = 0;

	(void)snprintf(path, sizeof(path),
	    "/sys/devices/system/cpu/cpu%d/online", cpu);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
		return -errno;
	if (write(fd, on ? "1" : "0", 1) != 1)
		err = -errno;
	(void)close(fd);
	return err;
}

/* When the test ends, or takes too long. */
static void
give_back(void)
{
	struct pollfd end = {.fd = watchman[0], .events = POLLIN};

	(void)close(watchman[1]);
	(void)setsid();
	(void)poll(&end, 1, LIVE_PATIENCE_MS);
	_exit(switch_cpu(true) == 0 ? 0 : 1);
}

/* The last one, not the one that has all the interrupts. */
static int
choose(void **state)
{
	cpu_set_t all;
	int err;

	(void)state;
	if (sched_getaffinity(0, sizeof(all), &all) != 0 ||
	    pipe2(watchman, O_CLOEXEC) != 0)
		return -1;
	for (int i = 1; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all))
			cpu = i;
	if (cpu < 0 || (giver = fork()) < 0)
		return cpu < 0 ? 0 : -1;
	if (giver == 0)
		give_back();
	if ((err = switch_cpu(false)) == 0)
		return switch_cpu(true);
	print_message("processor %d cannot be taken offline: %s\n", cpu,
	    strerror(-err));
	cpu = -1;
	return 0;
}

static int
restore(void **state)
{
	int status = 0;

	(void)state;
	(void)close(watchman[1]);
	if (giver > 0 && waitpid(giver, &status, 0) != giver)
		return -1;
	return cpu < 0 ? 0 : status;
}

static bool
can_switch(void)
{
	if (cpu < 0)
		print_message("/sys/devices/system/cpu: no processor can be "
		    "taken offline\n");
	return cpu >= 0;
}

static void
bind_to_cpu(pid_t pid)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	assert_int_equal(sched_setaffinity(pid, sizeof(only), &only), 0);
}

static void
watch_on_it(const char *mode, bool before)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_int_t done;
	size_t i;
	json_t *line;

	if (!before)
		assert_int_equal(switch_cpu(false), 0);
	target_start(&t, LIST(victim("acts"), "mix", "5"));
	watch_target(&w, &t, "-w", "word", mode);
	if (before)
		assert_int_equal(switch_cpu(false), 0);
	assert_int_equal(switch_cpu(true), 0);
	bind_to_cpu(t.run.pid);
	done = 4 * target_act(&t);	/* stores and increments */
	target_end(&t, 7);
	finish(&w, &o);
	assert_lacks(o.err, "warning");
	if (mode != NULL && strcmp(mode, "--count") == 0)
		assert_int_equal(number_of(first_of(&o, "end"), "hits"), done);
	else
		expect_hits(&o, done);
	json_array_foreach(o.lines, i, line)
		if (is_hit(line))
			assert_int_equal(number_of(line, "cpu"), cpu);
}

TEST(a_new_processor_is_watched_at_once)
{
	static const char *const modes[] = {NULL, "--count", "--stop", "-f"};

	if (!can_switch())
		skip();
	for (size_t i = 0; i < COUNT(modes); i++) {
		watch_on_it(modes[i], false);
		watch_on_it(modes[i], true);
	}
}

/* The command's own threads open their watches, or they inherit them. */
static void
run_on_it(const char *const *options, bool before)
{
	const char *argv[ARGS];
	struct running w;
	struct outcome o;
	json_int_t done;
	char line[256];
	int pid;
	size_t n = append(argv, 0, LIST(watchctl(), "-w", "word", "-o", "json",
	    "-O", scratch_path("report")));

	n = append(argv, n, options);
	(void)append(argv, n, LIST("--", victim("acts"), "mix", "5"));
	if (!before)
		assert_int_equal(switch_cpu(false), 0);
	start(&w, argv);
	hear(&w, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %d", &pid), 1);
	if (before)
		assert_int_equal(switch_cpu(false), 0);
	assert_int_equal(switch_cpu(true), 0);
	bind_to_cpu(pid);
	say(&w, "go\n");
	done = 4 * target_done(&w);
	say(&w, "end\n");
	finish_status(&w, &o, 7);
	assert_lacks(o.err, "warning");
	outcome_take(&o, scratch_path("report"));
	expect_hits(&o, done);
}

TEST(a_command_is_watched_on_a_new_processor_at_once)
{
	const char *const *const options[] = {
		LIST("-f"), LIST("--stop", "-f"), LIST("--inside"),
		LIST("--inside", "-f"),
	};

	if (!can_switch())
		skip();
	for (size_t i = 0; i < COUNT(options); i++) {
		run_on_it(options[i], false);
		run_on_it(options[i], true);
	}
}

/* --- events of processors: of all that runs there --- */

/* Wait until no thread of the machine has all of its slots taken. */
static void
await_slots(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_len = 8, .bp_addr = 8,
	};

	for (unsigned ms = 0;; ms++) {
		const int fd = wp_perf_open(&attr, -1, 0);

		if (fd >= 0)
			(void)close(fd);
		if (fd != -ENOSPC)
			return;
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
}

/* Events do not outlive an absence, and there are none where none ran: they are
   opened when the processor comes online.  This returns when that was
   reported. */
static void
watch_across(struct running *w, bool absent, const char *const *options)
{
	const char *argv[ARGS];
	char line[4096], said[64];

	(void)append(argv, append(argv, 0, LIST(watchctl(), "-o", "json")),
	    options);
	await_slots();
	if (absent)
		assert_int_equal(switch_cpu(false), 0);
	watch_start(w, argv);
	if (!absent)
		assert_int_equal(switch_cpu(false), 0);
	assert_int_equal(switch_cpu(true), 0);
	(void)snprintf(said, sizeof(said), "processor %d came online and is "
	    "watched from now on", cpu);
	do
		hear(w, line, sizeof(line));
	while (strstr(line, said) == NULL);
}

/* All hits were on it, and the gap was told. */
static void
expect_all(struct running *w, json_int_t done, int status)
{
	struct outcome o;
	json_t *line;
	size_t i;

	(void)kill(w->pid, SIGINT);
	finish_status(w, &o, status);
	json_array_foreach(o.lines, i, line)
		if (is_hit(line))
			assert_int_equal(number_of(line, "cpu"), cpu);
	if (number_of(first_of(&o, "end"), "hits") != done)
		fail_msg("not %lld hits: %s%s", (long long)done, o.out, o.err);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
	json_array_foreach(o.lines, i, line)
		if (strcmp(text_of(line, "type"), "warning") == 0)
			fail_msg("%s", text_of(line, "text"));
}

/* Watch so many accesses of the victim other than its writes.  The kernel may
   move the page. */
static void
watch_page(bool absent, const char *access, const char *mode, json_int_t others)
{
	struct target t;
	struct running w;
	char spec[64];
	json_int_t done;

	do {
		target_start(&t, LIST(victim("page"), "100"));
		(void)snprintf(spec, sizeof(spec), "%s:1", t.addr);
		watch_across(&w, absent, LIST(access, spec, mode));
		bind_to_cpu(t.run.pid);
		done = target_act(&t);
		if (done == 0)
			end(&w);
		else	/* before others have the page */
			expect_all(&w, done + others, 0);
		target_end(&t, 7);
	} while (done == 0);
}

TEST(the_kernels_memory_is_watched_there)
{
	if (!can_switch())
		skip();
	for (int absent = 0; absent < 2; absent++) {
		watch_page(absent, "-w", NULL, 0);
		watch_page(absent, "-w", "--count", 0);
		/* the kernel's own samples, and how it finds the page */
		watch_page(absent, "-a", NULL, 1);
	}
}

/* A victim that begins there, and is watched before it acts. */
static void
start_there(struct target *t, struct running *w, const char *const *argv)
{
	char line[4096];
	cpu_set_t all;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	bind_to_cpu(0);
	target_start(t, argv);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	do
		hear(w, line, sizeof(line));
	while (strstr(line, "\"event\":\"armed\"") == NULL);
}

TEST_WITH(processes_that_begin_there_are_noticed, scratch_make, scratch_remove)
{
	char path[PATH_MAX], file[PATH_MAX + 16];
	struct target t;
	struct running w;
	json_int_t done;

	if (!can_switch())
		skip();
	(void)snprintf(path, sizeof(path), "%s", scratch_path("file"));
	(void)snprintf(file, sizeof(file), "file:%s+4160:8", path);
	for (int absent = 0; absent < 2; absent++) {
		watch_across(&w, absent, LIST("-w", "word", "--exe",
		    victim("acts"), "--allow", "acts.c",
		    "--error-exitcode", "66"));
		start_there(&t, &w, LIST(victim("acts"), "mix", "5"));
		done = 4 * target_act(&t);
		target_end(&t, 7);
		expect_all(&w, done, 120);

		scratch_write("file", "");
		assert_int_equal(truncate(path, 8192), 0);
		watch_across(&w, absent, LIST("-w", file, "--allow",
		    "shares.c", "--error-exitcode", "66"));
		start_there(&t, &w, LIST(victim("shares"), path, "now"));
		say(&t.run, "write 5\n");
		(void)target_done(&t.run);
		end(&t.run);
		expect_all(&w, 1, 120);
	}
}

static void
bind_all_to_cpu(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	assert_non_null(dir = opendir(path));
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			bind_to_cpu(atoi(entry->d_name));
	(void)closedir(dir);
}

/* What others do there at the same address is not its. */
static void
watch_crowd(bool absent, const char *mode)
{
	struct target t, other;
	struct running w;
	json_int_t done;

	target_start(&t, LIST(victim("crowd"), "300"));
	target_start(&other, LIST(victim("crowd"), "1"));
	assert_string_equal(other.addr, t.addr);
	watch_across(&w, absent, LIST("-w", "word", "-p", t.pid, mode));
	bind_all_to_cpu(t.run.pid);
	bind_all_to_cpu(other.run.pid);
	say(&other.run, "add 50\n");
	(void)target_done(&other.run);
	say(&t.run, "add 5\n");
	done = target_done(&t.run);
	expect_all(&w, done, 0);
	end(&other.run);
	end(&t.run);
}

TEST(a_process_of_many_threads_is_watched_there)
{
	if (!can_switch())
		skip();
	for (int absent = 0; absent < 2; absent++) {
		watch_crowd(absent, NULL);
		watch_crowd(absent, "--count");
	}
}

RUN_LIVE_TESTS(.before_all = choose, .after_all = restore)
