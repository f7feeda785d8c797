/*
 * processes: the command on processes in every state and with every kind of
 * child.  The victims report how often they wrote.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "live.h"
#include "watching.h"

static void
start_act(struct target *t, const char *act, const char *argument)
{
	target_start(t, LIST(victim("acts"), act, argument));
}

/* The victim is stopped before, during and after the attach, then goes on. */
TEST(a_stopped_process_stays_stopped)
{
	struct target t;
	struct running w;
	struct outcome o;
	struct pollfd said;
	json_int_t n;

	start_act(&t, "writer", "20");
	(void)kill(t.run.pid, SIGSTOP);
	await_state(t.run.pid, "T");
	for (int i = 0; i < 2; i++) {
		if (i == 0)	/* attach and leave, then attach and stay */
			watch_target(&w, &t, "-w", "word", "-t0.05");
		else
			watch_target(&w, &t, "-w", "word", NULL);
		await_state(t.run.pid, "T");
		if (i == 0) {
			finish(&w, &o);
			expect_hits(&o, 0);
		}
	}
	await_state(t.run.pid, "T");
	say(&t.run, "go\n");
	said = (struct pollfd){t.run.out, POLLIN, 0};
	assert_int_equal(poll(&said, 1, 50), 0);
	(void)kill(t.run.pid, SIGCONT);
	n = target_done(&t.run);
	target_end(&t, 7);
	finish(&w, &o);
	assert_int_equal(n, 20);
	expect_hits(&o, n);
}

TEST(traced_by_gdb)
{
	struct target t;
	struct running g, w;
	struct outcome o;
	json_int_t n;

	start_act(&t, "writer", "50");
	trace_by_gdb(&g, &t);
	watch_target(&w, &t, "-w", "word", NULL);
	n = target_act(&t);
	target_end(&t, 7);
	finish(&w, &o);
	expect_hits(&o, n);
	assert_non_null(first_of(&o, "warning"));
	assert_holds(text_of(first_of(&o, "warning"), "text"),
	    "another traces it");
	assert_holds(o.err, "another traces it");
	finish(&g, &o);
	assert_holds(o.out, "exited with code 07");
}

TEST(the_first_thread_has_ended)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_int_t n;

	start_act(&t, "headless", "30");
	await_state(t.run.pid, "Z");
	watch_target(&w, &t, "-w", "word", NULL);
	n = target_act(&t);
	target_end(&t, 7);
	finish(&w, &o);
	expect_hits(&o, n);
	assert_int_equal(n, 30);
	assert_true(number_of(first_of(&o, "hit"), "tid") != t.run.pid);
	assert_int_equal(number_of(first_of(&o, "hit"), "pid"), t.run.pid);
	expect_function(first_of(&o, "hit"), 0, "store");
	expect_function(first_of(&o, "hit"), 1, "writer");
	expect_function(first_of(&o, "hit"), 2, "perform");
}

/* How many processes have hits. */
static size_t
processes_of(const struct outcome *o)
{
	json_t *line, *pids = json_object();
	size_t i, n;

	each_hit(o, i, line) {
		char pid[32];

		(void)snprintf(pid, sizeof(pid), "%d",
		    (int)number_of(line, "pid"));
		(void)json_object_set_new(pids, pid, json_true());
	}
	n = json_object_size(pids);
	json_decref(pids);
	return n;
}

/* Watch a process with three children, each of which writes ten times, and
   which itself writes once for each.  Result: how many processes are seen to
   write. */
static size_t
watch_father(const char *follow, json_int_t hits)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_t *line;
	size_t i, n;

	start_act(&t, "father", "3");
	watch_target(&w, &t, "-w", "word", follow);
	assert_int_equal(target_act(&t), 3);
	target_end(&t, 7);
	finish(&w, &o);
	expect_hits(&o, hits);
	each_hit(&o, i, line) {
		expect_function(line, 0, "store");
		expect_function(line, 1, "father");
		expect_complete(line);
	}
	n = processes_of(&o);
	return n;
}

/* Those that have descended from a process already are watched with it; the
   first of the names is one, too. */
TEST(a_process_and_its_descendants)
{
	struct target t;
	struct running w;
	struct outcome o;
	char family[64];

	start_act(&t, "family", "3");
	(void)snprintf(family, sizeof(family), "@CHILDREN:%s", t.pid);
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "-p",
	    family, "-p", t.pid));
	assert_int_equal(target_act(&t), 3);
	target_end(&t, 7);
	finish(&w, &o);
	expect_hits(&o, 23);
	assert_int_equal(processes_of(&o), 3);
	assert_null(first_of(&o, "warning"));
}

/* The victim, as a file of its own with this name in the directory of the test:
   whatever else executes the victim is another program. */
static void
copy_victim(const char *name)
{
	struct outcome o;

	(void)unlink(name);
	run_status(&o, 0, LIST("/bin/cp", victim("acts"), name));
}

/* All processes are meant whose executable has the name, and those that call
   themselves so: the kernel's name for a program ends after 15 bytes. */
TEST(processes_by_name)
{
	char path[64], names[2][64], list[128];
	struct target t[2];
	struct running w;
	struct outcome o;

	/* of this test's own, for others on this machine may run it, too */
	(void)snprintf(path, sizeof(path), "./v%d_of_a_long_name",
	    (int)getpid());
	(void)snprintf(names[0], sizeof(names[0]), "%s", path + 2);
	(void)snprintf(names[1], sizeof(names[1]), "%.15s", path + 2);
	(void)snprintf(list, sizeof(list), "another name,%s", path + 2);
	copy_victim(path);
	for (size_t i = 0; i < COUNT(names); i++) {
		for (int k = 0; k < 2; k++)
			target_start(&t[k], LIST(path, "writer", "4"));
		watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json",
		    "-p", names[i]));
		for (int k = 0; k < 2; k++) {
			assert_int_equal(target_act(&t[k]), 4);
			target_end(&t[k], 7);
		}
		finish(&w, &o);
		expect_hits(&o, 8);
		assert_int_equal(processes_of(&o), 2);
	}
	(void)unlink(path);
	run_status(&o, 125, LIST(watchctl(), "-w", "word", "-p", list));
	assert_holds(o.err, "-p 'another name': no process has that "
	    "name or executes a file of that name");
}

/* It is told to be armed.  What it says before that is not kept.  Result:
   whether it says for how long it was not watched. */
static bool
await_armed(struct running *w, const char *pid)
{
	char line[4096], text[64];
	bool armed = false;

	(void)snprintf(text, sizeof(text), "\"pid\":%s,", pid);
	while (!armed) {
		hear(w, line, sizeof(line));
		if (*line == '\0')
			fail_msg("process %s is not watched", pid);
		armed = strstr(line, "\"event\":\"armed\"") != NULL &&
		    strstr(line, text) != NULL;
	}
	return strstr(line, "\"gap_us\":") != NULL;
}

/* All other processes of this machine may make threads so fast that records of
   that are lost. */
static void
expect_only_lost_records(const struct outcome *o)
{
	size_t i;
	json_t *line;

	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "warning") == 0)
			assert_holds(text_of(line, "text"),
			    "records of new processes were lost");
}

/* Those that execute a file: one that runs before, one that comes later, one
   that executes it again, and what they fork. */
TEST(processes_of_a_file)
{
	static const char path[] = "./a_file_of_its_own";
	struct target before, later, again;
	struct running w;
	struct outcome o;

	copy_victim(path);
	target_start(&before, LIST(path, "father", "2"));
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "--exe",
	    path));
	target_start(&again, LIST(path, "become_another"));
	(void)await_armed(&w, again.pid);
	say(&again.run, "go\n");
	(void)await_armed(&w, again.pid);
	hear_address(&again.run, again.addr);
	target_start(&later, LIST(path, "father", "1"));
	(void)await_armed(&w, later.pid);
	assert_int_equal(target_act(&before), 2);
	assert_int_equal(target_act(&later), 1);
	assert_int_equal(target_act(&again), 100);
	target_end(&before, 7);
	target_end(&later, 7);
	target_end(&again, 7);
	(void)kill(w.pid, SIGINT);
	finish(&w, &o);
	(void)unlink(path);
	assert_int_equal(o.status, 0);
	expect_only_lost_records(&o);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    22 + 11 + 5 + 100);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "signal");
	/* father's two and another's one, and the fathers */
	assert_int_equal(processes_of(&o), 6);
}

static void *
end_at_once(void *unused)
{
	return unused;
}

/* A process comes while watchctl does not run, on a processor whose ring is
   full of what else happened there. */
static void
start_unrecorded(struct target *t, const char *const argv[])
{
	cpu_set_t all, one;
	pthread_t thread;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (int i = 0; i < 1500; i++) {
		assert_int_equal(pthread_create(&thread, NULL, end_at_once,
		    NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	target_start(t, argv);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* One whose records are lost is found, once, and with its children. */
TEST(processes_of_a_file_whose_records_are_lost)
{
	static const char path[] = "./a_file_of_its_own";
	struct target before, later;
	struct running w;
	struct outcome o;

	copy_victim(path);
	target_start(&before, LIST(path, "father", "2"));
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "--exe",
	    path, "--error-exitcode", "9", "--allow", "store"));
	(void)kill(w.pid, SIGSTOP);
	await_state(w.pid, "T");
	start_unrecorded(&later, LIST(path, "father", "1"));
	(void)kill(w.pid, SIGCONT);
	assert_true(await_armed(&w, later.pid));
	assert_int_equal(target_act(&before), 2);
	assert_int_equal(target_act(&later), 1);
	target_end(&before, 7);
	target_end(&later, 7);
	(void)kill(w.pid, SIGINT);
	finish(&w, &o);
	(void)unlink(path);
	assert_int_equal(o.status, 120);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 22 + 11);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
	assert_int_equal(processes_of(&o), 5);
}

/* An ordinary user who notices processes and may not look into root's. */
TEST(a_process_of_a_file_that_cannot_be_looked_into)
{
	static const char path[] = "./a_file_of_its_own";
	char line[4096], words[64];
	struct target t;
	struct running w;
	struct outcome o;

	if (geteuid() != 0) {
		print_message("geteuid: not root\n");
		skip();
	}
	copy_victim(path);
	target_start(&t, LIST(path, "father", "1"));
	watch_start(&w, LIST("/usr/bin/setpriv", "--reuid=65534",
	    "--regid=65534", "--clear-groups", "--inh-caps=-all,+perfmon",
	    "--ambient-caps=-all,+perfmon", "--bounding-set=-all,+perfmon",
	    watchctl(), "-w", "word", "-o", "json", "--exe", path,
	    "--error-exitcode", "9", "--allow", "store"));
	hear(&w, line, sizeof(line));
	(void)snprintf(words, sizeof(words), "process %d may execute %s: ",
	    t.run.pid, path);
	assert_holds(line, words);
	target_end(&t, 7);
	(void)kill(w.pid, SIGINT);
	finish_status(&w, &o, 120);
	(void)unlink(path);
}

/* With --error-exitcode a gap is no green exit: so long it ran unwatched. */
TEST(a_process_that_came_later_is_not_vouched_for)
{
	static const char path[] = "./a_file_of_its_own";
	struct target t;
	struct running w;
	struct outcome o;

	copy_victim(path);
	watch_start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "--exe",
	    path, "--error-exitcode", "9", "--allow", "store", "-n", "5"));
	target_start(&t, LIST(path, "writer", "5"));
	(void)await_armed(&w, t.pid);
	assert_int_equal(target_act(&t), 5);
	target_end(&t, 7);
	finish(&w, &o);
	(void)unlink(path);
	assert_int_equal(o.status, 120);
	assert_holds(o.err, "before it was watched");
	expect_hits(&o, 5);
}

TEST(children_are_followed_when_asked)
{
	assert_int_equal(watch_father(NULL, 3), 1);
	assert_int_equal(watch_father("-f", 33), 4);
}

/* The child's other program writes at the same address: that is another
   word. */
TEST(a_child_executes_another_program)
{
	for (int follow = 0; follow < 2; follow++) {
		struct target t;
		struct running w;
		struct outcome o;

		start_act(&t, "father_of_another", NULL);
		watch_target(&w, &t, "-w", "word", follow ? "-f" : NULL);
		(void)target_act(&t);
		target_end(&t, 7);
		finish(&w, &o);
		expect_hits(&o, follow ? 3 : 1);
		assert_null(first_of(&o, "warning"));
	}
}

/* Five hits of the process, and then those of the program that it executed. */
static void
expect_another(const struct outcome *o, json_int_t before)
{
	json_int_t n = -before;
	json_t *hit;
	size_t i;

	each_hit(o, i, hit) {
		if (n >= 0)
			assert_int_equal(hex_of(hit, "new"), n);
		n++;
	}
	assert_int_equal(n, 100);
	assert_int_equal(number_of(first_of(o, "end"), "hits"), 105);
	assert_int_equal(number_of(first_of(o, "end"), "lost"), 0);
	assert_string_equal(text_of(first_of(o, "end"), "reason"), "exit");
}

/* Wait until the program that a process of the victim executed is watched. */
static void
hear_armed(struct running *w)
{
	char line[4096];

	do {
		hear(w, line, sizeof(line));
	} while (strstr(line, "\"event\":\"armed\"") == NULL);
	assert_holds(line, "\"gap_us\":");
	assert_holds(line, "/acts\"");
}

/* The new program's word is watched, at the same address, as soon as it is
   found there. */
TEST(the_process_executes_another_program)
{
	struct target t;
	struct running w;
	struct outcome o;
	char again[32];

	start_act(&t, "become_another", NULL);
	watch_target(&w, &t, "-w", "word", NULL);
	say(&t.run, "go\n");
	hear_address(&t.run, again);
	assert_string_equal(t.addr, again);
	hear_armed(&w);
	assert_int_equal(target_act(&t), 100);
	target_end(&t, 7);
	finish(&w, &o);
	expect_another(&o, 0);
}

/* With -f that of a child too, and of its program as of its parent's. */
TEST(a_child_executes_another_program_that_is_watched)
{
	struct target t;
	struct running w;
	struct outcome o;
	char again[32];
	size_t i, n = 0;
	json_t *hit;

	start_act(&t, "father_of_writer", NULL);
	watch_target(&w, &t, "-w", "word", "-f");
	say(&t.run, "go\n");
	hear_address(&t.run, again);
	hear_armed(&w);
	assert_int_equal(target_act(&t), 100);
	say(&t.run, "end\n");
	assert_int_equal(target_done(&t.run), 1);
	target_end(&t, 7);
	finish(&w, &o);
	/* those of the child's first program have been heard */
	each_hit(&o, i, hit) {
		assert_int_equal(hex_of(hit, "new"), n < 100 ? n : 3);
		n++;
	}
	assert_int_equal(n, 101);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 103);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
}

static void
await_in_file(const char *path, const char *text)
{
	char grep[512];

	(void)snprintf(grep, sizeof(grep), "timeout 60 sh -c 'until "
	    "grep -q \"$0\" \"$1\"; do sleep 0.01; done' '%s' %s",
	    text, path);
	assert_int_equal(system(grep), 0);
}

/* The command's status is still the command's; but what it does before it is
   watched again is not seen. */
TEST(a_command_executes_another_program)
{
	char report[] = "/tmp/watchctl-test-XXXXXX", addr[32];
	int fd = mkstemp(report);

	assert_true(fd >= 0);
	(void)close(fd);
	for (int vouch = 0; vouch < 2; vouch++) {
		struct running w;
		struct outcome o;

		(void)unlink(report);
		start(&w, LIST(watchctl(), "-w", "word", "-o", "json", "-O",
		    report, vouch ? "--error-exitcode=66" : "--user-only",
		    "--allow=*", "--", victim("acts"), "become_another"));
		hear_address(&w, addr);
		say(&w, "go\n");
		hear_address(&w, addr);
		await_in_file(report, "\"event\":\"armed\"");
		say(&w, "go\n");
		assert_int_equal(target_done(&w), 100);
		say(&w, "end\n");
		finish_status(&w, &o, vouch ? 120 : 7);
		outcome_take(&o, report);
		expect_another(&o, 5);
	}
	(void)unlink(report);
}

/* A symbol is looked for in the next program, and an address is not. */
TEST(an_address_ends_with_its_program)
{
	struct target t;
	struct running w;
	struct outcome o;

	start_act(&t, "become_another", NULL);
	watch_start(&w, LIST(watchctl(), "-w", t.addr, "-w", "moment:8", "-o",
	    "json", "-p", t.pid));
	say(&t.run, "go\n");
	hear_address(&t.run, t.addr);
	await(w.err, "addresses mean something else");
	assert_int_equal(target_act(&t), 100);
	target_end(&t, 7);
	finish(&w, &o);
	expect_hits(&o, 5);
}

/* A process that ends has lost its watches a while before it has ended. */
TEST(exit_is_not_taken_for_execve)
{
	for (int i = 0; i < 20; i++) {
		struct outcome o;

		run_status(&o, 0, LIST(watchctl(), "--count", "-w",
		    "_Py_TrueStruct:8", "-O", "/dev/null", "--",
		    "/usr/bin/python3", "-I", "-S", "-c", "pass"));
		assert_lacks(o.err, "warning");
	}
}

/* Nor if that takes long, since it frees much memory by that. */
TEST(a_slow_exit_is_not_taken_for_execve)
{
	const char *const modes[] = {"-f", "--stop", "--inside"};
	char command[128];

	(void)snprintf(command, sizeof(command), "import os; "
	    "much = b'x' * (%d << 20); os._exit(3)",
	    getenv("THOROUGH") != NULL ? 1200 : 300);
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct outcome o;

		run_status(&o, 3, LIST(watchctl(), modes[i], "-w",
		    "_Py_ctype_table:8", "--error-exitcode", "66", "-O",
		    "/dev/null", "--", "/usr/bin/python3", "-I", "-S", "-c",
		    command));
		assert_lacks(o.err, "executed");
		assert_lacks(o.err, "warning");
	}
}

/* Threads come and go as fast as they can while the command attaches. */
TEST(a_storm_of_threads)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_int_t n;

	start_act(&t, "storm", "1000");
	watch_target(&w, &t, "-w", "word", "--count");
	n = target_act(&t);
	target_end(&t, 7);
	finish(&w, &o);
	assert_int_equal(n, 1000);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), n);

	start_act(&t, "storm", "1000");
	watch_target(&w, &t, "-w", "word", NULL);
	n = target_act(&t);
	target_end(&t, 7);
	finish(&w, &o);
	expect_hits(&o, n);
}

/* A process that has ended and been waited for. */
static pid_t
make_dead(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

enum { LINE = 16384 };

/* Two victims that write ten times each, and in the same list a process that is
   dead.  head: the report's first lines, so many; after them so many more are
   waited for, since a process has to be there when its hits are explained. */
static void
watch_two(struct target t[2], const char *form, const char *count,
    char *head, unsigned lines, unsigned more, struct outcome *o)
{
	static char line[LINE];
	struct running w;
	char pids[64], dead[16];

	for (size_t i = 0; i < 2; i++)
		start_act(&t[i], "writer", "10");
	(void)snprintf(dead, sizeof(dead), "%d", make_dead());
	(void)snprintf(pids, sizeof(pids), "%s,%s,%s", t[0].pid, dead,
	    t[1].pid);
	start(&w, LIST(watchctl(), "-w", "word", "-p", pids, "-o", form,
	    count));
	for (; lines > 0; lines--, head += strlen(head))
		hear(&w, head, LINE);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(target_act(&t[i]), 10);
	for (; more > 0; more--)
		hear(&w, line, sizeof(line));
	for (size_t i = 0; i < 2; i++)
		target_end(&t[i], 7);
	finish_status(&w, o, 0);
	assert_holds(o->err, dead);
	assert_holds(o->err, "; skipped\n");
	assert_holds(o->err, "20 hits, 20 reported, 0 lost");
}

/* Each process has the watch, by the same number. */
static void
expect_each(const json_t *line, const struct target *t, const char *number)
{
	assert_int_equal(number_of(line, number), 1);
	assert_int_equal(number_of(line, "pid"), t->run.pid);
}

TEST(several_processes_are_distinguished)
{
	struct target t[2];
	struct outcome o;
	static char head[LINE];
	json_t *start, *watches, *line;
	size_t i, n = 0;

	watch_two(t, "json", NULL, head, 1, 20, &o);
	start = json_loads(head, 0, NULL);
	assert_non_null(start);
	watches = json_object_get(start, "watches");
	assert_int_equal(json_array_size(watches), 2);
	for (i = 0; i < 2; i++)
		expect_each(json_array_get(watches, i), &t[i], "id");
	/* what both do is told once */
	assert_int_equal(count_of(&o, "summary"), 1);
	line = first_of(&o, "summary");
	assert_int_equal(number_of(line, "count"), 20);
	assert_int_equal(json_array_size(json_object_get(line, "threads")), 2);
	json_decref(start);

	watch_two(t, "json", "--count", head, 1, 0, &o);
	assert_int_equal(count_of(&o, "count"), 2);
	json_array_foreach(o.lines, i, line) {
		if (strcmp(text_of(line, "type"), "count") != 0)
			continue;
		expect_each(line, &t[n++], "watch");
		assert_int_equal(number_of(line, "count"), 10);
	}
}

TEST(several_processes_in_text)
{
	struct target t[2];
	struct outcome o;
	static char head[3 * LINE];
	char text[128];

	watch_two(t, "text", "--count", head, 3, 0, &o);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(text, sizeof(text), "for writes in acts[%s]%s",
		    t[i].pid, i == 0 ? "," : "         2 processes, 2 threads");
		assert_holds(head, text);
		(void)snprintf(text, sizeof(text), "writes in acts[%s]\n",
		    t[i].pid);
		assert_holds(o.out, text);
	}
}

/* Map the victims' address here, too. */
static void
map_word(const char *addr)
{
	const uintptr_t page = strtoul(addr, NULL, 16) & ~(uintptr_t)0xfff;

	if (mmap((void *)page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		assert_int_equal(errno, EEXIST);
}

/* Some end before they are looked at, some while they are attached. */
TEST(processes_that_end_are_skipped)
{
	enum { SHORT = 24 };

	for (unsigned round = 0; round < 5; round++) {
		char list[SHORT * 12 + 32];
		struct target t;
		struct running w;
		struct outcome o;
		pid_t pid[SHORT];
		size_t n = 0;

		start_act(&t, "writer", "10");
		map_word(t.addr);
		for (unsigned i = 0; i < SHORT; i++) {
			if ((pid[i] = fork()) == 0) {
				(void)usleep(i * 1500);
				_exit(0);
			}
			assert_true(pid[i] > 0);
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%d,",
			    pid[i]);
		}
		(void)snprintf(list + n, sizeof(list) - n, "%s", t.pid);
		watch_start(&w, LIST(watchctl(), "-w", t.addr, "-o", "json",
		    "-p", list));
		assert_int_equal(target_act(&t), 10);
		target_end(&t, 7);
		for (unsigned i = 0; i < SHORT; i++)
			assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
		finish_status(&w, &o, 0);
		expect_hits(&o, 10);
	}
}

RUN_LIVE_TESTS()
