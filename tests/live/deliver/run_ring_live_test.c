/*
 * run_ring: the command in its usual mode.  The victims report how often they
 * wrote.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

static void
start_counter(struct target *t, const char *threads, const char *writes)
{
	target_start(t, LIST(victim("counter"), threads, writes));
}

/* Let the victim write and end. */
static void
let_write(struct target *t, int status)
{
	struct outcome o;

	say(&t->run, "go\nend\n");
	finish(&t->run, &o);
	assert_string_equal(o.out, "done\n");
	assert_int_equal(o.status, status);
}

/* Watch all that a victim does, with these options. */
static void
watch_counter(struct outcome *o, const char *threads, const char *writes,
    const char *const options[4])
{
	struct target t;
	struct running w;

	start_counter(&t, threads, writes);
	watch_start(&w, LIST(watchctl(), "-o", "json", "-p", t.pid, options[0],
	    options[1], options[2], options[3]));
	let_write(&t, 7);
	finish(&w, o);
}

TEST(every_write_of_every_thread)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096];
	json_t *hit, *tids = json_object();
	json_int_t seq = 0;
	size_t i;

	start_counter(&t, "3", "500");
	watch_hear(&w, LIST(watchctl(), "-w", t.addr, "-o", "json", "-p",
	    t.pid), line);
	assert_holds(line, "\"schema\":\"watchctl/1\"");
	assert_holds(line, "\"frozen_ms\":");
	let_write(&t, 7);
	finish_status(&w, &o, 0);
	expect_hits(&o, 1500);
	json_array_foreach(o.lines, i, hit) {
		char tid[32];

		if (strcmp(text_of(hit, "type"), "hit") != 0)
			continue;
		assert_int_equal(number_of(hit, "seq"), ++seq);
		assert_int_equal(number_of(hit, "pid"), atoi(t.pid));
		assert_string_equal(text_of(hit, "addr"), t.addr);
		assert_string_equal(text_of(hit, "origin"), "user");
		assert_memory_equal(text_of(hit, "comm"), "worker ", 7);
		expect_chain(hit);
		(void)snprintf(tid, sizeof(tid), "%d",
		    (int)number_of(hit, "tid"));
		(void)json_object_set_new(tids, tid, json_true());
	}
	assert_int_equal(json_object_size(tids), 3);
	json_decref(tids);
	assert_holds(o.err, "1500 hits, ");
}

TEST(a_symbol_and_a_system_call)
{
	struct outcome o;
	json_t *hit;

	watch_counter(&o, "1", "1", (const char *[4]){"-w", "filled"});
	if (strstr(o.err, "kernel's accesses") != NULL)
		fail_msg("run as a user who may watch the kernel: %s", o.err);
	expect_hits(&o, 1);
	hit = first_of(&o, "hit");
	assert_string_equal(text_of(hit, "origin"), "kernel");
	assert_string_equal(text_of(hit, "syscall"), "read");
}

TEST(user_only_leaves_the_kernel_out)
{
	struct outcome o;

	watch_counter(&o, "1", "1",
	    (const char *[4]){"--user-only", "-w", "filled"});
	expect_hits(&o, 0);
}

TEST(a_command_keeps_its_output_and_status)
{
	char report[] = "/tmp/watch_test.XXXXXX";
	int fd = mkstemp(report);
	struct running w;
	struct outcome o;

	assert_true(fd >= 0);
	(void)close(fd);
	start(&w, LIST(watchctl(), "-w", "counter", "-o", "json", "-O", report,
	    "--", victim("counter"), "2", "50"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	assert_memory_equal(o.out, "pid ", 4);
	assert_holds(o.out, "\ndone\n");
	assert_lacks(o.out, "hit");
	assert_holds(o.err, "100 hits, 100 reported, 0 lost");
	outcome_take(&o, report);
	expect_hits(&o, 100);
	assert_int_equal(number_of(first_of(&o, "end"), "status"), 7);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "exit");
	(void)unlink(report);
}

TEST(exit_statuses)
{
	static const struct {
		const char *command[4];
		int status;
	} cases[] = {
		{{"/bin/sh", "-c", "exit 3"}, 3},
		{{"/bin/sh", "-c", "kill -TERM $$"}, 128 + SIGTERM},
		{{"/bin/sh", "-c", "kill -SEGV $$"}, 128 + SIGSEGV},
		{{"/nonexistent/command"}, 127},
		{{"no-such-command-anywhere"}, 127},
		{{"/etc/passwd"}, 126},
		{{"/"}, 126},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const *c = cases[i].command;
		struct outcome o;

		run(&o, LIST(watchctl(), "-w", "environ", "--", c[0], c[1],
		    c[2]));
		if (o.status != cases[i].status)
			fail_msg("%s %s: status %d: %s", c[0],
			    c[2] == NULL ? "" : c[2], o.status, o.err);
	}
}

TEST(ends_after_n_hits)
{
	struct target t;
	struct running w;
	struct outcome o;

	start_counter(&t, "2", "2000");
	watch_start(&w, LIST(watchctl(), "-n", "5", "-w", "counter", "-o",
	    "json", "-p", t.pid));
	say(&t.run, "go\n");
	finish_status(&w, &o, 0);
	expect_hits(&o, 5);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "count");
	say(&t.run, "end\n");
	finish_status(&t.run, &o, 7);

	/* also if the program has ended before the last of them is read */
	run_status(&o, 0, LIST(watchctl(), "-n", "4", "-w", "word", "-o",
	    "json", "-O", "-", "--", victim("acts"), "at_once", "20"));
	expect_hits(&o, 4);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "count");
}

TEST(ends_after_a_time_and_by_a_signal)
{
	struct target t;
	struct running w;
	struct outcome o;

	start_counter(&t, "1", "1");
	run_status(&o, 0, LIST(watchctl(), "-t", "0.2", "-w", "counter", "-o",
	    "json", "-p", t.pid));
	expect_hits(&o, 0);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "time");
	watch_start(&w, LIST(watchctl(), "-w", "counter", "-o", "json", "-p",
	    t.pid));
	(void)kill(w.pid, SIGINT);
	finish_status(&w, &o, 0);
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "signal");
	let_write(&t, 7);
}

TEST(count_only)
{
	struct outcome o;

	watch_counter(&o, "4", "1000",
	    (const char *[4]){"--count", "-w", "counter"});
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 4000);
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), 4000);
	assert_int_equal(count_of(&o, "hit"), 0);
}

TEST(folded_stacks)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), "-w", "counter", "-o", "folded", "--",
	    victim("counter"), "1", "20"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	assert_holds(o.err, ";level2;level1;bump 20\n");
}

/* What is not delivered in time is lost, counted and told. */
TEST(the_lost_are_counted)
{
	struct target t;
	struct running w;
	struct outcome o;

	start_counter(&t, "1", "40000");
	watch_start(&w, LIST(watchctl(), "-w", "counter", "-o", "json",
	    "--stack", "32768", "-p", t.pid));
	(void)kill(w.pid, SIGSTOP);
	let_write(&t, 7);
	(void)kill(w.pid, SIGCONT);
	finish(&w, &o);
	expect_hits(&o, 40000);
	assert_true(number_of(first_of(&o, "end"), "lost") > 0);
	assert_true(count_of(&o, "lost") > 0);
}

TEST(several_slots_are_one_watch)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096], spec[64];

	start_counter(&t, "1", "30");
	/* from 2 below the counter, 7 bytes: 2 + 4 + 1 */
	(void)snprintf(spec, sizeof(spec), "%#llx:7",
	    strtoull(t.addr, NULL, 16) - 2);
	watch_hear(&w, LIST(watchctl(), "-w", spec, "-o", "json", "-p", t.pid),
	    line);
	assert_holds(line, "\"slots\":3");
	let_write(&t, 7);
	finish(&w, &o);
	expect_hits(&o, 30 + (count_of(&o, "hit") > 30));
}

/* A place in the heap, as known from the run before: nothing is there when the
   watch begins. */
TEST(an_address_that_is_mapped_later)
{
	static const char *const modes[] = {
		"--user-only", "--stop", "--inside", "--count",
	};

	scratch_write("heap.c", "#include <stdio.h>\n#include <stdlib.h>\n"
	    "int main(void)\n{\n	volatile long *p = malloc(999);\n"
	    "	p[20] = 7;\n	printf(\"%p\", (void *)&p[20]);\n"
	    "	return 3;\n}\n");
	scratch_run("%s -g -o heap heap.c", getenv("CC"));
	for (size_t i = 0; i < COUNT(modes); i++) {
		char spec[80] = "0x10000:8", said[64] = "";

		for (unsigned run_of_two = 0; run_of_two < 2; run_of_two++) {
			struct outcome o;

			run(&o, LIST(watchctl(), "--no-aslr", modes[i], "-w",
			    spec, "--", scratch_path("heap")));
			if (o.status != 3 || strstr(o.err, run_of_two == 0 ?
			    "watchctl: 0 hits, 0 reported, 0 lost\n" :
			    "watchctl: 1 hit, 1 reported, 0 lost\n") == NULL)
				fail_msg("%s %s: status %d: %s", modes[i],
				    spec, o.status, o.err);
			if (strstr(o.err, ":8 is not mapped yet") == NULL)
				fail_msg("%s: %s", modes[i], o.err);
			if (run_of_two == 1)
				assert_string_equal(o.out, said);
			(void)snprintf(said, sizeof(said), "%s", o.out);
			(void)snprintf(spec, sizeof(spec), "%s:8", said);
		}
	}
}

/* What the test itself is, a command is too, unless it is asked for. */
TEST(addresses_are_random_by_default)
{
	const unsigned own = (unsigned)personality(0xffffffff);
	struct outcome o;
	char said[32];

	(void)snprintf(said, sizeof(said), "%08x\n", own);
	run(&o, LIST(watchctl(), "-w", "0x10000:8", "--", "/bin/cat",
	    "/proc/self/personality"));
	assert_string_equal(o.out, said);
	assert_holds(o.err, "not mapped yet");
	assert_holds(o.err, "--no-aslr");
	run(&o, LIST(watchctl(), "--no-aslr", "-w", "0x10000:8", "--",
	    "/bin/cat", "/proc/self/personality"));
	(void)snprintf(said, sizeof(said), "%08x\n", own | ADDR_NO_RANDOMIZE);
	assert_string_equal(o.out, said);
}

/* Each delivery says when it began by the time of day. */
TEST(the_time_of_day)
{
	static const char *const modes[] = {"--user-only", "--stop",
	    "--inside"};

	for (size_t i = 0; i < COUNT(modes); i++) {
		const time_t before = time(NULL);
		struct tm tm = {0};
		struct outcome o;
		time_t wall;

		run(&o, LIST(watchctl(), modes[i], "-w", "0x10000:8", "-o",
		    "json", "-O", "-", "--", "/bin/true"));
		assert_non_null(strptime(text_of(first_of(&o, "start"),
		    "wall"), "%Y-%m-%dT%H:%M:%S", &tm));
		wall = timegm(&tm);
		assert_true(before <= wall && wall <= time(NULL));
	}
}

/* How many hits are whole in a report. */
static unsigned
whole_hits(const char *name)
{
	char *text = scratch_read(name, NULL), *at = text, *end;
	unsigned n = 0;

	for (; (end = strchr(at, '\n')) != NULL; at = end + 1)
		n += strncmp(at, "{\"type\":\"hit\"", 13) == 0;
	return n;
}

/* The account agrees with the file, wherever that ends. */
static void
expect_incomplete(const struct outcome *o, unsigned whole, const char *why)
{
	const char *account = strstr(o->err, "watchctl: ");
	unsigned hits, reported, lost;

	if (account == NULL || sscanf(account, "watchctl: %u hits, %u "
	    "reported, %u lost", &hits, &reported, &lost) != 3)
		fail_msg("no account: %s", o->err);
	if (o->status != 125 || hits != reported + lost || reported != whole)
		fail_msg("status %d, %u in the file: %s", o->status, whole,
		    o->err);
	assert_holds(o->err, "the report is incomplete");
	assert_holds(o->err, why);
}

/* A limit of so many blocks of 512 bytes, and of none. */
TEST(a_report_on_a_full_disk)
{
	static const struct {
		const char *mode;
		unsigned blocks;
	} cases[] = {
		{"--user-only", 0}, {"--user-only", 8}, {"--user-only", 40},
		{"--stop", 8}, {"--stop", 40},
	};
	struct outcome o;

	scratch_write("many.c", "volatile long counter;\n"
	    "static __attribute__((noinline)) void set(long i) { counter = i; }"
	    "\nint main(void) { for (long i = 0; i < 48; i++) set(i); "
	    "return 5; }\n");
	scratch_run("%s -g -O1 -o many many.c", getenv("CC"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		char command[2 * PATH_MAX];

		(void)unlink(scratch_path("report"));
		(void)snprintf(command, sizeof(command), "ulimit -f %u; cd %s; "
		    "exec %s %s -w counter -o json -O report -- ./many",
		    cases[i].blocks, scratch_dir, watchctl(), cases[i].mode);
		run(&o, LIST("/bin/sh", "-c", command));
		expect_incomplete(&o, whole_hits("report"), "File too large");
	}
	run(&o, LIST(watchctl(), "-w", "counter", "-O", "/dev/full", "--",
	    scratch_path("many")));
	expect_incomplete(&o, 0, "No space left");
}

/* Then the status says what nobody reads. */
TEST(an_account_on_a_full_disk)
{
	char command[2 * PATH_MAX];
	struct outcome o;

	(void)snprintf(command, sizeof(command), "exec %s -o json -O /dev/null "
	    "-w 0x10000:8 -- /bin/true 2> /dev/full", watchctl());
	run_status(&o, 125, LIST("/bin/sh", "-c", command));
	/* the command dies of the signal as ever */
	run(&o, LIST(watchctl(), "-w", "0x10000:8", "--", "/bin/sh", "-c",
	    "kill -XFSZ $$; exit 1"));
	assert_int_equal(o.status, 128 + SIGXFSZ);
}

/* Of the account on stderr. */
static unsigned long
said_number(const char *err, const char *unit)
{
	const char *at = strstr(err, unit);

	assert_non_null(at);
	while (at > err && strchr("0123456789 ", at[-1]) != NULL)
		at--;
	return strtoul(at, NULL, 10);
}

/* Four threads write at once, and only then the report is read, which watchctl
   waits for meanwhile. */
static void
write_unread(const char *buffer, unsigned long *reported, unsigned long *lost)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096];

	start_counter(&t, "4", "10000");
	/* BPF programs would copy less of the stacks */
	start(&w, LIST(watchctl(), "-w", t.addr, "-p", t.pid, "--buffer",
	    buffer, "--delivery=ring"));
	hear(&w, line, sizeof(line));
	let_write(&t, 7);
	finish_status(&w, &o, 0);
	assert_int_equal(said_number(o.err, " hits, "), 40000);
	*reported = said_number(o.err, " reported, ");
	*lost = said_number(o.err, " lost");
	assert_int_equal(*reported + *lost, 40000);
	assert_holds(o.out, "#1 ");
}

/* 170 MB, of which the rings hold 64 at most. */
TEST(what_is_not_explained_yet_waits_in_memory)
{
	unsigned long reported, lost;

	write_unread("256M", &reported, &lost);
	assert_int_equal(lost, 0);
}

TEST(memory_is_bounded_and_what_is_lost_is_counted)
{
	unsigned long reported, lost;

	write_unread("2M", &reported, &lost);
	assert_true(reported > 0);
	assert_true(lost > 10000);
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
