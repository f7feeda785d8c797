/*
 * bad_input: each error is one line that names the thing, the reason and the
 * way out; the exit status is 125, and nothing is armed.
 */
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_symbol.h"
#include "live.h"
#include "refuse.h"
#include "watching.h"
#include "proc/proc.h"

/* The process that the cases speak of, and what they are told of it. */
static struct running target;
static char pid[16], thread[16], addr[32], ended[16];

static int
start_target(void **state)
{
	pid_t child, *tids = NULL;
	size_t cap = 0;

	(void)state;
	start(&target, LIST(victim("idle"), "1"));
	hear_address(&target, addr);
	(void)snprintf(pid, sizeof(pid), "%d", target.pid);
	assert_int_equal(wp_proc_threads(target.pid, &tids, &cap), 2);
	(void)snprintf(thread, sizeof(thread), "%d", tids[1]);
	free(tids);
	if ((child = fork()) == 0)
		_exit(0);
	(void)waitpid(child, NULL, 0);
	(void)snprintf(ended, sizeof(ended), "%d", child);
	return 0;
}

static int
end_target(void **state)
{
	(void)state;
	end(&target);
	return 0;
}

/* One line on stderr, ours, with all these words; nothing on stdout. */
static void
expect_refusal(const struct outcome *o, const char *const *words)
{
	const char *end = strchr(o->err, '\n');

	assert_int_equal(o->status, 125);
	assert_string_equal(o->out, "");
	assert_memory_equal(o->err, "watchctl: ", 10);
	if (end == NULL || end[1] != '\0')
		fail_msg("not one line: %s", o->err);
	for (; *words != NULL; words++)
		if (strstr(o->err, *words) == NULL)
			fail_msg("no \"%s\" in: %s", *words, o->err);
	for (const char *p = o->err; p < end; p++)
		assert_true((unsigned char)*p >= ' ');
}

TEST_WITH(refused_specs, start_target, end_target)
{
	static const struct {
		const char *access, *spec;
		const char *words[4];	/* that the line has */
	} cases[] = {
		{"-w", "", {"''"}},
		{"-w", "counter+", {"counter+", "column 9"}},
		{"-w", "counter:0", {"counter:0", "column"}},
		{"-w", "counter:x", {"column 9"}},
		{"-w", "0x", {"0x", "column"}},
		{"-w", "99999999999999999999999", {"9999"}},
		{"-w", "!x", {"!x", "column"}},
		{"-w", "a\tb\033[31m", {"a\\tb\\x1b[31m", "column 3"}},
		{"-w", "conter", {"no symbol 'conter'", "counter"}},
		{"-w", "counter:4096", {"4096 bytes", "slots"}},
		{"-w", "0x10", {"0x10", "not mapped", "maps"}},
		{"-w", "0x8000000000000000", {"0x8000000000000000",
		    "not an address"}},
		{"-w", "0xffffffff81000000", {"0xffffffff81000000",
		    "kernel"}},
		{"-w", "0x7fffffffffff:8", {"address"}},
		{"-x", "main:4", {"length"}},
		{"-x", "idle.c:1", {"'idle.c:1'", "this line has no code; the "
		    "next one that has some is "}},
		{"-w", "counter:31", {"watch 28 or 32 bytes"}},
		{"-x", "strlen", {"'strlen'", "IFUNC", "__strlen_"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct outcome o;

		run(&o, LIST(watchctl(), cases[i].access, cases[i].spec, "-p",
		    pid));
		expect_refusal(&o, cases[i].words);
		assert_int_equal(live_free_slots(target.pid), 4);
	}
}

/* In all processes. */
TEST(refused_kernel_memory)
{
	static const struct {
		const char *spec;
		const char *words[3];
	} cases[] = {
		{"kernel!no_such_symbol_",
		    {"no symbol 'no_such_symbol_' in the kernel"}},
		{"kernel!", {"kernel!", "column 8"}},
		{"kernel!_text+", {"kernel!_text+", "column 14"}},
		{"kernel!_text:64", {"64 bytes", "slots"}},
		{"0xffffffff81000000:x", {"column 20"}},
		{"0xffffffffffffffff:2", {"last address"}},
	};

	if (geteuid() != 0 || kernel_symbol("_text") == 0) {
		print_message("this takes root that may know the kernel's "
		    "addresses, not tried\n");
		return;
	}
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct outcome o;

		run(&o, LIST(watchctl(), "-w", cases[i].spec));
		expect_refusal(&o, cases[i].words);
	}
}

TEST_WITH(refused_processes, start_target, end_target)
{
	const struct {
		const char *pid;
		const char *words[3];
	} cases[] = {
		{ended, {ended, "no process"}},
		{thread, {thread, "is a thread of process", pid}},
		{"0", {"-p", "'0'"}},
		{"-5", {"-p", "'-5'"}},
		{"12x", {"-p", "'12x'"}},
		{"99999999999", {"-p"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *words[4] = {cases[i].words[0], cases[i].words[1],
		    cases[i].words[2], NULL};
		struct outcome o;

		run(&o, LIST(watchctl(), "-w", addr, "-p", cases[i].pid));
		expect_refusal(&o, words);
	}
}

TEST_WITH(a_kernel_thread, start_target, end_target)
{
	FILE *comm = fopen("/proc/2/comm", "r");
	char name[32] = "";
	struct outcome o;

	if (comm != NULL) {
		(void)fscanf(comm, "%31s", name);
		(void)fclose(comm);
	}
	if (strcmp(name, "kthreadd") != 0) {
		print_message("no kernel thread is in this namespace, "
		    "not tried\n");
		return;
	}
	run(&o, LIST(watchctl(), "-w", addr, "-p", "2"));
	expect_refusal(&o, LIST("kernel thread"));
}

TEST(refused_options)
{
	static const struct {
		const char *args[6];
		const char *word;
	} cases[] = {
		{{"-w", "x"}, "no process to watch"},
		{{"-p", "1"}, "nothing to watch"},
		{{"-w"}, "-w needs an argument"},
		{{"--nonsense"}, "--nonsense"},
		{{"-w", "x", "-n", "0", "true"}, "-n '0'"},
		{{"-w", "x", "-t", "-1", "true"}, "-t '-1'"},
		{{"-w", "x", "-t", "nan", "true"}, "-t 'nan'"},
		{{"-w", "x", "-o", "xml", "true"}, "'xml'"},
		{{"-w", "x", "-o", "perf", "true"}, "-O FILE"},
		{{"-w", "x", "--exe", "/nowhere"}, "give the path of an "
		    "executable file"},
		{{"-w", "x", "--exe", "/"}, "--exe /: not a file"},
		{{"-w", "x", "--cgroup", ""}, "--cgroup '': "},
		{{"-w", "x", "--cgroup", "/no\nwhere"}, "--cgroup "
		    "'/no\\nwhere': "},
		{{"-w", "x", "--cgroup", "/etc/passwd"}, "--cgroup "
		    "'/etc/passwd': "},
		{{"-w", "x", "-p", "1", "true"}, "exclude each other"},
		{{"-w", "x", "-O", "/nonexistent/file", "true"},
		    "/nonexistent/file"},
		{{"report"}, "report reads FILEs"},
		{{"report", "/nonexistent/file"}, "/nonexistent/file"},
		{{"report", "/etc/passwd"}, "/etc/passwd"},
		{{"doctor", "-o", "xml"}, "xml"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const *a = cases[i].args;
		struct outcome o;

		run(&o, LIST(watchctl(), a[0], a[1], a[2], a[3], a[4], a[5]));
		expect_refusal(&o, LIST(cases[i].word));
	}
}

TEST(alone_it_shows_examples)
{
	struct outcome o;
	size_t lines = 0;

	run_status(&o, 125, LIST(watchctl()));
	assert_string_equal(o.out, "");
	for (const char *p = o.err; (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	assert_in_range(lines, 4, 10);
	assert_holds(o.err, "\n  watchctl -w counter -p ");
}

TEST(a_bad_spec_starts_no_command)
{
	char made[] = "/tmp/bad_input.XXXXXX", touch[64];
	int fd = mkstemp(made);
	struct outcome o;

	assert_true(fd >= 0);
	(void)close(fd);
	(void)unlink(made);
	(void)snprintf(touch, sizeof(touch), ": > %s", made);
	run(&o, LIST(watchctl(), "-w", "no_such_symbol", "--", "/bin/sh", "-c",
	    touch));
	expect_refusal(&o, LIST("no_such_symbol"));
	assert_int_equal(access(made, F_OK), -1);
}

/* The file is there, what its first line names is not. */
TEST(a_command_without_its_interpreter)
{
	static const char *const modes[] = {"--user-only", "--inside"};
	char script[] = "/tmp/bad_input.XXXXXX";
	int fd = mkstemp(script);

	assert_int_equal(write(fd, "#!/no/such/shell\n", 17), 17);
	assert_int_equal(fchmod(fd, 0700), 0);
	(void)close(fd);
	for (size_t i = 0; i < 2; i++) {
		struct outcome o;

		run_status(&o, 127, LIST(watchctl(), modes[i], "-w", "x",
		    script));
		assert_holds(o.err, script);
		assert_holds(o.err, "interpreter");
	}
	(void)unlink(script);
}

/* A report goes nowhere else than where it was to go. */
TEST_WITH(a_standard_output_that_is_closed, start_target, end_target)
{
	struct outcome o;

	run_status(&o, 125, LIST("/bin/sh", "-c",
	    "exec \"$0\" -w counter -t 0.1 -p \"$1\" >&-", watchctl(), pid));
	assert_holds(o.err, "Bad file descriptor");
}

TEST(a_symbol_that_is_thread_local_is_not_only_counted)
{
	struct outcome o;
	struct target t;

	target_start(&t, LIST(victim("counter"), "1", "1"));
	run(&o, LIST(watchctl(), "--count", "-w", "local", "-p", t.pid));
	expect_refusal(&o, LIST("local", "thread-local"));
	end(&t.run);
}

/* Without a way to wait for it. */
TEST(a_module_that_is_not_mapped)
{
	struct outcome o;
	struct target t;

	target_start(&t, LIST(victim("counter"), "1", "1"));
	run(&o, LIST(watchctl(), "--count", "-w", "countr!counter", "-p",
	    t.pid));
	expect_refusal(&o, LIST("no module 'countr'", "nearest: counter",
	    "--count cannot wait for it"));
	end(&t.run);
}

/* A static variable of the program with the name of a library's. */
TEST(a_symbol_that_is_ambiguous)
{
	struct outcome o;
	struct target t;

	target_start(&t, LIST(victim("twins")));
	run(&o, LIST(watchctl(), "-w", "optopt", "-p", t.pid));
	expect_refusal(&o, LIST("2 symbols", "twins!optopt",
	    "libc.so.6!optopt"));
	end(&t.run);
}

TEST_WITH(no_slot_is_free, start_target, end_target)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.exclude_kernel = 1, .bp_type = HW_BREAKPOINT_W, .bp_len = 8,
		.bp_addr = strtoull(addr, NULL, 16),
	};
	struct outcome o;
	int fd[WP_SLOTS_MAX], n = 0;

	while (n < WP_SLOTS_MAX &&
	    (fd[n] = wp_perf_open(&attr, target.pid, -1)) >= 0)
		n++;
	run(&o, LIST(watchctl(), "-w", addr, "-p", pid));
	while (n > 0)
		(void)close(fd[--n]);
	expect_refusal(&o, LIST("no free slot", pid));
}

TEST_WITH(more_watches_than_slots, start_target, end_target)
{
	struct outcome o;

	run(&o, LIST(watchctl(), "-w", addr, "-w", addr, "-w", addr, "-w", addr,
	    "-w", addr, "-p", pid));
	expect_refusal(&o, LIST("5 slots", "has 4"));
}

/* What a child becomes: a user without rights, one without perf_event_open; or
   where it is: in a PID namespace with another's /proc, without /proc, or where
   /proc hides others' processes; or root, but of a user namespace; or without
   ptrace, or without both. */
enum plight {
	NOBODY, FILTERED, OTHER_PROC, NO_PROC, HIDDEN, SMALL_ROOT, UNTRACING,
	CONFINED
};

static bool
be_filtered(void)
{
	return refuse_call(SYS_perf_event_open, EPERM, NULL, 0);
}

/* The first process of a new namespace, whose parent only waits for it. */
static bool
be_renumbered(void)
{
	pid_t child;
	int status;

	if (unshare(CLONE_NEWPID) != 0)
		return false;
	if ((child = fork()) == 0)
		return true;
	(void)waitpid(child, &status, 0);
	_exit(WEXITSTATUS(status));
}

/* Root in a user namespace, as a container may have it. */
static bool
be_small_root(void)
{
	const char map[] = "0 0 1";
	int fd;

	if (unshare(CLONE_NEWUSER) != 0 ||
	    (fd = open("/proc/self/uid_map", O_WRONLY)) < 0)
		return false;
	(void)!write(fd, map, sizeof(map) - 1);
	(void)close(fd);
	return geteuid() == 0;
}

static bool
be_untraced(void)
{
	/* a sanitizer looks for leaks by ptrace */
	return setenv("ASAN_OPTIONS", "exitcode=86:detect_leaks=0", 1) == 0 &&
	    refuse_call(SYS_ptrace, EPERM, NULL, 0);
}

static bool
be_in(int plight)
{
	switch (plight) {
	case NOBODY:
		return be_nobody(0);
	case FILTERED:
		return be_filtered();
	case OTHER_PROC:
		return be_renumbered();
	case SMALL_ROOT:
		return be_small_root();
	case UNTRACING:
		return be_untraced();
	case CONFINED:
		return be_filtered() && be_untraced();
	default:
		break;
	}
	if (unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return false;
	return plight == NO_PROC ? umount2("/proc", MNT_DETACH) == 0 :
	    mount("proc", "/proc", "proc", 0, "hidepid=2") == 0 && be_nobody(0);
}

/* False: this user cannot get there. */
static bool
run_in(enum plight plight, const char *const argv[], struct outcome *o)
{
	struct running w;

	start_prepared(&w, argv, be_in, (int)plight);
	finish(&w, o);
	if (o->status != UNPREPARED)
		return true;
	print_message("not permitted to try this\n");
	return false;
}

static void
expect_refused(enum plight plight, const char *const argv[],
    const char *const words[])
{
	struct outcome o;

	if (!run_in(plight, argv, &o))
		return;
	expect_refusal(&o, words);
}

static void
ptrace_refused(enum plight plight, const char *const words[])
{
	expect_refused(plight, LIST(watchctl(), "-w", addr, "-p", pid), words);
}

/* Each way that works does, and is said to; one is enough. */
TEST(doctor_says_which_way_works)
{
	static const struct {
		enum plight plight;
		bool works[3];		/* ring, stop, inside */
	} cases[] = {
		{FILTERED, {false, true, true}},
		{UNTRACING, {true, false, true}},
		{CONFINED, {false, false, false}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const bool *works = cases[i].works;
		struct outcome o;
		const json_t *ways;

		if (!run_in(cases[i].plight, LIST(watchctl(), "doctor", "-o",
		    "json"), &o))
			continue;
		assert_string_equal(o.err, "");
		assert_int_equal(o.status, works[0] || works[1] || works[2] ?
		    0 : 1);
		ways = json_object_get(json_array_get(o.lines, 0), "ways");
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(json_is_true(json_object_get(
			    json_array_get(ways, k), "ok")), works[k]);
	}
}

TEST_WITH(not_permitted, start_target, end_target)
{
	if (geteuid() != 0) {
		print_message("setresuid: not root\n");
		skip();
	}
	ptrace_refused(NOBODY, LIST("not permitted", pid, "sudo"));
	ptrace_refused(FILTERED, LIST("not permitted", "seccomp",
	    "--security-opt seccomp=unconfined", "add --stop"));
	ptrace_refused(SMALL_ROOT, LIST("not permitted", "though "
	    "this is root", "--cap-add SYS_PTRACE"));
	expect_refused(NOBODY, LIST(watchctl(), "-w", addr, "--exe",
	    "/bin/true"), LIST("--exe: processes that come later cannot be "
	    "noticed: not permitted", "CAP_PERFMON", "-p NAME"));
	ptrace_refused(CONFINED, LIST("perf_event_open is refused",
	    "ptrace(2) is refused too"));
	expect_refused(NOBODY, LIST(watchctl(), "-w", "0xffffffff81000000"),
	    LIST("'0xffffffff81000000': not permitted", "CAP_SYS_ADMIN",
	    "sudo"));
	expect_refused(SMALL_ROOT, LIST(watchctl(), "-w",
	    "0xffffffff81000000"), LIST("not permitted", "of the machine"));
}

/* From everybody where it says so, else from those without CAP_SYSLOG. */
TEST(hidden_addresses)
{
	const int restricted = wp_proc_setting("kptr_restrict");

	if (geteuid() != 0 || (restricted == 0 &&
	    wp_proc_setting("perf_event_paranoid") <= 1)) {
		print_message("this takes root, and addresses that are hidden "
		    "from others, not tried\n");
		return;
	}
	expect_refused(NOBODY, LIST(watchctl(), "-w", "kernel!_text"),
	    LIST("'kernel!_text': the kernel's addresses are hidden",
	    "kernel.kptr_restrict is", "sudo"));
	expect_refused(SMALL_ROOT, LIST(watchctl(), "-w", "kernel!_text"),
	    LIST("'kernel!_text': the kernel's addresses are hidden",
	    restricted < 2 ? "CAP_SYSLOG" : "sudo"));
}

/* What is named does help: see doctor_says_which_way_works. */
TEST_WITH(ptrace_is_refused, start_target, end_target)
{
	static const char nowhere[] = "perf_event_open(2) is refused too, so "
	    "no way is left";

	expect_refused(UNTRACING, LIST(watchctl(), "--stop", "-w", addr, "-p",
	    pid), LIST("trace process", pid, "ptrace(2) is refused here",
	    "leave out what needs it (--stop"));
	expect_refused(CONFINED, LIST(watchctl(), "--stop", "-w", addr, "-p",
	    pid), LIST("ptrace(2) is refused here", nowhere));
	expect_refused(UNTRACING, LIST(watchctl(), "-w", "counter", "--",
	    victim("idle")), LIST(victim("idle"), "ptrace(2) is refused here",
	    "--inside does without"));
	expect_refused(UNTRACING, LIST(watchctl(), "--stop", "-w", "counter",
	    "--", victim("idle")), LIST("--inside does without"));
	expect_refused(CONFINED, LIST(watchctl(), "--stop", "-w", "counter",
	    "--", victim("idle")), LIST("ptrace(2) is refused here", nowhere));
	/* and where it is not, but another user's */
	expect_refused(NOBODY, LIST(watchctl(), "--stop", "-w", addr, "-p",
	    pid), LIST("not permitted", pid));
	/* what --stop cannot */
	expect_refused(FILTERED, LIST(watchctl(), "--count", "-w", addr, "-p",
	    pid), LIST("perf_event_open is refused", "not with --count"));
}

/* With no descriptor left, what cannot be opened is not what is told. */
TEST_WITH(few_descriptors, start_target, end_target)
{
	unsigned told = 0;

	for (unsigned n = 5; n < 20; n++) {
		char command[512];
		struct outcome o;

		(void)snprintf(command, sizeof(command), "exec 3<&- 4<&- 5<&- "
		    "6<&- 7<&- 8<&- 9<&-; ulimit -n %u; exec '%s' -t 0.01 -w "
		    "counter -p %s", n, watchctl(), pid);
		run(&o, LIST("/bin/sh", "-c", command));
		if (o.status != 0 && strstr(o.err, "ulimit -n") == NULL)
			fail_msg("%u: %s", n, o.err);
		assert_lacks(o.err, " 0 more");
		assert_lacks(o.err, "nearest");
		told += o.status != 0;
	}
	assert_true(told > 1);
}

/* Little memory: whatever there is none for, there is a way out. */
#if !SANITIZED		/* which take much themselves */
TEST_WITH(little_memory, start_target, end_target)
{
	static const unsigned sizes[] = {5000, 20000, 80000};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		char command[512];
		struct outcome o;

		(void)snprintf(command, sizeof(command), "ulimit -v %u; "
		    "exec '%s' -t 0.01 -w counter -p %s", sizes[i], watchctl(),
		    pid);
		run(&o, LIST("/bin/sh", "-c", command));
		if (o.status != 125 || strstr(o.err, "ulimit -u and -v") ==
		    NULL)
			fail_msg("%u: status %d: %s", sizes[i], o.status,
			    o.err);
	}
}
#endif

/* Not "no process": it is there. */
TEST_WITH(what_proc_does_not_show, start_target, end_target)
{
	if (geteuid() != 0) {
		print_message("unshare: not root\n");
		skip();
	}
	ptrace_refused(HIDDEN, LIST("hidepid", pid));
	if (!SANITIZED)		/* which do not run without */
		ptrace_refused(NO_PROC, LIST( "/proc is not mounted"));
	ptrace_refused(OTHER_PROC, LIST("another PID namespace"));
}

RUN_LIVE_TESTS()
