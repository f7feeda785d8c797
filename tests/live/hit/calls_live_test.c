/*
 * calls: the kernel's accesses on a program's behalf.  Each system call makes
 * one hit, with its name and its arguments.  Victims make each of the calls.
 */
#include "test.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

enum { TIMES = 2 };		/* each call is made so often */

/* What is said of a call's hits.  file: that its descriptor is open on */
static const struct row {
	const char *act, *syscall;
	json_int_t bytes;	/* 0: not known */
	json_int_t len;
	const char *file;	/* "": a descriptor of any; NULL: none */
	const char *access;	/* NULL: it writes */
	const char *function;	/* who calls; NULL: do_ACT */
} rows[] = {
	{"read", "read", 64, 8, "exe"},
	{"short_read", "read", 64, 3, ""},
	{"byte", "read", 1, 1, "exe"},
	{"pread64", "pread64", 64, 8, "exe"},
	{"readv", "readv", 16, 8, "exe"},
	{"readv_apart", "readv", 0, 8, "exe"},
	{"preadv", "preadv", 16, 8, "exe"},
	{"recvfrom", "recvfrom", 32, 8, ""},
	{"recvmsg", "recvmsg", 16, 8, ""},
	{"recvmmsg", "recvmmsg", 24, 8, ""},
	{"getrandom", "getrandom", 8, 8, NULL},
	{"fstat", "fstat", 144, 8, "exe"},
	{"stat", "stat", 144, 8, NULL},
	{"newfstatat", "newfstatat", 144, 8, "exe"},
	{"statx", "statx", 256, 8, NULL},
	{"getdents64", "getdents64", 4096, 8, "/"},
	{"clock_gettime", "clock_gettime", 16, 8, NULL},
	{"gettimeofday", "gettimeofday", 16, 8, NULL},
	{"wait4", "wait4", 4, 4, NULL},
	{"waitid", "waitid", 128, 8, NULL},
	{"uname", "uname", 390, 8, NULL},
	{"sysinfo", "sysinfo", 112, 8, NULL},
	{"getrusage", "getrusage", 144, 8, NULL},
	{"poll", "poll", 8, 2, NULL},
	{"select", "select", 8, 8, NULL},
	{"epoll_wait", "epoll_wait", 48, 8, ""},
	{"pipe", "pipe", 8, 8, NULL},
	{"pipe2", "pipe2", 8, 8, NULL},
	{"socketpair", "socketpair", 8, 8, NULL},
	{"getsockname", "getsockname", 2, 2, ""},
	{"accept4", "accept4", 2, 2, ""},
	{"getsockopt", "getsockopt", 4, 4, ""},
	{"ioctl", "ioctl", 0, 4, ""},
	{"ioctl_sized", "ioctl", 4, 4, ""},
	{"msgrcv", "msgrcv", 24, 8, NULL},
	{"msgctl", "msgctl", 0, 8, NULL},
	{"futex", "futex", 4, 4, NULL},
	{"rt_sigaction", "rt_sigaction", 32, 8, NULL},
	{"rt_sigprocmask", "rt_sigprocmask", 8, 8, NULL},
	{"sigaltstack", "sigaltstack", 24, 8, NULL},
	{"io_getevents", "io_getevents", 64, 8, NULL},
	{"nanosleep", "nanosleep", 16, 8, NULL},
	{"prctl", "prctl", 0, 8, NULL},
	{"getcwd", "getcwd", 4096, 0, NULL},
	{"readlink", "readlink", 100, 8, NULL},
	{"process_vm_readv", "process_vm_readv", 24, 8, NULL},
	{"clone", "clone", 4, 4, NULL},
};

/* With a watch on any access; the last ones could be either by their calls. */
static const struct row reads[] = {
	{"write", "write", 16, 8, "", "read"},
	{"sendto", "sendto", 16, 8, "", "read"},
	{"writev", "writev", 16, 8, "", "read"},
	{"execve", "execve", 0, 8, NULL, "read"},
	{"prctl", "prctl", 0, 8, NULL, "write"},
	{"ioctl", "ioctl", 0, 4, "", "write"},
};

/* For who may not watch the kernel's accesses there is nothing to test. */
static void
need_the_kernel(void)
{
	if (live_features.kernel && live_features.callchain)
		return;
	print_message("the kernel's accesses may not be watched\n");
	skip();
}

/* --- hits as they come --- */

/* A victim that is to make these calls. */
static void
start_calls(struct target *t, const char *acts, int times)
{
	char n[16];

	(void)snprintf(n, sizeof(n), "%d", times);
	target_start(t, LIST(victim("calls"), acts, n));
}

/* The bytes from its area on. */
static const char *
bytes(const struct target *t, unsigned n)
{
	static char spec[2][64];
	static unsigned turn;

	turn ^= 1;
	(void)snprintf(spec[turn], sizeof(spec[turn]), "%s:%u", t->addr, n);
	return spec[turn];
}

static bool
is_kernels(const json_t *line)
{
	return is_hit(line) && strcmp(text_of(line, "origin"), "kernel") == 0;
}

/* The next hit of the kernel's that watchctl reports; to be released. */
static json_t *
hear_kernels(struct running *w)
{
	for (;;) {
		static char text[65536];
		json_error_t error;
		json_t *line;

		hear(w, text, sizeof(text));
		line = json_loads(text, 0, &error);
		if (line == NULL)
			fail_msg("%s: \"%s\"", error.text, text);
		if (strcmp(text_of(line, "type"), "end") == 0)
			fail_msg("no more hits: %s", text);
		if (is_kernels(line))
			return line;
		json_decref(line);
	}
}

/* The frames: the kernel's, then the C library's, then the program's. */
static void
expect_frames(const json_t *hit, const struct row *row)
{
	char function[64];
	const char *found = "";
	size_t i = 0, n = json_array_size(json_object_get(hit, "frames"));

	(void)snprintf(function, sizeof(function), "do_%s", row->act);
	assert_true(json_is_true(json_object_get(frame_of(hit, 0), "kernel")));
	while (i < n && json_is_true(json_object_get(frame_of(hit, (int)i),
	    "kernel")))
		i++;
	assert_true(i < n);
	assert_holds(maybe_text(frame_of(hit, (int)i), "module"), "libc");
	for (; i < n && strcmp(found, function) != 0; i++)
		found = maybe_text(frame_of(hit, (int)i), "function");
	assert_string_equal(found, function);
	expect_complete(hit);
}

static void
expect_file(const json_t *hit, const struct row *row, const char *exe)
{
	const char *file = maybe_text(hit, "file");

	assert_int_equal(json_object_get(hit, "fd") != NULL,
	    row->file != NULL);
	if (row->file != NULL && *row->file != '\0')
		assert_string_equal(file, strcmp(row->file, "exe") == 0 ? exe :
		    row->file);
	assert_string_equal(maybe_text(hit, "file_source"),
	    *file != '\0' ? "later" : "");
}

static void
expect_row(const json_t *hit, const struct row *row, const char *exe)
{
	json_t *size = json_object_get(hit, "syscall_bytes");

	if (strcmp(maybe_text(hit, "syscall"), row->syscall) != 0 ||
	    json_integer_value(size) != row->bytes ||
	    (row->len != 0 && number_of(hit, "len") != row->len))
		fail_msg("%s: %s, %lld of %lld bytes", row->act,
		    maybe_text(hit, "syscall"),
		    (long long)number_of(hit, "len"),
		    (long long)json_integer_value(size));
	assert_string_equal(text_of(hit, "access"),
	    row->access == NULL ? "write" : row->access);
	assert_null(json_object_get(hit, "insn"));
	expect_file(hit, row, exe);
	expect_frames(hit, row);
}

static void
make_calls(const struct row *row, size_t n, const char *access)
{
	char acts[2048] = "", exe[PATH_MAX];
	struct running w;
	struct target t;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(acts);

		(void)snprintf(acts + len, sizeof(acts) - len, "%s%s",
		    i > 0 ? "," : "", row[i].act);
	}
	assert_non_null(realpath(victim("calls"), exe));
	start_calls(&t, acts, TIMES);
	watch_target(&w, &t, access, bytes(&t, 8), NULL);
	(void)target_act(&t);
	for (size_t i = 0; i < n * TIMES; i++) {
		json_t *hit = hear_kernels(&w);

		expect_row(hit, &row[i / TIMES], exe);
		json_decref(hit);
	}
	target_end(&t, 7);
	end(&w);
}

TEST(each_call_is_one_hit_and_named)
{
	need_the_kernel();
	make_calls(rows, COUNT(rows), "-w");
}

TEST(what_the_kernel_reads_is_a_read)
{
	need_the_kernel();
	for (size_t i = 0; i < COUNT(reads); i++)
		make_calls(&reads[i], 1, "-a");
}

/* --- whole runs --- */

/* Calls, as often as said, with a watch. */
static void
run_calls(struct outcome *o, const char *act, int times, unsigned len,
    const char *access, const char *more)
{
	struct running w;
	struct target t;

	start_calls(&t, act, times);
	watch_target(&w, &t, access, bytes(&t, len), more);
	(void)target_act(&t);
	target_end(&t, 7);
	finish(&w, o);
}

/* All hits are the kernel's, of this length. */
static void
expect_all(const struct outcome *o, json_int_t hits, json_int_t len)
{
	const json_t *line;
	size_t i;

	expect_hits(o, hits);
	json_array_foreach(o->lines, i, line)
		if (is_hit(line)) {
			assert_true(is_kernels(line));
			assert_int_equal(number_of(line, "len"), len);
		}
}

TEST(calls_that_repeat_are_hits_of_their_own)
{
	static const struct {
		const char *act;
		unsigned watched;
		json_int_t len;
	} cases[] = {
		{"byte", 8, 1}, {"short_read", 8, 3}, {"pread64", 32, 32},
		{"readv_apart", 8, 8}, {"waitid", 8, 8}, {"socketpair", 8, 8},
	};

	need_the_kernel();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct outcome o;

		run_calls(&o, cases[i].act, 50, cases[i].watched, "-w", NULL);
		expect_all(&o, 50, cases[i].len);
	}
}

TEST(threads_that_read_at_once)
{
	struct outcome o;

	need_the_kernel();
	run_calls(&o, "threads", 1, 16, "-w", NULL);
	expect_all(&o, 100, 16);
}

/* Two watches that share bytes: a copy's samples come by turns. */
TEST(each_watch_has_its_hit)
{
	struct running w;
	struct outcome o;
	struct target t;

	need_the_kernel();
	start_calls(&t, "pread64", 50);
	watch_start(&w, LIST(watchctl(), "-w", bytes(&t, 8), "-w", bytes(&t, 4),
	    "-o", "json", "-p", t.pid));
	(void)target_act(&t);
	target_end(&t, 7);
	finish(&w, &o);
	expect_hits(&o, 100);
}

TEST(signal_frames_are_no_call)
{
	const json_t *hit;
	struct outcome o;

	need_the_kernel();
	run_calls(&o, "signal", 3, 8, "-w", NULL);
	expect_all(&o, 3, 8);
	hit = first_of(&o, "hit");
	assert_null(json_object_get(hit, "syscall"));
	assert_string_equal(text_of(hit, "work"), "signal delivery");
}

/* The kernel writes the child's id into the child's memory. */
TEST(a_childs_first_write_is_no_call)
{
	struct outcome o;

	need_the_kernel();
	run_calls(&o, "thread_start", 2, 4, "-w", "-f");
	expect_all(&o, 2, 4);
	assert_string_equal(text_of(first_of(&o, "hit"), "work"),
	    "thread start");
}

TEST(reads_alone_leave_out_what_the_kernel_writes)
{
	struct outcome o;

	need_the_kernel();
	run_calls(&o, "read", 5, 8, "-r", NULL);
	expect_hits(&o, 0);
	run_calls(&o, "write", 5, 8, "-r", NULL);
	expect_all(&o, 5, 8);
}

TEST(user_only_leaves_the_kernel_out)
{
	struct outcome o;

	need_the_kernel();
	run_calls(&o, "blame", 3, 8, "-w", "--user-only");
	expect_hits(&o, 3);
	expect_function(first_of(&o, "hit"), 0, "store_again");
}

/*
 * Other debuggers stay silent at the read(2), and blame it on the next store:
 * here the kernel fills the word for fill(), and store_again() stores the same
 * bytes again.
 */
static void
expect_both_writers(const struct outcome *o, bool stopped)
{
	const json_t *line, *writer[2] = {NULL, NULL};
	size_t i, n = 0;

	expect_hits(o, 2);
	json_array_foreach(o->lines, i, line)
		if (is_hit(line))
			writer[n++] = line;
	assert_true(is_kernels(writer[0]));
	assert_string_equal(text_of(writer[0], "syscall"), "pread64");
	assert_int_equal(number_of(writer[0], "syscall_bytes"), 64);
	expect_complete(writer[0]);
	for (i = 0; strcmp(maybe_text(frame_of(writer[0], (int)i), "function"),
	    "fill") != 0; i++)
		assert_string_not_equal(maybe_text(frame_of(writer[0], (int)i),
		    "function"), "store_again");
	expect_function(writer[0], (int)i + 1, "do_blame");
	assert_string_equal(text_of(writer[1], "origin"), "user");
	assert_string_equal(text_of(json_object_get(writer[1], "insn"),
	    "confidence"), "exact");
	expect_function(writer[1], 0, "store_again");
	expect_function(writer[1], 1, "do_blame");
	if (stopped)	/* else it may be known, or not */
		assert_true(json_is_true(json_object_get(writer[1],
		    "unchanged")));
}

TEST(both_writers_of_a_value_are_named)
{
	static const char *const modes[] = {NULL, "--stop"};

	need_the_kernel();
	for (size_t i = 0; i < 2; i++) {
		struct outcome o;

		run_calls(&o, "blame", 1, 8, "-w", modes[i]);
		expect_both_writers(&o, modes[i] != NULL);
	}
}

/* What execve(2) clears is no hit: neither of a command, whatever its kind, nor
   of children that execute. */
TEST(the_kernels_clearing_at_execve_is_not_shown)
{
	static const char *const commands[] = {"counter", "counter_static"};

	need_the_kernel();
	for (size_t i = 0; i < 2; i++) {
		struct running w;
		struct outcome o;

		start(&w, LIST(watchctl(), "-f", "-w", "counter", "--",
		    victim(commands[i]), "1", "3"));
		say(&w, "go\nend\n");
		finish_status(&w, &o, 7);
		assert_holds(o.err, "watchctl: 3 hits, 3 reported");
		assert_lacks(o.err, "(2)");
		assert_lacks(o.err, "by the kernel");
	}
}

TEST(a_recording_has_the_calls_and_no_files)
{
	const char *data = scratch_path("calls.data");
	struct running w;
	struct outcome o;

	need_the_kernel();
	start(&w, LIST(watchctl(), "-w", "memory+4096:8", "-o", "perf", "-O",
	    data, "--", victim("calls"), "read", "3"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	run(&o, LIST(watchctl(), "report", "-o", "json", data));
	expect_all(&o, 3, 8);
	assert_string_equal(text_of(first_of(&o, "hit"), "syscall"), "read");
	assert_int_equal(number_of(first_of(&o, "hit"), "syscall_bytes"), 64);
	assert_non_null(json_object_get(first_of(&o, "hit"), "fd"));
	assert_null(json_object_get(first_of(&o, "hit"), "file"));
}

TEST(text_says_what_json_does)
{
	struct running w;
	struct outcome o;
	struct target t;

	need_the_kernel();
	start_calls(&t, "read", 1);
	start(&w, LIST(watchctl(), "-n1", "-w", bytes(&t, 8), "-p", t.pid));
	await(w.out, "watching");
	(void)target_act(&t);
	finish(&w, &o);
	target_end(&t, 7);
	assert_holds(o.out, "write by read(2), 8 of 64 bytes, fd ");
	assert_holds(o.out, "/calls) looked up later");
}

/* From inside there is no callchain: who calls syscall(3) shows the call. */
TEST(a_call_by_its_number_is_known_from_inside)
{
	static const struct {
		const char *syscall;
		json_int_t len, bytes;
	} calls[] = {{"getrandom", 5, 5}, {"clock_gettime", 8, 16}};
	struct running w;
	struct outcome o;
	size_t n = 0;

	need_the_kernel();
	start(&w, LIST(watchctl(), "--inside", "-w", "memory+4096:8", "-o",
	    "json", "-O", scratch_path("report"), "--", victim("calls"),
	    "by_number", "1"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	o.lines = json_lines(scratch_read("report", NULL));
	for (size_t i = 0; i < json_array_size(o.lines); i++) {
		const json_t *hit = json_array_get(o.lines, i);

		if (!is_kernels(hit))
			continue;
		assert_true(n < COUNT(calls));
		assert_string_equal(maybe_text(hit, "syscall"),
		    calls[n].syscall);
		assert_int_equal(number_of(hit, "len"), calls[n].len);
		assert_int_equal(number_of(hit, "syscall_bytes"),
		    calls[n].bytes);
		n++;
	}
	assert_int_equal(n, COUNT(calls));
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
