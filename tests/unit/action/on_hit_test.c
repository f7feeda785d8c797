/*
 * on_hit: the choice of the action, the environment of a command, waiting for
 * its end, and the name of a core file.
 */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "child.h"
#include "action/on_hit.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "session/environment.h"
#include "said.h"
#include "scratch.h"
#include "session/session.h"

/* --- what is asked for --- */

static const struct asked {
	const char *text;
	enum on_hit_what what;
	const char *command;
} asked[] = {
	{"pause", ON_HIT_PAUSE, NULL},
	{"core", ON_HIT_CORE, NULL},
	{"exec date", ON_HIT_EXEC, "date"},
	{"exec  pstack $WATCHCTL_PID | mail root", ON_HIT_EXEC,
	 "pstack $WATCHCTL_PID | mail root"},
	{"exec\techo 'a b'", ON_HIT_EXEC, "echo 'a b'"},
};

TEST(understands)
{
	for (size_t i = 0; i < COUNT(asked); i++) {
		struct on_hit on_hit;

		assert_int_equal(on_hit_parse(asked[i].text, &on_hit), 0);
		assert_int_equal(on_hit.what, asked[i].what);
		if (asked[i].command == NULL)
			assert_null(on_hit.command);
		else
			assert_string_equal(on_hit.command, asked[i].command);
	}
}

static const struct {
	const char *text, *answer;
} refused[] = {
	{"", "watchctl: --on-hit '': no such action; there are pause, core and "
	 "'exec COMMAND'\n"},
	{"pause it", "watchctl: --on-hit 'pause it': no such action; there are "
	 "pause, core and 'exec COMMAND'\n"},
	{"executed", "watchctl: --on-hit 'executed': no such action; there are "
	 "pause, core and 'exec COMMAND'\n"},
	{"\033c", "watchctl: --on-hit '\\x1bc': no such action; there are "
	 "pause, core and 'exec COMMAND'\n"},
	{"exec", "watchctl: --on-hit 'exec': no command: give it in "
	 "the same argument, such as 'exec date'\n"},
	{"exec \t", "watchctl: --on-hit 'exec \\t': no command: give it in "
	 "the same argument, such as 'exec date'\n"},
};

TEST(refuses)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct on_hit on_hit;
		char *said;
		int err;

		said_begin(STDERR_FILENO);
		err = on_hit_parse(refused[i].text, &on_hit);
		said = said_end(STDERR_FILENO);
		assert_int_equal(err, -EINVAL);
		assert_string_equal(said, refused[i].answer);
	}
}

/* --- hits --- */

static const struct ex_watch watch = {
	.id = 1, .spec = "conn\033", .addr = 0x404090, .len = 16,
	.access = 'w', .slots = 2,
};
static const struct ex_watch *const watches[] = {&watch};
static const struct ex_frame frames[] = {
	{.pc = 0xffffffff81000010, .function = "ksys_read", .kernel = true},
	{.pc = 0x401320, .function = "bump\r", .file = "a b.c", .line = 10},
	{.pc = 0x401355, .function = "main"},
};
static const struct ex_stack stack = {
	.id = 1, .n = COUNT(frames), .frame = frames,
};

/* Bytes 4 to 7 become 0x2a; what was there is not known in full. */
static struct ex_hit
user_hit(void)
{
	struct ex_hit hit = {
		.seq = 3, .watch = &watch, .time = 1, .pid = 4711, .tid = 4712,
		.comm = "x\n=y", .cpu = 1, .access = "write",
		.addr = 0x404094, .len = 4, .pc = 0x401327, .samples = 1,
		.stack = &stack,
	};

	hit.new.byte[4] = 0x2a;
	hit.new.known = 0xf0;
	hit.source = EX_VALUE_STOP;
	hit.old.known = 0x70;
	return hit;
}

static struct ex_hit
kernel_hit(void)
{
	return (struct ex_hit){
		.seq = 4, .watch = &watch, .time = 2, .pid = 4711, .tid = 4711,
		.cpu = UINT32_MAX, .access = "write", .kernel = true,
		.call = {.name = "read"}, .addr = 0x404090, .len = 16,
		.pc = 0x7f0010, .samples = 16,
	};
}

static const struct report_start begin = {.watches = watches, .nwatches = 1};

/* A hit as its reader gets it. */
static struct on_hit_at
place_of(const struct ex_hit *hit, struct buffer *environment)
{
	struct ex_hit given = *hit;

	ex_hit_change(&given);
	if (environment != NULL)
		environment_put(environment, &begin, &given, SIZE_MAX / 2);
	return (struct on_hit_at){
		.seq = hit->seq, .pid = hit->pid, .tid = hit->tid,
		.addr = hit->addr,
		.environment = environment == NULL ? NULL : environment->bytes,
		.len = environment == NULL ? 0 : environment->len,
	};
}

/* The tracer: the process that was to be held last, and whether it cannot
   be. */
static pid_t held;
static int cannot;

static int
hold(void *arg, pid_t pid)
{
	(void)arg;
	held = pid;
	return cannot;
}

static const struct on_hit_tracer tracer = {.hold = hold};

/* Run a command at a hit.  Result: what was said meanwhile. */
static char *
at_hit(struct on_hit *on_hit, const struct ex_hit *hit)
{
	struct session s = {0};
	struct buffer environment = {0};
	const struct on_hit_at at = place_of(hit, &environment);
	char *said;

	said_begin(STDERR_FILENO);
	held = 0;
	on_hit_act(on_hit, &tracer, &s, &at);
	said = said_end(STDERR_FILENO);
	buffer_free(&environment);
	assert_int_equal(on_hit->left, 0);
	assert_int_equal(held, 0);
	return said;
}

static struct on_hit_at
stopped_hit(void)
{
	const struct ex_hit hit = user_hit();

	return place_of(&hit, NULL);
}

static struct on_hit
exec(const char *command)
{
	return (struct on_hit){.what = ON_HIT_EXEC, .command = command};
}

static void
expect_said(const char *command, const struct ex_hit *hit, const char *expected)
{
	struct on_hit on_hit = exec(command);
	char *said = at_hit(&on_hit, hit);

	assert_string_equal(said, expected);
}

/* What is not known is not there, also if watchctl itself is such a command. */
TEST(reports_the_hit)
{
	static const char command[] =
	    "env | grep ^WATCHCTL_ | grep -v ^WATCHCTL_HIT | LC_ALL=C sort";
	const struct ex_hit hit = user_hit(), kernel = kernel_hit();

	assert_int_equal(setenv("WATCHCTL_LINE", "99", 1), 0);
	expect_said(command, &hit,
	    "WATCHCTL_ACCESS=write\n"
	    "WATCHCTL_ADDR=0x404094\n"
	    "WATCHCTL_COMM=x\\n=y\n"
	    "WATCHCTL_FILE=a b.c\n"
	    "WATCHCTL_FUNCTION=bump\\r\n"
	    "WATCHCTL_LEN=4\n"
	    "WATCHCTL_LINE=10\n"
	    "WATCHCTL_NEW=0x2a\n"
	    "WATCHCTL_ORIGIN=user\n"
	    "WATCHCTL_PC=0x401320\n"
	    "WATCHCTL_PID=4711\n"
	    "WATCHCTL_SEQ=3\n"
	    "WATCHCTL_TID=4712\n"
	    "WATCHCTL_WATCH=conn\\x1b\n");
	expect_said(command, &kernel,
	    "WATCHCTL_ACCESS=write\n"
	    "WATCHCTL_ADDR=0x404090\n"
	    "WATCHCTL_LEN=16\n"
	    "WATCHCTL_ORIGIN=kernel\n"
	    "WATCHCTL_PC=0x7f0010\n"
	    "WATCHCTL_PID=4711\n"
	    "WATCHCTL_SEQ=4\n"
	    "WATCHCTL_SYSCALL=read\n"
	    "WATCHCTL_TID=4711\n"
	    "WATCHCTL_WATCH=conn\\x1b\n");
	(void)unsetenv("WATCHCTL_LINE");
}

TEST(reports_it_as_json)
{
	const struct ex_hit hit = user_hit();
	struct on_hit on_hit = exec("printf '%s' \"$WATCHCTL_HIT\"");
	char *said = at_hit(&on_hit, &hit);
	json_t *json = json_loads(said, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(json);
	assert_string_equal(json_string_value(json_object_get(json, "type")),
	    "hit");
	assert_int_equal(json_integer_value(json_object_get(json, "seq")), 3);
	assert_string_equal(json_string_value(json_object_get(json, "comm")),
	    "x\n=y");
	json_decref(json);
}

/* Nothing to read, and nothing that watchctl's output is disturbed by. */
TEST(has_streams_of_its_own)
{
	const struct ex_hit hit = user_hit();

	expect_said("cat; echo out; echo err >&2", &hit, "out\nerr\n");
}

TEST(reports_a_failure_once)
{
	static const struct {
		const char *command, *said;
	} runs[] = {
		{"exit 0", ""},
		{"exit 3", "watchctl: warning: hit #3: the command of --on-hit "
		    "ended with status 3; this is reported once\n"},
		{"exit 3", ""},
		{"kill -KILL $$", "watchctl: warning: hit #3: the command of "
		    "--on-hit ended with status 137; this is reported once\n"},
		{"kill -KILL $$", ""},
		{"exit 3", ""},
		{"exit 255", "watchctl: warning: hit #3: the command of "
		    "--on-hit ended with status 255; this is reported once\n"},
	};
	const struct ex_hit hit = user_hit();
	struct on_hit on_hit = exec(NULL);

	for (size_t i = 0; i < COUNT(runs); i++) {
		char *said;

		on_hit.command = runs[i].command;
		said = at_hit(&on_hit, &hit);
		assert_string_equal(said, runs[i].said);
	}
}

/* --- signals --- */

/* Commands that would take long, which tell us to end, and their pid. */
static const char *const lingering[] = {
	"echo $$ > pid; kill -INT $PPID; sleep 60",
	"trap '' TERM; echo $$ > pid; kill -TERM $PPID; sleep 60; sleep 60",
};

/* Whether nobody of a process group runs.  Zombies that init has not come to
   yet do not. */
static bool
no_one_runs(pid_t group)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	bool gone = true;

	assert_non_null(proc);
	while ((entry = readdir(proc)) != NULL) {
		char path[64], line[512] = "", state_of = 'Z';
		int of = 0;
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%.20s/stat",
		    entry->d_name);
		if (atoi(entry->d_name) <= 0 || (f = fopen(path, "r")) == NULL)
			continue;
		if (fgets(line, sizeof(line), f) != NULL)
			(void)sscanf(strrchr(line, ')') == NULL ? "" :
			    strrchr(line, ')'), ") %c %*d %d", &state_of, &of);
		(void)fclose(f);
		gone = gone && (of != group || state_of == 'Z');
	}
	(void)closedir(proc);
	return gone;
}

TEST_WITH(gives_up_for_a_signal, scratch_enter, scratch_leave)
{
	const struct ex_hit hit = user_hit();
	const struct timespec none = {0};
	sigset_t signals, before;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &signals, &before);
	for (size_t i = 0; i < COUNT(lingering); i++) {
		char *pid;

		expect_said(lingering[i], &hit, "watchctl: warning: hit #3: "
		    "the command of --on-hit was ended by a signal for "
		    "watchctl\n");
		/* who waits for it still gets it */
		assert_true(sigtimedwait(&signals, NULL, &none) > 0);
		pid = scratch_read("pid", NULL);
		assert_true(atoi(pid) > 1);
		await(no_one_runs(atoi(pid)));
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* The command has signals as a program expects them. */
TEST(leaves_signals_to_the_command)
{
	const struct ex_hit hit = user_hit();
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	sigset_t signals, mask;

	(void)sigfillset(&signals);
	(void)sigprocmask(SIG_BLOCK, &signals, &mask);
	expect_said("kill -HUP $$; echo no", &hit, "watchctl: warning: hit #3: "
	    "the command of --on-hit ended with status 129; this is "
	    "reported once\n");
	expect_said("kill -PIPE $$; echo no", &hit, "watchctl: warning: hit "
	    "#3: the command of --on-hit ended with status 141; this is "
	    "reported once\n");
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)signal(SIGPIPE, before);
}

/* --- core files --- */

static void
be_idle(void *unused)
{
	(void)unused;
	for (;;)
		(void)pause();
}

static void
expect_core(const char *format, pid_t pid)
{
	char name[64];
	struct stat st;

	(void)snprintf(name, sizeof(name), format, (int)pid);
	assert_int_equal(stat(scratch_path(name), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(st.st_size > 0);
	assert_int_equal(unlink(scratch_path(name)), 0);
}

TEST_WITH(writes_core_files, scratch_enter, scratch_leave)
{
	struct session s = {0};
	struct on_hit on_hit = {.what = ON_HIT_CORE};
	struct on_hit_at hit = stopped_hit();
	struct wp_hold hold = {0};
	char *said, expected[PATH_MAX + 128], exe[PATH_MAX];

	assert_int_equal(wp_proc_exe(getpid(), exe), 0);
	hit.pid = hit.tid = child_start(be_idle, NULL);
	assert_int_equal(wp_hold_process(&hold, hit.pid), 0);
	said_begin(STDERR_FILENO);
	for (int i = 0; i < 3; i++)
		on_hit_act(&on_hit, &tracer, &s, &hit);
	said = said_end(STDERR_FILENO);
	wp_hold_release(&hold);
	for (int i = 1; i <= 3; i++) {
		(void)snprintf(expected, sizeof(expected), i == 1 ?
		    "gdb %s core.%d.3\n" : "gdb %s core.%d.3.%d\n", exe,
		    (int)hit.pid, i);
		assert_holds(said, expected);
	}
	assert_holds(said, "1 thread).");
	assert_int_equal(held, hit.pid);
	expect_core("core.%d.3", hit.pid);
	expect_core("core.%d.3.2", hit.pid);
	expect_core("core.%d.3.3", hit.pid);
	child_kill(hit.pid);
}

/* Nothing is left of one that could not be written. */
TEST_WITH(leaves_no_half_of_one, scratch_enter, scratch_leave)
{
	struct session s = {0};
	struct on_hit on_hit = {.what = ON_HIT_CORE};
	struct on_hit_at hit = stopped_hit();
	char *said, expected[256];

	hit.pid = hit.tid = child_start(be_idle, NULL);
	child_kill(hit.pid);
	said_begin(STDERR_FILENO);
	on_hit_act(&on_hit, &tracer, &s, &hit);
	assert_int_equal(mkdir("gone", 0700), 0);
	assert_int_equal(chdir("gone"), 0);
	assert_int_equal(rmdir("../gone"), 0);
	on_hit_act(&on_hit, &tracer, &s, &hit);
	said = said_end(STDERR_FILENO);
	assert_int_equal(chdir(scratch_dir), 0);
	(void)snprintf(expected, sizeof(expected), "watchctl: warning: hit #3: "
	    "no core file core.%d.3: the process was killed\n"
	    "watchctl: warning: hit #3: no core file core.%d.3: No such file "
	    "or directory\n", (int)hit.pid, (int)hit.pid);
	assert_string_equal(said, expected);
	assert_int_not_equal(scratch_try("ls core.*.3 2>/dev/null"), 0);
}

/* --- pause --- */

TEST(pauses_a_stopped_process)
{
	struct session s = {0};
	struct on_hit on_hit = {.what = ON_HIT_PAUSE};
	const struct on_hit_at hit = stopped_hit();
	char *said;

	for (cannot = 0; cannot >= -ETIMEDOUT; cannot -= ETIMEDOUT) {
		held = 0;
		said_begin(STDERR_FILENO);
		on_hit_act(&on_hit, &tracer, &s, &hit);
		said = said_end(STDERR_FILENO);
		assert_int_equal(held, hit.pid);
		assert_int_equal(on_hit.left, hit.pid);
		assert_string_equal(said, cannot == 0 ? "" : "watchctl: "
		    "warning: process 4711 cannot be held still at hit #3\n");
	}
	cannot = 0;
}

/* It was not explained in time. */
TEST(names_a_thread_without_explanation)
{
	struct on_hit on_hit = {.what = ON_HIT_PAUSE};
	struct on_hit_at hit = stopped_hit();
	struct session s = {0};
	char *said;

	hit.seq = 0;
	said_begin(STDERR_FILENO);
	on_hit_act(&on_hit, &tracer, &s, &hit);
	on_hit_report_paused(&on_hit);
	on_hit = exec("env | grep ^WATCHCTL_ | LC_ALL=C sort; exit 5");
	on_hit_act(&on_hit, &tracer, &s, &hit);
	said = said_end(STDERR_FILENO);
	assert_string_equal(said, "watchctl: process 4711 is stopped at a hit "
	    "that is not explained yet (thread 4712).  Attach: gdb -p 4711   "
	    "Go on: kill -CONT 4711\n"
	    "WATCHCTL_ADDR=0x404094\nWATCHCTL_PID=4711\nWATCHCTL_TID=4712\n"
	    "watchctl: warning: a hit that is not explained yet: the command "
	    "of --on-hit ended with status 5; this is reported once\n");
}

/* Whoever explains may have been taken over. */
TEST(takes_nothing_else_for_variables)
{
	static const char lies[] = "LD_PRELOAD=x\0WATCHCTL_OK=1\0PATH=/\0"
	    "WATCHCTL_A\0WATCHCTL_a=1\0WATCHCTL_B=\033c\0WATCHCTL_C=\n\0"
	    "\0WATCHCTL_D=1", *command = "env | grep -c '^LD_PRELOAD'; "
	    "env | grep ^WATCHCTL_ | LC_ALL=C sort";
	struct on_hit on_hit = exec(command);
	struct on_hit_at hit = stopped_hit();
	struct session s = {0};
	char *said;

	hit.environment = lies;
	hit.len = sizeof(lies);
	said_begin(STDERR_FILENO);
	on_hit_act(&on_hit, &tracer, &s, &hit);
	said = said_end(STDERR_FILENO);
	assert_string_equal(said, "0\nWATCHCTL_D=1\nWATCHCTL_OK=1\n");
}

TEST(reports_how_to_go_on)
{
	const struct on_hit on_hit = {
		.left = 4711, .left_tid = 4712, .left_seq = 3,
	};
	char *said;

	said_begin(STDERR_FILENO);
	on_hit_report_paused(&on_hit);
	said = said_end(STDERR_FILENO);
	assert_string_equal(said, "watchctl: process 4711 is stopped at hit #3 "
	    "(thread 4712).  Attach: gdb -p 4711   Go on: kill -CONT 4711\n");
}

RUN_TESTS(.after_all = children_end)
