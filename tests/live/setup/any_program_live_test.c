/*
 * any_program: --cgroup, in a control group of the test's own, and --all-cpus,
 * with a SPEC that only the test's own processes have.
 */
#include "test.h"

#include <errno.h>
#include <mntent.h>
#include <signal.h>
#include <sys/stat.h>

#include "explainers.h"
#include "live.h"
#include "watching.h"

/* Its directory, what a process is added by, and the same of the one above. */
static char group[256], procs[300], outside[300];

/* Make it; where that is not possible, the test is skipped. */
static void
make_group(void)
{
	FILE *f = setmntent("/proc/mounts", "r");
	struct mntent *mount;

	*group = '\0';
	while (f != NULL && (mount = getmntent(f)) != NULL)
		if (strcmp(mount->mnt_type, "cgroup2") == 0) {
			(void)snprintf(group, sizeof(group), "%s/watchctl-%d",
			    mount->mnt_dir, (int)getpid());
			(void)snprintf(outside, sizeof(outside),
			    "%s/cgroup.procs", mount->mnt_dir);
			break;
		}
	if (f != NULL)
		(void)endmntent(f);
	if (*group == '\0' || mkdir(group, 0755) != 0) {
		print_message("mkdir %s: %s\n", *group == '\0' ?
		    "of a control group: no cgroup2 is mounted" : group,
		    strerror(errno));
		skip();
	}
	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
}

/* Its processes have ended, but may be in it for a moment. */
static void
remove_group(const char *path)
{
	for (unsigned ms = 0; rmdir(path) != 0; ms++) {
		if (errno != EBUSY || ms == COMMAND_PATIENCE_MS)
			fail_msg("rmdir %s: %s", path, strerror(errno));
		(void)usleep(1000);
	}
}

static void
move(pid_t pid, const char *to)
{
	FILE *f = fopen(to, "w");

	assert_non_null(f);
	assert_true(fprintf(f, "%d", (int)pid) > 0);
	assert_int_equal(fclose(f), 0);
}

/* What a shell does to execute its arguments in a group. */
static const char into[] = "echo $$ > \"$0\"; exec \"$@\"";

/* A victim that is in a group before it is executed. */
static void
start_in(struct target *t, const char *to, const char *act, const char *n)
{
	target_start(t, LIST("/bin/sh", "-c", into, to, victim("acts"), act,
	    n));
}

/* Hear lines until one has all of these; what it says is not kept. */
static void
await_said(struct running *w, const char *one, const char *other,
    const char *third, char line[4096])
{
	do {
		hear(w, line, 4096);
		if (*line == '\0')
			fail_msg("not said: %s %s %s", one, other, third);
	} while (strstr(line, one) == NULL || strstr(line, other) == NULL ||
	    strstr(line, third) == NULL);
}

static void
await_armed(struct running *w, const struct target *t, char line[4096])
{
	char pid[32];

	(void)snprintf(pid, sizeof(pid), "\"pid\":%s,", t->pid);
	await_said(w, "\"event\":\"armed\"", pid, "", line);
}

static size_t
hits_of(const struct outcome *o, const struct target *t)
{
	size_t i, n = 0;
	json_t *line;

	each_hit(o, i, line)
		n += number_of(line, "pid") == t->run.pid;
	return n;
}

/* End the watch.  What it says is all that was not heard. */
static void
end_watch(struct running *w, struct outcome *o)
{
	(void)kill(w->pid, SIGINT);
	finish(w, o);
	assert_int_equal(number_of(first_of(o, "end"), "lost"), 0);
	assert_string_equal(text_of(first_of(o, "end"), "reason"), "signal");
}

/* Of processes that run, one is in it; another comes, in a group below; and
   what they fork. */
TEST(processes_of_a_control_group)
{
	struct target in, out, later;
	char below[300], line[4096];
	struct running w;
	struct outcome o;

	make_group();
	(void)snprintf(below, sizeof(below), "%s/below", group);
	assert_int_equal(mkdir(below, 0755), 0);
	start_in(&in, procs, "father", "2");
	target_start(&out, LIST(victim("acts"), "writer", "5"));
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "--cgroup",
	    group));
	(void)snprintf(line, sizeof(line), "%s/cgroup.procs", below);
	start_in(&later, line, "father", "1");
	await_armed(&w, &later, line);
	assert_holds(line, "\"gap_us\":");
	assert_int_equal(target_act(&out), 5);
	assert_int_equal(target_act(&in), 2);
	assert_int_equal(target_act(&later), 1);
	target_end(&in, 7);
	target_end(&out, 7);
	target_end(&later, 7);
	end_watch(&w, &o);
	assert_int_equal(o.status, 0);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 22 + 11);
	assert_int_equal(hits_of(&o, &in), 2);
	assert_int_equal(hits_of(&o, &out), 0);
	assert_int_equal(hits_of(&o, &later), 1);
	remove_group(below);
	remove_group(group);
}

/* One leaves, and another one comes.  The path is as in /proc/PID/cgroup. */
TEST(processes_that_are_moved)
{
	struct target left, came;
	char line[4096];
	struct running w;
	struct outcome o;

	make_group();
	start_in(&left, procs, "writer", "5");
	target_start(&came, LIST(victim("acts"), "writer", "6"));
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "--cgroup",
	    strrchr(group, '/'), "--error-exitcode", "9", "--allow", "store"));
	move(left.run.pid, outside);
	await_said(&w, "\"event\":\"disarmed\"", "\"pid\":", left.pid, line);
	await_said(&w, "process ", left.pid, " has left the control group",
	    line);
	assert_int_equal(target_act(&left), 5);
	move(came.run.pid, procs);
	await_armed(&w, &came, line);
	assert_holds(line, "\"gap_us\":");
	assert_int_equal(target_act(&came), 6);
	target_end(&left, 7);
	target_end(&came, 7);
	end_watch(&w, &o);
	assert_int_equal(o.status, 120);
	assert_int_equal(hits_of(&o, &left), 0);
	assert_int_equal(hits_of(&o, &came), 6);
	remove_group(group);
}

/* A child has inherited its parent's watches, and loses them when that leaves:
   it is watched anew. */
TEST(a_parent_that_leaves_its_child)
{
	struct target parent, child;
	char line[4096];
	struct running w;
	struct outcome o;

	make_group();
	target_start(&parent, LIST("/bin/sh", "-c", into, procs,
	    victim("obeys")));
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "--cgroup",
	    group));
	say(&parent.run, "fork 7\n");
	hear(&parent.run, line, sizeof(line));
	assert_int_equal(sscanf(line, "child %15s", child.pid), 1);
	child.run.pid = atoi(child.pid);
	assert_int_equal(target_done(&parent.run), 0);
	await_state(child.run.pid, "T");
	move(parent.run.pid, outside);
	await_armed(&w, &child, line);
	assert_holds(line, "\"gap_us\":");
	say(&parent.run, "write 5\n");
	assert_int_equal(target_done(&parent.run), 5);
	(void)kill(child.run.pid, SIGCONT);
	await_state(child.run.pid, "Z");
	target_end(&parent, 7);
	end_watch(&w, &o);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 7);
	assert_int_equal(hits_of(&o, &child), 7);
	remove_group(group);
}

/* A name of which no process has a symbol is an error only where there are
   processes; it may be waited for.  With --error-exitcode nothing that was
   never watched is vouched for. */
TEST(a_control_group_without_such_a_name)
{
	char line[4096];
	struct target t;
	struct running w;
	struct outcome o;

	make_group();
	run_status(&o, 120, LIST(watchctl(), "-w", "word", "--cgroup", group,
	    "-t", "0.1", "--error-exitcode", "9"));
	assert_holds(o.err, "no process of the control group has "
	    "word: waiting");
	start_in(&t, procs, "writer", "5");
	run_status(&o, 125, LIST(watchctl(), "-w", "wird", "--cgroup", group));
	assert_holds(o.err, "nearest: word");
	assert_holds(o.err, "--if-missing skip waits for one");
	assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
	run_status(&o, 125, LIST(watchctl(), "-w", "word:100", "--cgroup",
	    group));
	assert_holds(o.err, "100 bytes at");
	assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
	watch_start(&w, LIST(watchctl(), "-w", "plug!plug_state", "-o", "json",
	    "--cgroup", group, "--if-missing", "skip"));
	await_said(&w, "no process of the control group has plug!plug_state",
	    "", "", line);
	target_end(&t, 7);
	end_watch(&w, &o);
	remove_group(group);
}

/* A module that is opened when the process is watched for another SPEC. */
TEST(a_module_that_comes)
{
	char line[4096];
	struct target t;
	struct running w;
	struct outcome o;

	make_group();
	start_in(&t, procs, "load_library", victim("plug"));
	watch_start(&w, LIST(watchctl(), "-w", "word", "-w",
	    "plug!plug_state", "-o", "json", "--cgroup", group));
	assert_int_equal(target_act(&t), 10);
	await_said(&w, "\"event\":\"armed\"", "\"id\":2", t.pid, line);
	assert_holds(line, "\"gap_us\":");
	target_end(&t, 7);
	end_watch(&w, &o);
	remove_group(group);
}

/* It may be elsewhere then. */
TEST(a_module_that_is_opened_again)
{
	char line[4096];
	struct running opener, w;
	struct outcome o;

	make_group();
	start(&opener, LIST("/bin/sh", "-c", into, procs, victim("opener"), "1",
	    victim("plug"), "wait-open"));
	hear(&opener, line, sizeof(line));
	assert_string_equal(line, "ready");
	watch_start(&w, LIST(watchctl(), "-w", "plug!plug_state", "-o", "json",
	    "--cgroup", group));
	say(&opener, "go\n");
	await_said(&w, "has mapped the module of a SPEC again", "", "", line);
	finish_status(&opener, &o, 7);
	end_watch(&w, &o);
	remove_group(group);
}

/* Only the test's own processes have this module. */
static void
copy_acts(char path[64], char spec[80])
{
	struct outcome o;

	(void)snprintf(path, 64, "./v%d", (int)getpid());
	(void)snprintf(spec, 80, "%s!word", path + 2);
	run_status(&o, 0, LIST("/bin/cp", victim("acts"), path));
}

/* Two processes that act are there before all are watched, and a third one
   comes, to do it so many times. */
static void
start_three(struct running *w, struct target t[3], char path[64],
    const char *act, const char *times, const char *third)
{
	char spec[80], line[4096];

	copy_acts(path, spec);
	for (int i = 0; i < 2; i++)
		target_start(&t[i], LIST(path, act, times));
	watch_start(w, LIST(watchctl(), "-w", spec, "-o", "json",
	    "--all-cpus"));
	target_start(&t[2], LIST(path, act, third));
	await_armed(w, &t[2], line);
}

TEST(all_processes_of_the_machine)
{
	char path[64];
	struct target t[3];
	struct running w;
	struct outcome o;

	start_three(&w, t, path, "father", "1", "2");
	for (int i = 0; i < 3; i++)
		assert_int_equal(target_act(&t[i]), i < 2 ? 1 : 2);
	for (int i = 0; i < 3; i++)
		target_end(&t[i], 7);
	end_watch(&w, &o);
	(void)unlink(path);
	assert_int_equal(o.status, 0);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 11 + 11 + 22);
	assert_int_equal(hits_of(&o, &t[2]), 2);
	run_status(&o, 125, LIST(watchctl(), "-w", "no_such_word_at_all",
	    "--all-cpus"));
	assert_holds(o.err, "no process of the machine has it");
}

/* A writer stores 0, 1 and so on. */
static void
expect_values(const struct outcome *o, const struct target *t, uint64_t n)
{
	uint64_t stored = 0;
	json_t *line;
	size_t i;

	each_hit(o, i, line) {
		if (number_of(line, "pid") != t->run.pid)
			continue;
		assert_int_equal(hex_of(line, "new"), stored);
		if (json_object_get(line, "old") != NULL && stored > 0)
			assert_int_equal(hex_of(line, "old"), stored - 1);
		stored++;
	}
	assert_int_equal(stored, n);
}

/* Each process has values of its own, though all have the same symbol; also
   those that have ended before anything is explained. */
TEST(values_of_all_processes_of_the_machine)
{
	char path[64];
	pid_t explainer;
	struct target t[3];
	struct running w;
	struct outcome o;

	start_three(&w, t, path, "writer", "100", "100");
	explainer = explainer_of(w.pid);
	assert_int_equal(kill(explainer, SIGSTOP), 0);
	for (int i = 0; i < 3; i++)
		say(&t[i].run, "go\n");
	for (int i = 0; i < 3; i++)
		assert_int_equal(target_done(&t[i].run), 100);
	for (int i = 0; i < 3; i++)
		target_end(&t[i], 7);
	assert_int_equal(kill(explainer, SIGCONT), 0);
	end_watch(&w, &o);
	(void)unlink(path);
	for (int i = 0; i < 3; i++)
		expect_values(&o, &t[i], 100);
}

RUN_LIVE_TESTS()
