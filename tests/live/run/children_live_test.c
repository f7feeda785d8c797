/*
 * children: whether a run can be vouched for whose program creates processes
 * (victim/children) that are not watched.
 */
#include "test.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "proc/proc.h"
#include "refuse.h"
#include "scratch.h"
#include "child.h"

enum { OWN = 3, STRAY = 66, DOUBTED = 120 };

static const char *const modes[] = {NULL, "--stop"};

#define VOUCHED LIST("--allow", "main", "--error-exitcode", "66")

/* Run the victim with one act in a mode, with these options too. */
static void
run_act(struct outcome *o, const char *mode, const char *const *options,
    const char *act)
{
	const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl(), "-w", "counter", "-O",
	    "/dev/null"));

	if (mode != NULL)
		n = append(argv, n, LIST(mode));
	n = append(argv, n, options);
	(void)append(argv, n, LIST("--", victim("children"), act));
	run(o, argv);
}

/* The line that names a child, and the way out. */
static bool
names_child(const struct outcome *o, const char *what)
{
	const char *line = strstr(o->err, " created process ");

	return line != NULL && strstr(line, what) != NULL &&
	    strstr(line, "-f watches it too") != NULL &&
	    strstr(line + 1, " created process ") == NULL;
}

static void
expect(const char *mode, const char *const *options, const char *act,
    int status, const char *what)
{
	struct outcome o;

	run_act(&o, mode, options, act);
	if (o.status != status || (what != NULL && !names_child(&o, what)) ||
	    (what == NULL && strstr(o.err, "created process") != NULL))
		fail_msg("%s %s: status %d, not %d: %s", mode != NULL ? mode :
		    "", act, o.status, status, o.err);
}

TEST(a_child_that_ends_in_the_program_is_named_and_doubted)
{
	static const char *const acts[] = {"fork", "vfork-end", "grandchild"};

	for (size_t m = 0; m < COUNT(modes); m++)
		for (size_t i = 0; i < COUNT(acts); i++)
			expect(modes[m], VOUCHED, acts[i], DOUBTED,
			    "ended without executing another program");
}

enum { CROWD = 300 };

static volatile long shared_word;

static void *
sleep_on(void *arg)
{
	for (;;)
		(void)pause();
	return arg;
}

/* Have a child write as soon as another process is held, and so before this one
   is: it is to notice at once, if it may have a processor for itself. */
static void
lend_while_held(pid_t other)
{
	(void)setpriority(PRIO_PROCESS, 0, -20);
	while (wp_proc_tracer(other) == 0)
		;
	if (vfork() == 0) {
		shared_word = 99;
		_exit(0);
	}
}

/* 0: a crowd of threads. */
static void
lend(void *other)
{
	if (*(const pid_t *)other == 0)
		child_threads(CROWD, sleep_on);
	else
		lend_while_held(*(const pid_t *)other);
	(void)sleep_on(NULL);
}

enum { TRIES = 50 };

/* Neither look for who has the memory sees it.  Where another program runs
   meanwhile, that waits for the next time. */
TEST(a_child_created_while_attaching_is_doubted)
{
	pid_t none = 0, held = child_start(lend, &none);
	const pid_t lender = child_start(lend, &held);
	struct wp_proc_status status;
	char spec[32], pid[2][16];
	const char *const argv[] = {watchctl(), "-w", spec, "-O", "/dev/null",
	    "--allow", "*", "--error-exitcode", "66", "-t", "0.1", "-p",
	    pid[0], "-p", pid[1], NULL};
	struct outcome o;

	(void)snprintf(spec, sizeof(spec), "%p:8", (void *)(uintptr_t)
	    &shared_word);
	(void)snprintf(pid[0], sizeof(pid[0]), "%d", held);
	(void)snprintf(pid[1], sizeof(pid[1]), "%d", lender);
	do
		assert_int_equal(wp_proc_status(held, &status), 0);
	while (status.threads <= CROWD);
	run(&o, argv);
	for (int i = 1; o.status == 0 && i < TRIES; i++) {
		run(&o, argv);
	}
	child_kill(lender);
	child_kill(held);
	if (o.status != DOUBTED ||
	    !names_child(&o, "ended without executing another program"))
		fail_msg("status %d: %s", o.status, o.err);
}

TEST(a_child_that_continues_in_the_program_is_named_and_doubted)
{
	for (size_t m = 0; m < COUNT(modes); m++)
		expect(modes[m], VOUCHED, "leave", DOUBTED,
		    "goes on in the same program");
}

TEST(a_child_that_executes_another_program_does_not_matter)
{
	static const char *const acts[] = {
		"execute", "late", "leave-other", "system", "popen", "spawn",
		"vfork", "threads", "many",
	};

	for (size_t m = 0; m < COUNT(modes); m++)
		for (size_t i = 0; i < COUNT(acts); i++)
			expect(modes[m], VOUCHED, acts[i], OWN, NULL);
}

TEST(with_f_children_are_watched)
{
	const char *const *options = LIST("-f", "--allow", "main",
	    "--error-exitcode", "66");
	struct outcome o;

	expect(NULL, options, "vfork-end", OWN, NULL);
	run_act(&o, NULL, options, "fork");
	if (o.status != OWN || strstr(o.err, "2 hits, 2 reported") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

/* What they execute is another program, which is not watched, or has no such
   symbol. */
TEST(with_f_what_children_execute_is_doubted)
{
	static const struct {
		const char *act;
		int status;
	} acts[] = {
		{"execute", DOUBTED}, {"spawn", DOUBTED}, {"system", DOUBTED},
		{"vfork", DOUBTED}, {"late", DOUBTED}, {"many", DOUBTED},
		{"leave-other", DOUBTED}, {"grandchild", DOUBTED},
		{"threads", OWN}, {"vfork-end", OWN},
	};
	static const char said[] = "executed another program, which was not "
	    "watched";
	struct outcome o;

	for (size_t i = 0; i < COUNT(acts); i++) {
		run_act(&o, NULL, LIST("-f", "--allow", "main", "--allow",
		    "forks", "--error-exitcode", "66"), acts[i].act);
		if (o.status != acts[i].status || (strstr(o.err, said) !=
		    NULL) != (o.status == DOUBTED))
			fail_msg("%s: status %d: %s", acts[i].act, o.status,
			    o.err);
	}
	run_act(&o, "--stop", LIST("-f", "--allow", "main",
	    "--error-exitcode", "66"), "execute");
	if (o.status != DOUBTED || strstr(o.err, "has no counter") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

/* Until the end that was asked for, they are watched. */
TEST(with_f_children_may_outlive_the_watch)
{
	struct outcome o;

	run_act(&o, NULL, LIST("-f", "-t", "0.3", "--allow", "main",
	    "--error-exitcode", "66"), "leave");
	if (o.status != OWN)
		fail_msg("status %d: %s", o.status, o.err);
}

/* Without a status that has to vouch for the run, only children that still live
   are seen. */
TEST(without_vouching_the_status_is_kept)
{
	for (size_t m = 0; m < COUNT(modes); m++) {
		expect(modes[m], LIST("--allow", "main"), "leave", OWN,
		    "goes on in the same program");
		expect(modes[m], LIST("--allow", "main"), "leave-other", OWN,
		    NULL);
	}
}

/* A stray access is worse. */
TEST(a_stray_decides_the_status_first)
{
	expect(NULL, LIST("--allow", "nobody", "--error-exitcode", "66"),
	    "fork", STRAY, "ended without executing another program");
}

/* --- by debug registers, where events are refused --- */

static void
expect_refused(const char *act, int status, const char *what)
{
	struct outcome o;

	run_act(&o, "--stop", VOUCHED, act);
	if (o.status != status || (what == NULL ?
	    strstr(o.err, "not watched;") != NULL ||
	    strstr(o.err, "unwatched") != NULL :
	    strstr(o.err, what) == NULL) ||
	    strstr(o.err, "-f watches") != NULL ||
	    strstr(o.err, "debug registers are set") == NULL)
		fail_msg("%s: status %d, not %d: %s", act, o.status, status,
		    o.err);
}

TEST(by_debug_registers_children_are_noticed_too)
{
	static const char unknown[] = "a child process may have gone on";
	static const struct {
		const char *act;
		int status;
		const char *what;	/* NULL: nothing is said */
	} acts[] = {
		{"fork", DOUBTED, unknown}, {"execute", DOUBTED, unknown},
		{"many", DOUBTED, unknown}, {"leave-other", DOUBTED, unknown},
		{"leave", DOUBTED, "goes on in the same program"},
		{"vfork-end", DOUBTED, "ended without executing another"},
		{"vfork", OWN, NULL}, {"system", OWN, NULL},
		{"popen", OWN, NULL}, {"spawn", OWN, NULL},
	};
	struct outcome o;

	for (size_t i = 0; i < COUNT(acts); i++)
		expect_refused(acts[i].act, acts[i].status, acts[i].what);
	run_act(&o, "--stop", LIST("--allow", "main"), "leave");
	if (o.status != OWN || strstr(o.err, "goes on in the same") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
	run_act(&o, "--stop", LIST("--allow", "main"), "fork");
	if (o.status != OWN || strstr(o.err, unknown) != NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

/* A thread that is stopped at a hit is not let go on for a child. */
TEST(by_debug_registers_children_are_noticed_between_actions)
{
	struct outcome o;

	run_act(&o, "--stop", LIST("--on-hit", "exec true", "--allow", "main",
	    "--error-exitcode", "66"), "vfork-end");
	if (o.status != DOUBTED || strstr(o.err, "1 hit, 1 reported") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
}

/* Files that give privileges to an ordinary user, who may also run watchctl and
   watch: probed. */
static bool
privileges_work(void)
{
	const struct vfs_cap_data raw = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1 << CAP_NET_RAW,
	};

	if (geteuid() == 0 && scratch_try("chmod 755 . && cp /usr/bin/id setid "
	    "&& chmod 4755 setid && cp /usr/bin/id capable && "
	    "setpriv --reuid=65534 --regid=65534 --clear-groups ./setid -u | "
	    "grep -qx 0") == 0 && setxattr(scratch_path("capable"),
	    "security.capability", &raw, sizeof(raw), 0) == 0 &&
	    scratch_try("setpriv --reuid=65534 --regid=65534 --clear-groups "
	    "'%s' --user-only -w 0x700000000000:8 -O /dev/null -- /bin/true",
	    watchctl()) == 0)
		return true;
	print_message("no files with privileges can be made here, or an "
	    "ordinary user cannot watch\n");
	return false;
}

/* The kernel withholds them where an ordinary user traces. */
TEST_WITH(privileges_that_are_withheld, scratch_make, scratch_remove)
{
	static const struct {
		const char *mode, *user, *command;
		bool command_itself, withheld;
	} runs[] = {
		{"--stop", "65534", "setid", true, true},
		{"-f", "65534", "capable", true, true},
		{"--stop", "65534", "setid", false, true},
		{"--stop", "65534", "capable", false, true},
		{"-f", "65534", "setid", false, false},
		{"--stop", "0", "setid", false, false},
		{"--stop", "0", "capable", true, false},
	};

	if (!privileges_work())
		skip();
	for (size_t i = 0; i < COUNT(runs); i++) {
		const char *path = scratch_path(runs[i].command);
		char ids[2][32], shell[PATH_MAX + 16];
		const char *argv[ARGS];
		struct outcome o;
		size_t n;

		(void)snprintf(ids[0], 32, "--reuid=%s", runs[i].user);
		(void)snprintf(ids[1], 32, "--regid=%s", runs[i].user);
		(void)snprintf(shell, sizeof(shell), "%s -u; true", path);
		n = append(argv, 0, LIST("/usr/bin/setpriv", ids[0], ids[1],
		    "--clear-groups", watchctl(), runs[i].mode, "-f",
		    "--user-only", "-w", "0x700000000000:8", "-O", "/dev/null",
		    "--"));
		(void)append(argv, n, runs[i].command_itself ? LIST(path) :
		    LIST("/bin/sh", "-c", shell));
		run(&o, argv);
		if (o.status != 0 || (strstr(o.err, "runs without the "
		    "privileges that its file gives") != NULL) !=
		    runs[i].withheld)
			fail_msg("%zu: status %d: %s%s", i, o.status, o.out,
			    o.err);
	}
}

/* --- threads of the kernel --- */

/* A read into the watched variable that io_uring(7) leaves to a thread of the
   kernel: of this process; of a child ("child"); or the thread is there before,
   and the read is made when a line was read ("poll").  The status is 4, or 3
   where that cannot be had. */
static const char uring[] =
	"#define _GNU_SOURCE\n"
	"#include <fcntl.h>\n"
	"#include <linux/io_uring.h>\n"
	"#include <stdint.h>\n"
	"#include <stdio.h>\n"
	"#include <sys/mman.h>\n"
	"#include <sys/syscall.h>\n"
	"#include <sys/wait.h>\n"
	"#include <unistd.h>\n"
	"volatile long counter;\n"
	"static int use(int polls)\n"
	"{\n"
	"	struct io_uring_params p = {\n"
	"	    .flags = polls ? IORING_SETUP_SQPOLL : 0,\n"
	"	    .sq_thread_idle = 60000};\n"
	"	int fd = (int)syscall(SYS_io_uring_setup, 1, &p);\n"
	"	int file = open(\"/proc/self/exe\", O_RDONLY);\n"
	"	char *queue = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,\n"
	"	    fd, IORING_OFF_SQ_RING);\n"
	"	struct io_uring_sqe *entry = mmap(0, 4096, PROT_READ |\n"
	"	    PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);\n"
	"\n"
	"	if (fd < 0 || file < 0)\n"
	"		return 3;\n"
	"	if (polls) {\n"
	"		printf(\"pid %d\\n\", getpid());\n"
	"		fflush(stdout);\n"
	"		getchar();\n"
	"	}\n"
	"	*entry = (struct io_uring_sqe){.opcode = IORING_OP_READ,\n"
	"	    .flags = polls ? 0 : IOSQE_ASYNC, .fd = file,\n"
	"	    .addr = (uintptr_t)&counter, .len = 8};\n"
	"	*(uint32_t *)(queue + p.sq_off.array) = 0;\n"
	"	__atomic_store_n((uint32_t *)(queue + p.sq_off.tail), 1,\n"
	"	    __ATOMIC_SEQ_CST);\n"
	"	if (!polls)\n"
	"		syscall(SYS_io_uring_enter, fd, 1, 1,\n"
	"		    IORING_ENTER_GETEVENTS, 0, 0);\n"
	"	for (int i = 0; polls && counter == 0 && i < 10000; i++)\n"
	"		usleep(1000);\n"
	"	return counter == 0 ? 3 : 4;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	int status;\n"
	"	if (argc < 2 || argv[1][0] == 'p')\n"
	"		return use(argc > 1);\n"
	"	if (fork() == 0)\n"
	"		_exit(use(0));\n"
	"	wait(&status);\n"
	"	return WEXITSTATUS(status);\n"
	"}\n";

static void
make_uring(void)
{
	struct outcome o;

	scratch_write("uring.c", uring);
	scratch_run("cc -o uring uring.c");
	run(&o, LIST(scratch_path("uring")));
	if (o.status == 4)
		return;
	print_message("the kernel makes no thread for io_uring(7) here\n");
	skip();
}

static const char *const judged[] = {
	"-w", "counter", "--allow", "main", "--error-exitcode", "66", NULL,
};

static void
check_doubt(const struct outcome *o, const char *const options[])
{
	if (o->status != DOUBTED ||
	    strstr(o->err, "the kernel made threads of process ") == NULL)
		fail_msg("%s: status %d: %s", options[0], o->status, o->err);
}

static void
run_uring(struct outcome *o, const char *const options[],
    const char *const acts[])
{
	const char *argv[ARGS] = {watchctl()};
	size_t n = append(argv, append(argv, 1, judged), options);

	n = append(argv, n, LIST("--", scratch_path("uring")));
	(void)append(argv, n, acts);
	run(o, argv);
}

/* In rings their accesses are recorded, and by SIGTRAP counted. */
TEST_WITH(threads_for_io_uring_are_doubted_by_signals, scratch_make,
    scratch_remove)
{
	struct outcome o;

	make_uring();
	run_uring(&o, LIST("--stop"), LIST(NULL));
	check_doubt(&o, LIST("--stop"));
	(void)setenv("WATCHPOINT_DELIVERY", "async", 1);
	run_uring(&o, LIST("--inside"), LIST(NULL));
	check_doubt(&o, LIST("--inside"));
	(void)unsetenv("WATCHPOINT_DELIVERY");
}

/* A child is watched, but not its threads of the kernel. */
TEST_WITH(threads_for_io_uring_of_children, scratch_make, scratch_remove)
{
	struct outcome o;

	make_uring();
	run_uring(&o, LIST("--stop", "-f"), LIST("child"));
	check_doubt(&o, LIST("--stop -f"));
}

/* What is not asked for is not missed. */
TEST_WITH(threads_for_io_uring_where_the_kernel_is_left_out, scratch_make,
    scratch_remove)
{
	struct outcome o;

	make_uring();
	run_uring(&o, LIST("--stop", "--user-only"), LIST(NULL));
	if (o.status != 4)
		fail_msg("status %d: %s", o.status, o.err);
}

TEST_WITH(threads_for_io_uring_that_are_there_before, scratch_make,
    scratch_remove)
{
	const char *argv[ARGS] = {watchctl(), "--stop", "-p", NULL};
	struct running target, w;
	struct outcome o;
	char line[64], pid[16];

	make_uring();
	start(&target, LIST(scratch_path("uring"), "poll"));
	hear(&target, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %15s", pid), 1);
	argv[3] = pid;
	(void)append(argv, 4, judged);
	start(&w, argv);
	(await)(w.out, "watching counter");
	say(&target, "\n");
	finish_status(&target, &o, 4);
	finish(&w, &o);
	check_doubt(&o, LIST("-p"));
}

int
main(void)
{
	const CMUnitTestFunction refused[] = {
	    by_debug_registers_children_are_noticed_too,
	    by_debug_registers_children_are_noticed_between_actions, NULL,
	};
	int failed = run_live_tests(.except = refused);

	return failed + run_live_tests(.only = refused,
	    .before_all = be_refused);
}
