/*
 * kernel_memory: the kernel's own memory is watched, whoever has the kernel
 * touch it.  What is touched is a page of a file in memory, of which no process
 * but those that are started here knows; and what a file of /sys shows.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel_symbol.h"
#include "live.h"
#include "os/cpus.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"

/* How often the victim writes, and shells do; and how often a test is begun
   anew where the kernel has moved the page meanwhile. */
enum { WRITES = 200, SHELLS = 2, TRIES = 5 };

struct watched {
	struct target t;
	struct running w;
	pid_t shell[SHELLS];
	bool moved;
};

/* It takes root of the machine, as others' events do. */
static bool
possible(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_len = 8,
		.bp_addr = UINT64_C(0xffff888000000000),
	};
	int fd = wp_perf_open(&attr, -1, 0);

	if (fd >= 0)
		(void)close(fd);
	else if (fd != -ENOSPC) {
		print_message("perf_event_open, of the kernel's memory in all "
		    "processes: %s, not tried\n", strerror(-fd));
		return false;
	}
	return true;
}

/* A shell that writes a byte there, and has ended. */
static pid_t
write_by_shell(const struct target *t)
{
	char script[64];
	struct running sh;
	struct outcome o;

	(void)snprintf(script, sizeof(script), "printf x 1<> /proc/%s/fd/9",
	    t->pid);
	start(&sh, LIST("/bin/sh", "-c", script));
	finish_status(&sh, &o, 0);
	return sh.pid;
}

/* It watches on all processors: it says so, or has begun its recording. */
static void
await_watch(struct running *w, const char *recording)
{
	struct outcome o;
	struct stat st;
	char line[4096];

	if (recording == NULL) {
		hear(w, line, sizeof(line));
		if (strstr(line, "\"type\":\"start\"") == NULL &&
		    strstr(line, " for writes in all processes") == NULL) {
			finish(w, &o);
			fail_msg("watchctl did not begin: %s%s", line, o.err);
		}
		return;
	}
	for (unsigned ms = 0; stat(recording, &st) != 0 || st.st_size == 0;
	    ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
}

/* Watch so many bytes of the page, with these options, until all have written.
   A recording ends by itself. */
static void
watch_page(struct watched *all, const char *len, const char *recording,
    const char *const more[], struct outcome *o)
{
	const char *argv[ARGS];
	char spec[64];

	target_start(&all->t, LIST(victim("page"), "100"));
	(void)snprintf(spec, sizeof(spec), "%s:%s", all->t.addr, len);
	(void)append(argv, append(argv, 0, LIST(watchctl(), "-w", spec)),
	    more);
	start(&all->w, argv);
	await_watch(&all->w, recording);
	for (size_t i = 0; i < SHELLS; i++)
		all->shell[i] = write_by_shell(&all->t);
	all->moved = target_act(&all->t) != WRITES;
	if (recording == NULL || all->moved)
		(void)kill(all->w.pid, SIGINT);
	finish(&all->w, o);
	target_end(&all->t, 7);
	assert_true(o->status == 0 || all->moved);
}

/* The same, anew if the page has moved. */
static void
watch_page_still(struct watched *all, const char *len, const char *recording,
    const char *const more[], struct outcome *o)
{
	watch_page(all, len, recording, more, o);
	for (unsigned i = 1; all->moved; i++) {
		assert_true(i < TRIES);
		if (recording != NULL)
			(void)unlink(recording);
		watch_page(all, len, recording, more, o);
	}
}

static bool
has_frame(const json_t *hit, const char *function)
{
	const json_t *frame;
	size_t i;

	json_array_foreach(json_object_get(hit, "frames"), i, frame)
		if (strcmp(maybe_text(frame, "function"), function) == 0)
			return true;
	return false;
}

static bool
is_shell(const struct watched *all, pid_t pid)
{
	for (size_t i = 0; i < SHELLS; i++)
		if (all->shell[i] == pid)
			return true;
	return false;
}

/* Each write is a hit of who made it, in the kernel and in the program. */
static void
expect_writers(const struct watched *all, const struct outcome *o)
{
	/* who may not know its addresses sees no names of the kernel */
	const bool named = kernel_symbol("_text") != 0;
	unsigned by_target = 0, by_shells = 0;
	json_t *hit;
	size_t i;

	each_hit(o, i, hit) {
		const pid_t pid = (pid_t)number_of(hit, "pid");

		assert_string_equal(text_of(hit, "origin"), "kernel");
		assert_string_equal(text_of(hit, "access"), "write");
		assert_null(json_object_get(hit, "old"));
		assert_null(json_object_get(hit, "new"));
		assert_true(json_is_true(json_object_get(frame_of(hit, 0),
		    "kernel")));
		assert_true(!named || has_frame(hit, "vfs_write") ||
		    has_frame(hit, "ksys_pwrite64"));
		if (pid == all->t.run.pid) {
			assert_string_equal(text_of(hit, "comm"), "page");
			assert_string_equal(text_of(hit, "syscall"),
			    "pwrite64");
			assert_true(has_frame(hit, "write_page"));
			assert_true(has_frame(hit, "write_all"));
			by_target++;
		} else {
			assert_true(is_shell(all, pid));
			assert_string_equal(text_of(hit, "comm"), "sh");
			assert_string_equal(text_of(hit, "syscall"), "write");
			by_shells++;
		}
	}
	assert_int_equal(by_target, WRITES);
	assert_int_equal(by_shells, SHELLS);
}

TEST(the_writer_is_named)
{
	struct watched all;
	struct outcome o;

	if (!possible())
		return;
	watch_page_still(&all, "8", NULL, LIST("-o", "json"), &o);
	expect_writers(&all, &o);
	expect_hits(&o, WRITES + SHELLS);
	assert_int_equal(number_of(account_of(&o), "lost"), 0);
	assert_true(number_of(account_of(&o), "watched_ns") > 0);
	assert_int_equal(number_of(account_of(&o), "gap_ns"), 0);
}

TEST(as_text)
{
	struct watched all;
	struct outcome o;

	if (!possible())
		return;
	watch_page_still(&all, "1", NULL, LIST("--once"), &o);
	assert_holds(o.out, "write by pwrite64(2), fd 9");
	assert_holds(o.out, "     sh[");
	assert_holds(o.err, " processor");
}

/* Each process has its row. */
TEST(counts)
{
	struct watched all;
	struct outcome o;
	json_int_t sum = 0;
	json_t *line;
	size_t i;

	if (!possible())
		return;
	watch_page_still(&all, "1", NULL, LIST("--count", "-o", "json"), &o);
	json_array_foreach(o.lines, i, line)
		if (strcmp(text_of(line, "type"), "count") == 0)
			sum += number_of(line, "count");
	assert_int_equal(sum, WRITES + SHELLS);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    WRITES + SHELLS);
}

TEST_WITH(a_recording, scratch_make, scratch_remove)
{
	const char *file = scratch_path("perf.data");
	struct watched all;
	struct outcome o;

	if (!possible())
		return;
	watch_page_still(&all, "1", file, LIST("-o", "perf", "-O", file, "-n",
	    "202"), &o);
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "json", file));
	expect_writers(&all, &o);
	expect_hits(&o, WRITES + SHELLS);
}

/* What /sys/kernel/notes shows is copied from there. */
TEST(a_symbol)
{
	const uint64_t addr = kernel_symbol("__start_notes");
	struct running w, cat;
	struct outcome o, read;
	unsigned found[2] = {0, 0};
	char line[4096], hex[32];
	json_t *hit;
	size_t i;

	if (!possible())
		return;
	if (addr == 0 || access("/sys/kernel/notes", R_OK) != 0) {
		print_message("this kernel's notes are nowhere, not tried\n");
		return;
	}
	watch_hear(&w, LIST(watchctl(), "-o", "json", "-a",
	    "kernel!__start_notes:1", "-a", "kernel!__start_notes+8:2"), line);
	start(&cat, LIST("/bin/cat", "/sys/kernel/notes"));
	finish(&cat, &read);
	(void)kill(w.pid, SIGINT);
	finish(&w, &o);
	(void)account_of(&o);
	(void)snprintf(hex, sizeof(hex), "\"addr\":\"%#llx\"",
	    (unsigned long long)addr + 8);
	assert_holds(line, hex);
	assert_holds(line, "\"symbol\":\"__start_notes+8\"");
	assert_lacks(line, "\"pid\"");
	assert_lacks(line, "\"comm\"");
	each_hit(&o, i, hit) {
		if (number_of(hit, "pid") != cat.pid)
			continue;
		assert_string_equal(text_of(hit, "comm"), "cat");
		assert_string_equal(text_of(hit, "syscall"), "read");
		assert_string_equal(text_of(hit, "access"), "access");
		assert_true(has_frame(hit, "vfs_read"));
		found[number_of(hit, "watch") - 1]++;
	}
	assert_true(found[0] > 0 && found[1] > 0);
}

/* All of a thread's slots are taken. */
TEST(no_slot_is_free)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.exclude_kernel = 1, .bp_type = HW_BREAKPOINT_W, .bp_len = 8,
		.bp_addr = 8,
	};
	struct outcome o, both;
	int fd[WP_SLOTS_MAX], n = 0;

	if (!possible())
		return;
	while (n < WP_SLOTS_MAX && (fd[n] = wp_perf_open(&attr, 0, -1)) >= 0)
		n++;
	run(&o, LIST(watchctl(), "-w", "0xffff888000000000:8", "-t", "0.1"));
	run(&both, LIST(watchctl(), "-w", "0xffff888000000000:8", "-w",
	    "0xffff888000000010:8", "-t", "0.1"));
	while (n > 0)
		(void)close(fd[--n]);
	assert_int_equal(o.status, 125);
	assert_string_equal(o.out, "");
	assert_holds(o.err, "0xffff888000000000:8': no free slot: it "
	    "takes one in each thread of the machine");
	assert_int_equal(both.status, 125);
	assert_holds(both.err, "'0xffff888000000000:8', "
	    "'0xffff888000000010:8': no free slot: ");
	assert_int_equal(live_free_slots(getpid()), 4);
}

/* It is as if the second processor were offline, for events of all that runs
   there. */
static bool
without_processor(int cpu)
{
	const struct refuse_arg args[] = {
		{.index = 1, .value = UINT32_MAX},
		{.index = 2, .value = (uint32_t)cpu},
	};

	return refuse_call(SYS_perf_event_open, ENODEV, args, COUNT(args));
}

TEST(a_processor_is_offline)
{
	struct wp_cpus cpus;
	struct running w;
	struct outcome o;
	char ran[64];
	int online;

	if (!possible())
		return;
	if ((online = wp_cpus_online(&cpus)) < 2 || !cpus.has[1]) {
		print_message("there is one processor alone, not tried\n");
		return;
	}
	start_prepared(&w, LIST(watchctl(), "-w", "0xffff888000000000:8", "-t",
	    "0.1"), without_processor, 1);
	finish_status(&w, &o, 0);
	assert_holds(o.out, "warning: processor 1 runs and cannot be "
	    "watched");
	(void)snprintf(ran, sizeof(ran), " s that %d processor%s ran",
	    online - 1, online == 2 ? "" : "s");
	assert_holds(o.err, ran);
}

RUN_LIVE_TESTS()
