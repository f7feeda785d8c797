/*
 * hotplug: a processor is taken offline and brought back while a program is
 * watched; another comes online only then.
 *
 * For some tenths of a second the machine has one processor less.  Whatever
 * happens to the test, another process brings it back.
 */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

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

TEST(watches_are_on_it_at_once)
{
	static const char *const modes[] = {NULL, "--count", "--stop", "-f"};

	if (cpu < 0) {
		print_message("/sys/devices/system/cpu: no processor can be "
		    "taken offline\n");
		skip();
	}
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

TEST(a_command_is_watched_on_it_at_once)
{
	const char *const *const options[] = {
		LIST("-f"), LIST("--stop", "-f"), LIST("--inside"),
		LIST("--inside", "-f"),
	};

	if (cpu < 0) {
		print_message("/sys/devices/system/cpu: no processor can be "
		    "taken offline\n");
		skip();
	}
	for (size_t i = 0; i < COUNT(options); i++) {
		run_on_it(options[i], false);
		run_on_it(options[i], true);
	}
}

/* --- events of processors: what is noticed of all that runs there --- */

/* They do not outlive an absence, and there are none where none ran. */
static void
expect_doubt(bool absent, const char *const *options)
{
	const char *argv[ARGS];
	struct running w;
	struct outcome o;
	char said[64];
	const size_t n = append(argv, 0, LIST(watchctl(), "-o", "json",
	    "--error-exitcode", "66"));

	(void)append(argv, n, options);
	if (absent)
		assert_int_equal(switch_cpu(false), 0);
	watch_start(&w, argv);
	if (!absent)
		assert_int_equal(switch_cpu(false), 0);
	assert_int_equal(switch_cpu(true), 0);
	(void)kill(w.pid, SIGINT);
	finish_status(&w, &o, 120);
	(void)snprintf(said, sizeof(said), "processor %d runs and cannot be "
	    "watched", cpu);
	assert_holds(o.out, said);
}

TEST(nothing_is_noticed_there_after_an_absence)
{
	char file[PATH_MAX];
	const char *const *const options[] = {
		LIST("-w", "no_such", "--all-cpus", "--if-missing", "skip"),
		LIST("-w", "word", "--exe", victim("acts")),
		LIST("-w", file),
	};

	if (cpu < 0) {
		print_message("/sys/devices/system/cpu: no processor can be "
		    "taken offline\n");
		skip();
	}
	(void)snprintf(file, sizeof(file), "file:%s+0:8", victim("acts"));
	for (size_t i = 0; i < COUNT(options); i++) {
		expect_doubt(true, options[i]);
		expect_doubt(false, options[i]);
	}
}

RUN_LIVE_TESTS(.before_all = choose, .after_all = restore)
