/*
 * mappers: what processes do to a file that they have mapped shared, whoever
 * they are and wherever it is.
 */
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live.h"
#include "watching.h"

/* A file of this test's own, of which byte 4160 is watched; as SPECs. */
static char name[64], path[80], shm[96], file[96];

static int
make_file(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(name, sizeof(name), "/mappers_live_test.%d",
	    (int)getpid());
	(void)snprintf(path, sizeof(path), "/dev/shm%s", name);
	(void)snprintf(shm, sizeof(shm), "shm:%s+4160", name);
	(void)snprintf(file, sizeof(file), "file:%s+0x1040:4", path);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 16384), 0);
	(void)close(fd);
	return 0;
}

static int
remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* A victim; now: it has mapped the file. */
static void
start_sharer(struct target *t, const char *now)
{
	target_start(t, LIST(victim("shares"), path, now));
}

static void
tell(struct target *t, const char *what)
{
	say(&t->run, what);
	(void)target_done(&t->run);
}

/* The same, and wait until watchctl says that this comes of it. */
static void
tell_until(struct target *t, const char *what, struct running *w,
    const char *event)
{
	tell(t, what);
	await(w->out, event);
}

#define ARMED "\"event\":\"armed\""
#define DISARMED "\"event\":\"disarmed\""

/* The hits, by process and the new value. */
struct wanted {
	const struct target *by;
	const char *value;
};

static void
expect_writes(const struct outcome *o, const struct wanted *wanted, size_t n)
{
	expect_hits(o, (json_int_t)n);
	for (size_t i = 0; i < n; i++) {
		const json_t *hit = hit_at(o, i);

		assert_int_equal(number_of(hit, "watch"), 1);
		assert_string_equal(maybe_text(hit, "new"), wanted[i].value);
		assert_null(json_object_get(hit, "old"));
		expect_function(hit, 0, "put");
		if (wanted[i].by != NULL)
			assert_int_equal(number_of(hit, "pid"),
			    wanted[i].by->run.pid);
	}
}

#define EXPECT_WRITES(o, ...) do {					\
	const struct wanted wanted_[] = {__VA_ARGS__};			\
									\
	expect_writes(o, wanted_, sizeof(wanted_) / sizeof(*wanted_));	\
} while (0)

/* One has it mapped, one comes, and one has its own copy of it. */
TEST_WITH(all_that_map_it, make_file, remove_file)
{
	struct target a, b, c;
	struct running w;
	struct outcome o;

	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-n", "4"));
	start_sharer(&b, NULL);
	start_sharer(&c, NULL);
	tell(&c, "private\n");
	tell_until(&b, "shared\n", &w, ARMED);
	tell(&c, "write 9\n");
	tell(&a, "write 1\n");
	tell(&b, "write 2\n");
	tell(&b, "beside 9\n");
	tell(&a, "write 3\n");
	tell(&b, "write 4\n");
	finish(&w, &o);
	target_end(&a, 7);
	target_end(&b, 7);
	target_end(&c, 7);
	EXPECT_WRITES(&o, {&a, "0x1"}, {&b, "0x2"}, {&a, "0x3"}, {&b, "0x4"});
	assert_null(first_of(&o, "warning"));
}

/* It maps it twice, and its child has both mappings without a gap. */
TEST_WITH(several_addresses, make_file, remove_file)
{
	struct target a, b;
	struct running w;
	struct outcome o;

	start_sharer(&a, NULL);
	start_sharer(&b, "now");	/* it was not asked for */
	watch_start(&w, LIST(watchctl(), "-w", file, "-o", "json", "-f", "-p",
	    a.pid, "-n", "4"));
	tell_until(&a, "shared\n", &w, ARMED);
	tell_until(&a, "shared\n", &w, ARMED);
	tell(&b, "write 9\n");
	tell(&a, "first 1\n");
	tell(&a, "write 2\n");
	tell(&a, "child 3\n");
	finish(&w, &o);
	target_end(&a, 7);
	target_end(&b, 7);
	EXPECT_WRITES(&o, {&a, "0x1"}, {&a, "0x2"}, {NULL, "0x3"},
	    {NULL, "0x3"});
	assert_string_not_equal(text_of(hit_at(&o, 0), "addr"),
	    text_of(hit_at(&o, 1), "addr"));
	assert_int_not_equal(number_of(hit_at(&o, 2), "pid"), a.run.pid);
}

/* What comes in place of a mapping is not told as the file, whether it leaves a
   record (cover) or not (move). */
static void
replace(const char *how)
{
	struct target a;
	struct running w;
	struct outcome o;

	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-p", a.pid));
	tell_until(&a, "first 1\n", &w, "\"new\":\"0x1\"");
	tell(&a, how);
	tell(&a, "first 9\n");
	await(w.out, DISARMED);
	tell(&a, "first 9\n");
	tell_until(&a, "shared\n", &w, ARMED);
	tell(&a, "write 2\n");
	target_end(&a, 7);
	finish(&w, &o);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 2);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
	assert_int_equal(count_of(&o, "hit"), 1);
	assert_string_equal(text_of(hit_at(&o, 0), "new"), "0x2");
	assert_string_equal(text_of(first_of(&o, "end"), "reason"), "exit");
}

TEST_WITH(a_mapping_is_covered, make_file, remove_file)
{
	replace("cover\n");
}

TEST_WITH(another_one_is_moved_there, make_file, remove_file)
{
	replace("move\n");
}

/* A slot is free again when a mapping has gone, and nothing was written. */
TEST_WITH(a_mapping_goes, make_file, remove_file)
{
	struct target a;
	struct running w;
	struct outcome o;

	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-n", "1"));
	tell_until(&a, "unmap\n", &w, DISARMED);
	live_await_free_slots(a.run.pid, live_features.caps.slots);
	tell_until(&a, "shared\n", &w, ARMED);
	tell(&a, "write 5\n");
	finish(&w, &o);
	target_end(&a, 7);
	EXPECT_WRITES(&o, {&a, "0x5"});
}

/* That leaves no record: it is found by looking, and is not vouched for. */
TEST_WITH(a_mapping_is_moved, make_file, remove_file)
{
	struct target a;
	struct running w;
	struct outcome o;

	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-p", a.pid,
	    "--allow", "put", "--error-exitcode", "66"));
	tell_until(&a, "write 1\n", &w, "\"new\":\"0x1\"");
	tell_until(&a, "away\n", &w, "\"gap_us\":");
	tell_until(&a, "write 2\n", &w, "\"new\":\"0x2\"");
	target_end(&a, 7);
	finish_status(&w, &o, 120);
	assert_holds(o.err, "had mapped what is watched");
}

/* A command maps it later, and has its own status. */
TEST_WITH(a_command, make_file, remove_file)
{
	struct running w;
	struct outcome o;
	char line[4096];

	watch_hear(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-O", "-",
	    "--", victim("shares"), path), line);
	assert_holds(line, "\"pending\":true");
	await(w.out, "file 0x0");
	say(&w, "shared\n");
	await(w.out, ARMED);
	say(&w, "write 6\n");
	await(w.out, "\"new\":\"0x6\"");
	finish_status(&w, &o, 7);
}

TEST_WITH(what_was_unwatched_is_not_vouched_for, make_file, remove_file)
{
	struct target a;
	struct running w;
	struct outcome o;

	start_sharer(&a, NULL);
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-p", a.pid,
	    "--allow", "put", "--error-exitcode", "66"));
	tell_until(&a, "shared\n", &w, ARMED);
	tell(&a, "write 1\n");
	target_end(&a, 7);
	finish_status(&w, &o, 120);
	assert_holds(o.err, "had mapped what is watched");
	run_status(&o, 120, LIST(watchctl(), "-w", shm, "-t", "0.1",
	    "--error-exitcode", "66", "-O", "/dev/null"));
	assert_holds(o.err, "nothing was ever watched");
}

/* Fill the ring of the processor that this runs on. */
static void
map_much(void)
{
	for (int i = 0; i < 30000; i++) {
		void *p = mmap(NULL, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);

		assert_ptr_not_equal(p, MAP_FAILED);
		(void)munmap(p, 1);
	}
}

/* While watchctl does not run, so much is mapped that records of it are lost:
   what was mapped then is found by looking, and that something was missed is
   said. */
TEST_WITH(records_that_are_lost, make_file, remove_file)
{
	char line[4096] = "";
	struct target a;
	struct running w;
	struct outcome o;
	cpu_set_t all, one;

	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-n", "1",
	    "--allow", "put", "--error-exitcode", "66"));
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	start_sharer(&a, NULL);
	(void)kill(w.pid, SIGSTOP);
	await_state(w.pid, "T");
	map_much();
	tell(&a, "shared\n");
	(void)kill(w.pid, SIGCONT);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	while (strstr(line, ARMED) == NULL) {
		hear(&w, line, sizeof(line));
		assert_string_not_equal(line, "");
	}
	assert_holds(line, "\"gap_us\":");
	tell(&a, "write 1\n");
	finish(&w, &o);
	target_end(&a, 7);
	assert_int_equal(o.status, 120);
	assert_holds(o.err, "may have been lost");
}

TEST_WITH(refused, make_file, remove_file)
{
	static const struct {
		const char *spec, *option, *why;
	} cases[] = {
		{"shm:/no_such_memory+0", NULL, "there is no such shared"},
		{"file:/no_such_file+0", NULL, "No such file"},
		{"file:/dev/null+0", NULL, "is not a regular file"},
		{"file:/dev/shm+0", NULL, "is not a regular file"},
		{NULL, "--stop", "leave out --stop"},
		{NULL, "--count", "leave out --count"},
		{NULL, "--exe=/no_such_file", "No such file"},
		{NULL, "-wcounter", "one at a time"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome o;

		run_status(&o, 125, LIST(watchctl(), "-w", cases[i].spec == NULL
		    ? shm : cases[i].spec, "-t1", cases[i].option));
		assert_string_equal(o.out, "");
		if (strstr(o.err, cases[i].why) == NULL)
			fail_msg("no \"%s\" in: %s", cases[i].why, o.err);
	}
}

/* It takes two slots, or lies on two pages, or takes more than there are. */
TEST_WITH(several_slots, make_file, remove_file)
{
	struct target a;
	struct running w;
	struct outcome o;
	char spec[128];

	(void)snprintf(spec, sizeof(spec), "shm:%s+4152:16", name);
	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", spec, "-o", "json", "-n", "1",
	    "-p", a.pid));
	tell(&a, "beside 9\n");
	tell(&a, "write 1\n");
	finish(&w, &o);
	target_end(&a, 7);
	EXPECT_WRITES(&o, {&a, "0x1"});
	(void)snprintf(spec, sizeof(spec), "shm:%s+4090:12", name);
	run_status(&o, 0, LIST(watchctl(), "-w", spec, "-t", "0.1", "-O",
	    "/dev/null"));
	(void)snprintf(spec, sizeof(spec), "shm:%s+4090:64", name);
	run_status(&o, 125, LIST(watchctl(), "-w", spec, "-t", "0.1"));
	assert_holds(o.err, "slots");
}

/* Of all that map it, those are watched that execute this file. */
TEST_WITH(processes_of_a_program, make_file, remove_file)
{
	char copy[64];
	struct target a, b;
	struct running w;
	struct outcome o;

	(void)snprintf(copy, sizeof(copy), "./shares.%d", (int)getpid());
	run(&o, LIST("/bin/cp", victim("shares"), copy));
	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "--exe",
	    copy, "-n", "1"));
	target_start(&b, LIST(copy, path));
	tell_until(&b, "shared\n", &w, ARMED);
	tell(&a, "write 9\n");
	tell(&b, "write 1\n");
	finish(&w, &o);
	target_end(&a, 7);
	target_end(&b, 7);
	(void)unlink(copy);
	EXPECT_WRITES(&o, {&b, "0x1"});
}

/* The flight recorder keeps hits of the file alone. */
TEST_WITH(the_last_hits, make_file, remove_file)
{
	struct target a;
	struct running w;
	struct outcome o;

	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "--last", "1",
	    "-p", a.pid));
	tell(&a, "first 1\n");
	tell(&a, "first 2\n");
	tell(&a, "cover\n");
	tell(&a, "first 9\n");
	target_end(&a, 7);
	finish(&w, &o);
	assert_int_equal(count_of(&o, "hit"), 1);
	assert_string_equal(text_of(hit_at(&o, 0), "new"), "0x2");
}

/* The file becomes shorter, and has its bytes again. */
TEST_WITH(the_file_is_cut, make_file, remove_file)
{
	struct target a;
	struct running w;
	struct outcome o;

	start_sharer(&a, "now");
	watch_start(&w, LIST(watchctl(), "-w", shm, "-o", "json", "-p", a.pid));
	tell_until(&a, "write 1\n", &w, "\"new\":\"0x1\"");
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(path, 16384), 0);
	/* it is looked at five times a second */
	for (int i = 0; i < 40; i++) {
		tell(&a, "write 2\n");
		(void)usleep(20000);
	}
	target_end(&a, 7);
	finish(&w, &o);
	assert_true(count_of(&o, "hit") > 5);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 41);
}

/* It needs its last byte. */
TEST_WITH(beyond_the_end, make_file, remove_file)
{
	struct outcome o;
	char spec[128];

	(void)snprintf(spec, sizeof(spec), "shm:%s+16383:2", name);
	run_status(&o, 125, LIST(watchctl(), "-w", spec, "-t1"));
	assert_holds(o.err, "ends at byte 16385");
}

/* Those that have ended keep no descriptor. */
TEST_WITH(more_processes_than_descriptors, make_file, remove_file)
{
	const int limit = 60 + 8 * (int)sysconf(_SC_NPROCESSORS_CONF);
	char line[512];
	struct running w;
	struct outcome o;

	(void)snprintf(line, sizeof(line), "ulimit -n %d; exec %s -w %s "
	    "-o json", limit, watchctl(), shm);
	watch_start(&w, LIST("/bin/sh", "-c", line));
	for (int i = 0; i < limit; i++) {
		struct target a;

		start_sharer(&a, "now");
		await(w.out, ARMED);
		target_end(&a, 7);
	}
	(void)kill(w.pid, SIGINT);
	finish(&w, &o);
	assert_null(first_of(&o, "warning"));
}

#if !SANITIZED	/* which needs more addresses */
/* What is too wide is refused before any of it is had in memory. */
TEST_WITH(more_than_slots, make_file, remove_file)
{
	struct outcome o;
	char line[512];

	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	(void)snprintf(line, sizeof(line), "ulimit -v 16777216; exec %s "
	    "-w 'shm:%s+0:1099511627776' -t1", watchctl(), name);
	run_status(&o, 125, LIST("/bin/sh", "-c", line));
	assert_holds(o.err, "slots, and this processor has");
}
#endif

RUN_LIVE_TESTS()
