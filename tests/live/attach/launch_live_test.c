/*
 * launch: commands are watched from their first instruction on, or from the
 * place to which they were allowed to run.  Most of the commands are this
 * program, called with arguments.
 */
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "child.h"
#include "live.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "record/record.h"
#include "scratch.h"
#include "attach/target.h"

enum { EARLY = 7, LATE = 5, STATUS = 9, THREADS = 3, CHILDREN = 40 };

/* --- what the commands do --- */

static volatile long written;		/* is watched */
static volatile long stages;		/* how far it has come */
static volatile bool go;

static __attribute__((noinline)) void
stage_one(void)
{
	stages++;
}

static __attribute__((noinline)) void
stage_two(void)
{
	stages++;
}

/* Before main, when the first argument says so. */
__attribute__((constructor)) static void
construct(void)
{
	char args[PATH_MAX + 8] = "";
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, args, sizeof(args) - 1);

	(void)close(fd);
	if (n > 0 && strncmp(args + strlen(args) + 1, "--", 2) == 0)
		for (int i = 0; i < EARLY; i++)
			written = i;
}

static void *
write_when_told(void *arg)
{
	while (!go)
		nap_us(100);
	for (int i = 0; i < 10; i++)
		written = i;
	return arg;
}

/* Threads are there before the first stage, and write after it. */
static void
make_threads(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		(void)pthread_create(&thread[i], NULL, write_when_told, NULL);
	stage_one();
	go = true;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
}

static volatile int urgent;

static void
count_urgent(int sig)
{
	(void)sig;
	urgent++;
}

/* Children end with every status that could be a descriptor's number, and
   there are signals of the kind that stops at breakpoints. */
static void
have_children(void)
{
	(void)signal(SIGURG, count_urgent);
	for (int i = 1; i < CHILDREN; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(i);
		(void)waitpid(pid, NULL, 0);
		(void)raise(SIGURG);
	}
}

static int
command(const char *what)
{
	if (strcmp(what, "--threads") == 0) {
		make_threads();
		return STATUS;
	}
	if (strcmp(what, "--children") == 0)
		have_children();
	if (strcmp(what, "--pause") == 0)
		(void)pause();
	for (int i = 0; i < LATE; i++) {
		stage_one();
		written = i;
	}
	stage_two();
	if (strcmp(what, "--fatal") == 0)
		(void)raise(SIGTERM);
	if (strcmp(what, "--children") == 0 && urgent != CHILDREN - 1)
		return 1;
	return STATUS;
}

/* --- launching them --- */

struct launched {
	struct wp_target *target;
	pid_t pid;
	uint64_t moved;		/* its addresses less ours */
};

static char self[PATH_MAX];

static void
launch_argv(struct launched *l, char *const argv[],
    const struct wp_options *options)
{
	struct wp_cause cause;

	memset(l, 0, sizeof(*l));
	assert_int_equal(wp_target_new(&l->target, &live_features, options,
	    &cause), 0);
	if (wp_target_launch(l->target, argv, &l->pid, &cause) != 0)
		fail_msg("%s", cause.text);
}

/* This program, to do something. */
static void
launch(struct launched *l, const char *what, const struct wp_options *options)
{
	char *const argv[] = {self, (char *)(uintptr_t)what, NULL};
	uint64_t entry;

	launch_argv(l, argv, options);
	assert_int_equal(wp_proc_auxv(l->pid, AT_ENTRY, &entry), 0);
	l->moved = entry - getauxval(AT_ENTRY);
}

static uint64_t
address(const struct launched *l, const volatile void *here)
{
	return (uintptr_t)here + l->moved;
}

static long
read_long(const struct launched *l, const volatile long *here)
{
	long value = -1;

	assert_int_equal(wp_proc_read(l->pid, address(l, here), &value,
	    sizeof(value)), sizeof(value));
	return value;
}

/* Where a stopped thread stands, as /proc says. */
static uint64_t
pc_of(pid_t pid)
{
	char name[64], line[256] = "", *last;
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/%d/syscall", pid);
	f = fopen(name, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	(void)fclose(f);
	last = strrchr(line, ' ');
	assert_non_null(last);
	return strtoull(last, NULL, 16);
}

static void
watch(const struct launched *l, uint64_t addr, enum wp_access access)
{
	const struct wp_region region = {addr, sizeof(long), access};
	struct wp_cause cause;

	if (wp_target_watch(l->target, &region, 1, &cause) < 0)
		fail_msg("%s", cause.text);
}

static void
arm(const struct launched *l)
{
	struct wp_cause cause;

	if (wp_target_arm(l->target, &cause) != 0)
		fail_msg("%s", cause.text);
}

static void
expect_status(pid_t pid, int want)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want);
}

static uint64_t
counted(const struct launched *l)
{
	struct wp_perf_count count;

	assert_int_equal(wp_target_count(l->target, 0, &count), 0);
	assert_int_equal(count.lost, 0);
	return count.value;
}

static void
expect_no_child(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static const struct wp_options counting = {.count = true};
static const struct wp_options sampling = {.stack = 256};

/* --- from the first instruction on --- */

TEST(sees_constructors)
{
	struct launched l;

	launch(&l, "--write", &counting);
	watch(&l, address(&l, &written), WP_WRITE);
	assert_int_equal(counted(&l), 0);
	arm(&l);
	expect_status(l.pid, STATUS);
	assert_int_equal(counted(&l), EARLY + LATE);
	assert_int_equal(wp_target_threads(l.target), 1);
	wp_target_free(l.target);
}

struct elf {
	uint64_t entry;
	uint64_t watched;	/* its section */
};

/* The start of a program and of its section .watched. */
static struct elf
read_elf(const char *path)
{
	struct elf elf = {0};
	Elf64_Ehdr header;
	Elf64_Shdr section, names;
	char name[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &header, sizeof(header), 0),
	    sizeof(header));
	elf.entry = header.e_entry;
	assert_int_equal(pread(fd, &names, sizeof(names),
	    (off_t)(header.e_shoff + header.e_shstrndx * sizeof(names))),
	    sizeof(names));
	for (unsigned i = 0; i < header.e_shnum; i++) {
		assert_int_equal(pread(fd, &section, sizeof(section),
		    (off_t)(header.e_shoff + i * sizeof(section))),
		    sizeof(section));
		(void)pread(fd, name, sizeof(name) - 1,
		    (off_t)(names.sh_offset + section.sh_name));
		if (strcmp(name, ".watched") == 0)
			elf.watched = section.sh_addr;
	}
	(void)close(fd);
	assert_true(elf.watched != 0);
	return elf;
}

TEST(sees_the_first_instruction)
{
	const char *victims = getenv("VICTIMS");
	char path[PATH_MAX];
	char *const argv[] = {path, NULL};
	const struct perf_event_header *header;
	struct perf_event_attr attr;
	struct ex_formats *formats = ex_formats_new();
	struct ex_record record = {0};
	unsigned samples = 0;
	struct launched l;
	struct elf elf;
	uint64_t *ids;
	int n;

	assert_non_null(victims);
	(void)snprintf(path, sizeof(path), "%s/start", victims);
	elf = read_elf(path);
	launch_argv(&l, argv, &sampling);
	assert_int_equal(pc_of(l.pid), elf.entry);
	watch(&l, elf.watched, WP_WRITE);
	arm(&l);
	expect_status(l.pid, 3);
	assert_int_equal(counted(&l), 1);
	n = wp_target_slot_ids(l.target, 0, 0, &attr, &ids);
	assert_true(n > 0);
	assert_int_equal(ex_formats_add(formats, &attr, ids, (size_t)n), 0);
	free(ids);
	while ((header = wp_rings_next(wp_target_rings(l.target),
	    UINT64_MAX)) != NULL) {
		if (header->type != PERF_RECORD_SAMPLE)
			continue;
		samples++;
		assert_int_equal(ex_record_decode(formats, header,
		    header->size, &record), 1);
		assert_int_equal(record.tid, l.pid);
		/* just after it */
		assert_in_range(record.sample.ip, elf.entry + 1,
		    elf.entry + 15);
	}
	assert_int_equal(samples, 1);
	ex_formats_free(formats);
	wp_target_free(l.target);
}

/* --- from an address on --- */

TEST(runs_to_addresses)
{
	struct launched l;
	uint64_t stops[3];
	int status;

	launch(&l, "--write", &counting);
	stops[0] = 0;
	stops[1] = address(&l, (void *)(uintptr_t)stage_two);
	stops[2] = address(&l, (void *)(uintptr_t)stage_one);
	for (int i = 0; i < LATE; i++) {
		assert_int_equal(wp_target_run_to(l.target, stops, 3, NULL,
		    &status), 2);
		assert_int_equal(pc_of(l.pid), stops[2]);
		assert_int_equal(read_long(&l, &stages), i);
	}
	assert_int_equal(wp_target_run_to(l.target, stops, 3, NULL, &status),
	    1);
	assert_int_equal(pc_of(l.pid), stops[1]);
	assert_int_equal(wp_target_run_to(l.target, stops, 3, NULL, &status),
	    -ECHILD);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
	expect_no_child();
	wp_target_abandon(l.target);
	wp_target_free(l.target);
}

/* Start it, and let it run to its first stage.  Result: where that is. */
static uint64_t
launch_to_stage(struct launched *l, const char *what)
{
	uint64_t stop;
	int status;

	launch(l, what, &counting);
	stop = address(l, (void *)(uintptr_t)stage_one);
	assert_int_equal(wp_target_run_to(l->target, &stop, 1, NULL, &status),
	    0);
	return stop;
}

/* What is written on the way there does not count. */
TEST(arms_where_it_was_let_run_to)
{
	struct launched l;
	const uint64_t stop = launch_to_stage(&l, "--write");
	int status;

	for (int i = 0; i < 2; i++)
		assert_int_equal(wp_target_run_to(l.target, &stop, 1, NULL,
		    &status), 0);
	watch(&l, address(&l, &written), WP_WRITE);
	arm(&l);
	expect_status(l.pid, STATUS);
	assert_int_equal(counted(&l), LATE - 2);
	wp_target_free(l.target);
}

TEST(arms_threads_made_on_the_way)
{
	struct launched l;

	(void)launch_to_stage(&l, "--threads");
	watch(&l, address(&l, &written), WP_WRITE);
	arm(&l);
	expect_status(l.pid, STATUS);
	assert_int_equal(wp_target_threads(l.target), THREADS + 1);
	assert_int_equal(counted(&l), THREADS * 10);
	wp_target_free(l.target);
}

/* Signals of its own are not taken for arrivals, and reach it. */
TEST(is_not_stopped_by_other_signals)
{
	struct launched l;
	const uint64_t stop = launch_to_stage(&l, "--children");
	int status;

	assert_int_equal(pc_of(l.pid), stop);
	assert_int_equal(wp_target_run_to(l.target, &stop, 1, NULL, &status),
	    0);
	wp_target_let_go(l.target);
	expect_status(l.pid, STATUS);
	wp_target_free(l.target);
}

static bool
is_asked_again(void *arg)
{
	return --*(int *)arg > 0;
}

/* It sleeps, or is stopped with its process; and goes on as it was. */
TEST(does_not_wait_for_ever)
{
	for (int stopped = 0; stopped < 2; stopped++) {
		int times = 20, status;
		const struct wp_patience patience = {is_asked_again, &times};
		struct launched l;
		uint64_t stop;

		launch(&l, "--pause", &counting);
		stop = address(&l, (void *)(uintptr_t)stage_one);
		if (stopped)
			assert_int_equal(kill(l.pid, SIGSTOP), 0);
		assert_int_equal(wp_target_run_to(l.target, &stop, 1,
		    &patience, &status), -EINTR);
		assert_int_equal(times, 0);
		wp_target_let_go(l.target);
		assert_int_equal(wp_proc_tracer(l.pid), 0);
		assert_int_equal(kill(l.pid, SIGTERM), 0);
		assert_int_equal(kill(l.pid, SIGCONT), 0);
		assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
		wp_target_free(l.target);
	}
}

TEST(reports_how_it_ended_before)
{
	const uint64_t nowhere = 0;
	struct launched l;
	int status;

	launch(&l, "--fatal", &counting);
	assert_int_equal(wp_target_run_to(l.target, &nowhere, 1, NULL, &status),
	    -ECHILD);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	expect_no_child();
	wp_target_free(l.target);
}

/* --- ends --- */

TEST(keeps_the_commands_status)
{
	static const struct {
		const char *script;
		int status;	/* as of waitpid(2) */
	} rows[] = {
		{"exit 0", 0}, {"exit 255", 255 << 8}, {"kill -9 $$", SIGKILL},
		{"kill -TERM $$", SIGTERM},
		{"trap 'exit 4' INT; kill -INT $$; exit 5", 4 << 8},
		{"exec sh -c 'exit 6'", 6 << 8},
	};
	unsigned before = open_descriptors();

	for (size_t i = 0; i < COUNT(rows); i++) {
		char *const argv[] = {(char *)"sh", (char *)"-c",
		    (char *)(uintptr_t)rows[i].script, NULL};
		struct launched l;
		int status;

		launch_argv(&l, argv, &counting);
		watch(&l, 0x1000, WP_WRITE);
		arm(&l);
		assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
		assert_int_equal(status & ~0x80, rows[i].status);
		await(!wp_target_alive(l.target, 0, 1));
		wp_target_free(l.target);
	}
	assert_int_equal(open_descriptors(), before);
}

TEST(abandons_without_a_trace)
{
	const char *file = scratch_path("made");
	char *const argv[] = {(char *)"touch", (char *)(uintptr_t)file, NULL};
	struct launched l;

	launch_argv(&l, argv, &counting);
	wp_target_abandon(l.target);
	assert_int_equal(kill(l.pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	expect_no_child();
	wp_target_abandon(l.target);
	wp_target_free(l.target);
	assert_int_equal(access(file, F_OK), -1);
}

/* A target that goes lets its command go on. */
TEST(releases_a_command_unwatched)
{
	struct launched l;

	launch(&l, "--write", &counting);
	watch(&l, address(&l, &written), WP_WRITE);
	wp_target_let_go(l.target);
	expect_status(l.pid, STATUS);
	assert_int_equal(counted(&l), 0);
	wp_target_free(l.target);

	launch(&l, "--write", &counting);
	wp_target_free(l.target);
	expect_status(l.pid, STATUS);
}

TEST(reports_why_it_cannot)
{
	static const struct {
		const char *name;
		int err;
		enum wp_cause_code code;
	} rows[] = {
		{"no-such-command", -ENOENT, WP_CAUSE_NOT_FOUND},
		{"./no-such-command", -ENOENT, WP_CAUSE_NOT_FOUND},
		{"/etc/passwd/x", -ENOENT, WP_CAUSE_NOT_FOUND},
		{"/etc/passwd", -EACCES, WP_CAUSE_NOT_EXECUTABLE},
		{"/", -EACCES, WP_CAUSE_NOT_EXECUTABLE},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char *const argv[] = {(char *)(uintptr_t)rows[i].name, NULL};
		struct wp_target *target;
		struct wp_cause cause = {0};
		pid_t pid;

		assert_int_equal(wp_target_new(&target, &live_features,
		    &counting, &cause), 0);
		assert_int_equal(wp_target_launch(target, argv, &pid, &cause),
		    rows[i].err);
		assert_int_equal(cause.code, rows[i].code);
		assert_holds(cause.text, rows[i].name);
		wp_target_abandon(target);
		wp_target_free(target);
		expect_no_child();
	}
}

TEST(keeps_holding_when_it_cannot_arm)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_len = 8, .exclude_kernel = 1,
		.bp_addr = 0x1000, .sample_period = 1,
	};
	struct wp_proc_status status;
	struct wp_cause cause = {0};
	int taken[WP_SLOTS_MAX];
	unsigned n = 0;
	struct launched l;

	launch(&l, "--write", &counting);
	watch(&l, address(&l, &written), WP_WRITE);
	while (n < WP_SLOTS_MAX &&
	    (taken[n] = wp_perf_open(&attr, l.pid, -1)) >= 0)
		n++;
	assert_int_equal(wp_target_arm(l.target, &cause), -ENOSPC);
	assert_int_equal(cause.code, WP_CAUSE_NO_SLOT);
	assert_int_equal(wp_proc_status(l.pid, &status), 0);
	assert_int_equal(status.state, 't');
	while (n > 0)
		(void)close(taken[--n]);
	/* it can be armed yet */
	arm(&l);
	expect_status(l.pid, STATUS);
	assert_int_equal(counted(&l), EARLY + LATE);
	wp_target_free(l.target);
}

TEST(survives_commands_that_are_killed)
{
	struct wp_proc_status state_now;
	struct wp_cause cause = {0};
	struct launched l;
	uint64_t stop;
	int status;

	launch(&l, "--write", &counting);
	watch(&l, address(&l, &written), WP_WRITE);
	assert_int_equal(kill(l.pid, SIGKILL), 0);
	if (wp_target_arm(l.target, &cause) == 0) {
		/* it was not dead yet, or there was nobody to arm any more */
		assert_int_equal(waitpid(l.pid, &status, 0), l.pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	assert_int_equal(counted(&l), 0);
	wp_target_abandon(l.target);
	wp_target_free(l.target);
	expect_no_child();

	/* dying, and dead */
	for (int dead = 0; dead < 2; dead++) {
		launch(&l, "--write", &counting);
		stop = address(&l, (void *)(uintptr_t)stage_one);
		assert_int_equal(kill(l.pid, SIGKILL), 0);
		if (dead)
			await(wp_proc_status(l.pid, &state_now) == 0 &&
			    state_now.state == 'Z');
		assert_int_equal(wp_target_run_to(l.target, &stop, 1, NULL,
		    &status), -ECHILD);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		wp_target_free(l.target);
		expect_no_child();
	}
}

static int
begin(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)setenv("PATH", "/usr/bin:/bin", 1);
	return n > 0 ? scratch_make(state) : -1;
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		_exit(command(argv[1]));
	return run_live_tests(.before_all = begin, .after_all = scratch_remove);
}
