/*
 * host: what else goes on where a program runs: a debugger has its slots, its
 * control group is frozen.
 */
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "ptrace/ptrace.h"
#include "watching.h"

/* Fill a thread's debug registers, as a debugger does, and stay its tracer. */
static void
debug(pid_t tid, uint64_t addr)
{
	struct wp_slot slot[WP_DEBUG_REGISTERS];

	for (unsigned i = 0; i < WP_DEBUG_REGISTERS; i++)
		slot[i] = (struct wp_slot){addr, 8, HW_BREAKPOINT_W};
	assert_int_equal(ptrace(PTRACE_SEIZE, tid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	assert_int_equal(waitpid(tid, NULL, __WALL), tid);
	assert_int_equal(wp_trace_registers(tid, slot,
	    (1u << WP_DEBUG_REGISTERS) - 1), 0);
	assert_int_equal(ptrace(PTRACE_CONT, tid, NULL, NULL), 0);
}

static void
expect_refused(const struct target *t, const char *option, const char *words)
{
	struct outcome o;

	run_status(&o, 125, LIST(watchctl(), option, "-w", "counter", "-p",
	    t->pid));
	assert_string_equal(o.out, "");
	if (strstr(o.err, words) == NULL)
		fail_msg("'%s', not: %s", words, o.err);
}

/* Who has the slots is named. */
static void
expect_tracer(const struct target *t, const char *name, pid_t tracer)
{
	char words[160];

	(void)snprintf(words, sizeof(words), "thread %s: 1 of the processor's "
	    "%u are wanted, and its tracer, %s (process %d), may hold the rest",
	    t->pid, (unsigned)WP_DEBUG_REGISTERS, name, tracer);
	expect_refused(t, "--user-only", words);
	(void)snprintf(words, sizeof(words), "thread %s is already traced by "
	    "process %d", t->pid, tracer);
	expect_refused(t, "--stop", words);
}

TEST(slots_of_a_debugger)
{
	struct target t;

	target_start(&t, LIST(victim("idle"), "1"));
	live_await_free_slots(t.run.pid, WP_DEBUG_REGISTERS);
	debug(t.run.pid, strtoull(t.addr, NULL, 16));
	expect_tracer(&t, "host_live_test", getpid());
	end(&t.run);
}

/* It sets the registers when it lets the threads go on. */
TEST(slots_of_gdb)
{
	const char *argv[ARGS];
	char watch[WP_DEBUG_REGISTERS][64];
	struct running g;
	struct target t;
	size_t n;

	if (access("/usr/bin/gdb", X_OK) != 0) {
		print_message("/usr/bin/gdb: %s\n", strerror(errno));
		skip();
	}
	target_start(&t, LIST(victim("idle"), "1"));
	live_await_free_slots(t.run.pid, WP_DEBUG_REGISTERS);
	n = append(argv, 0, LIST("/usr/bin/gdb", "-q", "-nx", "-batch", "-iex",
	    "set debuginfod enabled off", "-p", t.pid));
	for (unsigned i = 0; i < WP_DEBUG_REGISTERS; i++) {
		(void)snprintf(watch[i], sizeof(watch[i]),
		    "watch *((char *)&counter + %u)", i);
		n = append(argv, n, LIST("-ex", watch[i]));
	}
	(void)append(argv, n, LIST("-ex", "echo watches\\n", "-ex",
	    "continue"));
	start(&g, argv);
	await(g.out, "watches\n");
	await_state(t.run.pid, "S");
	expect_tracer(&t, "gdb", g.pid);
	end(&t.run);
	end(&g);
}

/* --- a group of our own --- */

static const struct freezer {
	const char *mount;	/* what its line of /proc/self/mountinfo has */
	const char *file, *frozen, *thawed;
	const char *state, *is_frozen;	/* a file, and its line */
} freezers[] = {
	{" - cgroup2 ", "cgroup.freeze", "1", "0", "cgroup.events",
	    "frozen 1\n"},
	{",freezer\n", "freezer.state", "FROZEN", "THAWED", "freezer.state",
	    "FROZEN\n"},
};

static const struct freezer *freezer;
static char group[4096];

static bool
put(const char *name, const char *text)
{
	char path[sizeof(group) + 32];
	FILE *f;
	bool ok;

	(void)snprintf(path, sizeof(path), "%s/%s", group, name);
	if ((f = fopen(path, "we")) == NULL)
		return false;
	ok = fputs(text, f) >= 0;
	return fclose(f) == 0 && ok;
}

static bool
is_frozen(void)
{
	char path[sizeof(group) + 32], line[64];
	bool frozen = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", group, freezer->state);
	if ((f = fopen(path, "re")) == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL)
		frozen = frozen || strcmp(line, freezer->is_frozen) == 0;
	(void)fclose(f);
	return frozen;
}

/* False, with a line that says why: none can be made here. */
static bool
make_group(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[3000];

	group[0] = '\0';
	while (f != NULL && group[0] == '\0' &&
	    fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, freezer->mount) != NULL &&
		    sscanf(line, "%*s %*s %*s %*s %2999s", at) == 1)
			(void)snprintf(group, sizeof(group),
			    "%s/watchctl-test-%d", at, getpid());
	if (f != NULL)
		(void)fclose(f);
	if (group[0] != '\0' && mkdir(group, 0755) == 0)
		return true;
	print_message("no control group with %s can be made: %s\n",
	    freezer->file, group[0] == '\0' ? "not mounted" : strerror(errno));
	group[0] = '\0';
	return false;
}

/* What is in it goes on, and ends. */
static int
remove_group(void **state)
{
	(void)state;
	if (group[0] == '\0')
		return 0;
	(void)put(freezer->file, freezer->thawed);
	for (unsigned ms = 0; rmdir(group) != 0 && ms < LIVE_PATIENCE_MS; ms++)
		(void)usleep(1000);
	return 0;
}

static void
expect_frozen(const struct freezer *by)
{
	struct running r, w;
	struct outcome o;
	char line[4096], pid[16], words[64];

	freezer = by;
	if (!make_group())
		skip();
	start(&r, LIST(victim("counter"), "1", "5"));
	(void)snprintf(pid, sizeof(pid), "%d", r.pid);
	hear(&r, line, sizeof(line));
	if (!put("cgroup.procs", pid) || !put(by->file, by->frozen)) {
		print_message("no process can be frozen by %s\n", by->file);
		end(&r);
		skip();
	}
	for (unsigned ms = 0; !is_frozen() && ms < LIVE_PATIENCE_MS; ms++)
		(void)usleep(1000);

	watch_start(&w, LIST(watchctl(), "-w", "counter", "-o", "json", "-n",
	    "5", "-p", pid));
	hear(&w, line, sizeof(line));
	assert_holds(line, "\"type\":\"warning\"");
	(void)snprintf(words, sizeof(words), "is frozen (%s): it makes no hits "
	    "until that is thawed", by->file);
	assert_holds(line, words);
	assert_true(put(by->file, by->thawed));
	say(&r, "\n");
	finish_status(&w, &o, 0);
	assert_int_equal(count_of(&o, "hit"), 5);
	end(&r);
}

TEST_WITH(a_frozen_control_group, NULL, remove_group)
{
	expect_frozen(&freezers[0]);
}

TEST_WITH(a_frozen_control_group_of_version_1, NULL, remove_group)
{
	expect_frozen(&freezers[1]);
}

RUN_LIVE_TESTS()
