/*
 * proc: reading /proc of real processes, which do what makes it hard to read.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "child.h"
#include "proc/proc.h"
#include "scratch.h"

enum { THREADS = 300, FILES = 8, PAGE = 4096 };

/* What children report. */
static struct shared {
	volatile int ready;		/* threads, or steps, that are there */
	volatile bool end, alone;	/* alone: the first thread goes first */
	volatile pid_t tid[THREADS];
	volatile uintptr_t at[FILES];	/* where files are mapped */
} *shared;

SHARED_FIXTURE

/* The id of a process that is no more. */
static pid_t
gone(void)
{
	pid_t pid = child_start(child_rest, (void *)&shared->ready);

	child_kill(pid);
	return pid;
}

/* --- names --- */

TEST(takes_any_name)
{
	static const char *const names[] = {
		"plain", "", " ", "two words", "a) R 1 (b", "x\ny", "\n",
		"\nTgid:\t1", "name\\n", "tab\there", "\033[31m", "\xff\xfe",
		"123456789012345",
	};
	char before[64], comm[64];

	assert_int_equal(prctl(PR_GET_NAME, before), 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		struct wp_proc_status status;

		assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
		assert_int_equal(wp_proc_comm(getpid(), gettid(), comm), 0);
		assert_string_equal(comm, names[i]);
		assert_int_equal(wp_proc_status(gettid(), &status), 0);
		assert_string_equal(status.comm, names[i]);
		assert_int_equal(status.tgid, getpid());
		assert_int_equal(status.state, 'R');
	}
	(void)prctl(PR_SET_NAME, before);
	assert_int_equal(wp_proc_comm(gone(), 1, comm), -ESRCH);
	assert_string_equal(comm, "");
}

/* --- status --- */

static void
stop_oneself(void *arg)
{
	(void)arg;
	(void)raise(SIGSTOP);
}

static void
wait_for_a_vfork_child(void *arg)
{
	(void)arg;
	if (vfork() == 0) {
		for (;;)
			(void)pause();
	}
}

TEST(reports_the_state)
{
	pid_t pid = child_start(child_rest, (void *)&shared->ready);

	await(state_of(pid) == 'S');
	assert_int_equal(kill(pid, SIGKILL), 0);
	await(state_of(pid) == 'Z');
	(void)child_wait(pid);
	assert_int_equal(state_of(pid), 0);

	pid = child_start(stop_oneself, NULL);
	await(state_of(pid) == 'T');
	child_kill(pid);
}

/* A process whose child is still to go, and which goes with it. */
TEST(reports_uninterruptible_sleep)
{
	pid_t pid = child_start(wait_for_a_vfork_child, NULL);
	char name[64];
	int child = 0;

	await(state_of(pid) == 'D');
	(void)snprintf(name, sizeof(name), "/proc/%d/task/%d/children", pid,
	    pid);
	FILE *f = fopen(name, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &child), 1);
	(void)fclose(f);
	assert_int_equal(kill(child, SIGKILL), 0);
	(void)child_wait(pid);
}

static void
ignore_signal(int sig)
{
	(void)sig;
}

static uint64_t
bit(int sig)
{
	return 1ull << (sig - 1);
}

static void
set_signals(void *arg)
{
	sigset_t set;

	(void)arg;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigaddset(&set, SIGRTMAX);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)signal(SIGUSR2, SIG_IGN);
	(void)signal(SIGURG, ignore_signal);
	child_rest((void *)&shared->ready);
}

TEST(reports_signals)
{
	pid_t pid = child_start(set_signals, NULL);
	struct wp_proc_status status;

	await(shared->ready == 1);
	assert_int_equal(wp_proc_status(pid, &status), 0);
	assert_int_equal(status.blocked, bit(SIGUSR1) | bit(SIGRTMAX));
	assert_true(status.ignored & bit(SIGUSR2));
	assert_false(status.ignored & bit(SIGURG));
	assert_true(status.caught & bit(SIGURG));
	assert_false(status.caught & bit(SIGUSR2));
	assert_int_equal(status.uid, getuid());
	assert_int_equal(status.tgid, pid);
	assert_false(status.kernel_thread);
	child_kill(pid);
}

static void
confine(void *arg)
{
	char c;

	(void)arg;
	shared->ready = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0 ? 1 : 2;
	(void)!read(*(int *)arg, &c, 1);
}

TEST(reports_seccomp)
{
	struct wp_proc_status status;
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = child_start(confine, fd);
	await(shared->ready != 0);
	assert_int_equal(shared->ready, 1);
	assert_int_equal(wp_proc_status(pid, &status), 0);
	assert_int_equal(status.seccomp, 1);
	child_kill(pid);
	(void)close(fd[0]);
	(void)close(fd[1]);
}

static void
join_groups(void *arg)
{
	static gid_t groups[60000];

	for (size_t i = 0; i < COUNT(groups); i++)
		groups[i] = 4000000000u + (gid_t)i;
	*(bool *)arg = setgroups(COUNT(groups), groups) == 0;
	child_rest((void *)&shared->ready);
}

/* The list of groups stands in the midst of what else is to be found. */
TEST(is_not_led_astray_by_groups)
{
	struct wp_proc_status status;
	bool *joined = shared_memory(sizeof(*joined));
	pid_t pid = child_start(join_groups, joined);

	await(shared->ready == 1);
	assert_int_equal(wp_proc_status(pid, &status), 0);
	assert_false(status.kernel_thread);
	assert_true(status.seccomp >= 0);
	child_kill(pid);
	if (!*joined) {
		print_message("not permitted to join groups\n");
		skip();
	}
}

TEST(knows_kernel_threads)
{
	struct wp_proc_status status;

	if (wp_proc_status(2, &status) != 0 ||
	    strcmp(status.comm, "kthreadd") != 0) {
		print_message("no kernel threads are to be seen here\n");
		skip();
	}
	assert_true(status.kernel_thread);
	assert_int_equal(wp_proc_status(getpid(), &status), 0);
	assert_false(status.kernel_thread);
}

static void
end_at_once(void *name)
{
	(void)prctl(PR_SET_NAME, name);
}

TEST(recognizes_an_exiting_process)
{
	static char name[] = "a) Z 1 1 1 1 4 (";
	pid_t pid = child_start(end_at_once, name);

	assert_false(wp_proc_exiting(getpid()));
	await(state_of(pid) == 'Z');
	assert_true(wp_proc_exiting(pid));
	(void)child_wait(pid);
	assert_true(wp_proc_exiting(pid));
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
	assert_false(wp_proc_exiting(getpid()));
	assert_int_equal(prctl(PR_SET_NAME, "proc_test"), 0);
}

static void
on_signal(int sig)
{
	(void)sig;
}

/* Its name is no obstacle. */
TEST(knows_what_is_handled)
{
	static const int signals[] = {SIGHUP, SIGURG, SIGWINCH, SIGSYS};
	const struct sigaction action = {.sa_handler = on_signal};
	const int fd = wp_proc_caught_open(getpid());
	uint64_t before, caught;

	assert_true(fd >= 0);
	assert_int_equal(prctl(PR_SET_NAME, "a) S 1 2 (3"), 0);
	assert_int_equal(wp_proc_caught(fd, &before), 0);
	for (size_t i = 0; i < COUNT(signals); i++) {
		(void)sigaction(signals[i], &action, NULL);
		assert_int_equal(wp_proc_caught(fd, &caught), 0);
		assert_int_equal(caught, before | 1u << (signals[i] - 1));
		(void)signal(signals[i], SIG_DFL);
	}
	assert_int_equal(prctl(PR_SET_NAME, "proc_test"), 0);
	(void)close(fd);
}

TEST(knows_where_a_thread_is)
{
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		assert_int_equal(wp_proc_cpu(getpid(), gettid()), cpu);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_true(wp_proc_cpu(getpid(), 1) < 0);
}

TEST(reports_nothing_of_a_process_that_is_gone)
{
	static char name[] = "gone";
	const pid_t pid = child_start(end_at_once, name);
	const int fd = wp_proc_caught_open(pid);
	uint64_t caught;

	(void)child_wait(pid);
	assert_int_equal(wp_proc_caught(fd, &caught), -ESRCH);
	assert_int_equal(wp_proc_caught_open(pid), -ESRCH);
	(void)close(fd);
}

/* --- threads --- */

static void *
thread_rest(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	shared->tid[i] = gettid();
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->end)
		(void)usleep(1000);
	if (shared->alone)
		_exit(0);
	return NULL;
}

static void
have_many_threads(void *arg)
{
	(void)arg;
	child_threads(THREADS, thread_rest);
	for (;;)
		(void)pause();
}

static bool
is_in(const pid_t *tids, int n, pid_t tid)
{
	for (int i = 0; i < n; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

TEST(lists_every_thread_once)
{
	pid_t pid = child_start(have_many_threads, NULL), *tids = NULL;
	struct wp_proc_status status;
	size_t cap = 0, before;
	int n;

	await(shared->ready == THREADS);
	n = wp_proc_threads(pid, &tids, &cap);
	assert_int_equal(n, THREADS + 1);
	assert_true(cap >= THREADS + 1);
	assert_true(is_in(tids, n, pid));
	for (int i = 0; i < THREADS; i++)
		assert_true(is_in(tids, n, shared->tid[i]));
	assert_int_equal(wp_proc_status(shared->tid[THREADS - 1], &status), 0);
	assert_int_equal(status.tgid, pid);
	/* what is large enough is used again */
	before = cap;
	assert_int_equal(wp_proc_threads(getpid(), &tids, &cap), 1);
	assert_int_equal(tids[0], getpid());
	assert_int_equal(cap, before);
	child_kill(pid);
	assert_int_equal(wp_proc_threads(pid, &tids, &cap), -ESRCH);
	free(tids);
}

/* --- mappings --- */

/* Files that a child maps, and what then becomes of them. */
static const struct {
	const char *name;
	int prot;
	bool shared;
	enum { KEPT, DELETED, REPLACED } fate;
} files[FILES] = {
	{"plain", PROT_READ | PROT_EXEC, false, KEPT},
	{"two words", PROT_READ | PROT_WRITE, true, KEPT},
	{"  (x) [heap] 00-ff r-xp", PROT_READ, false, KEPT},
	{"line\nbreak", PROT_READ | PROT_EXEC, false, KEPT},
	{"not (deleted)", PROT_READ, false, KEPT},
	{"deleted", PROT_READ | PROT_EXEC, true, DELETED},
	{"replaced", PROT_READ | PROT_EXEC, false, REPLACED},
	{"none", PROT_NONE, false, KEPT},
};

static void
map_files(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < FILES; i++) {
		int fd = open(scratch_path(files[i].name), O_RDWR);
		void *at = mmap(NULL, PAGE, files[i].prot,
		    files[i].shared ? MAP_SHARED : MAP_PRIVATE, fd, PAGE);

		shared->at[i] = at == MAP_FAILED ? 0 : (uintptr_t)at;
		(void)close(fd);
	}
	child_rest((void *)&shared->ready);
}

/* A file of two pages that ends in its name. */
static void
make_file(const char *name, const char *text)
{
	scratch_write(name, text);
	assert_int_equal(truncate(scratch_path(name), 2 * PAGE), 0);
}

static pid_t
start_mapper(void)
{
	pid_t pid;

	for (size_t i = 0; i < FILES; i++)
		make_file(files[i].name, files[i].name);
	pid = child_start(map_files, NULL);
	await(shared->ready == 1);
	for (size_t i = 0; i < FILES; i++) {
		assert_true(shared->at[i] != 0);
		if (files[i].fate == DELETED)
			assert_int_equal(unlink(scratch_path(files[i].name)),
			    0);
		if (files[i].fate == REPLACED) {
			make_file("new", "another");
			assert_int_equal(rename(scratch_path("new"),
			    scratch_path(files[i].name)), 0);
		}
	}
	return pid;
}

struct find {
	uint64_t start;		/* of which mapping */
	struct wp_proc_map map;
	uint64_t before;	/* end of the one before */
	bool ordered, found;
};

static int
find_map(void *arg, const struct wp_proc_map *map)
{
	struct find *find = arg;

	find->ordered = find->ordered && map->start >= find->before &&
	    map->start < map->end;
	find->before = map->end;
	if (map->start == find->start) {
		find->map = *map;
		find->found = true;
	}
	return 0;
}

static struct wp_proc_map
map_at(pid_t pid, uint64_t start)
{
	struct find find = {.start = start, .ordered = true};

	assert_int_equal(wp_proc_maps(pid, find_map, &find), 0);
	assert_true(find.ordered);
	assert_true(find.found);
	return find.map;
}

TEST(reads_mappings)
{
	pid_t pid = start_mapper();

	for (size_t i = 0; i < FILES; i++) {
		const struct wp_proc_map map = map_at(pid, shared->at[i]);
		struct stat st;

		assert_int_equal(map.end, map.start + PAGE);
		assert_int_equal(map.offset, PAGE);
		assert_int_equal(map.prot, files[i].prot);
		assert_int_equal(map.shared, files[i].shared);
		assert_int_equal(map.deleted, files[i].fate != KEPT ||
		    strstr(files[i].name, " (deleted)") != NULL);
		if (files[i].fate != KEPT)
			continue;
		assert_int_equal(stat(scratch_path(files[i].name), &st), 0);
		assert_int_equal(map.ino, st.st_ino);
		if (!map.deleted)
			assert_string_equal(map.path,
			    scratch_path(files[i].name));
	}
	child_kill(pid);
}

static int
count_maps(void *arg, const struct wp_proc_map *map)
{
	(void)map;
	return ++*(int *)arg == 3 ? 77 : 0;
}

/* A private mapping is its own, a shared one is not, nor is what lies in none
   or in both. */
TEST(knows_what_is_its_own)
{
	const int prot = PROT_READ | PROT_WRITE;
	uint8_t *at = mmap(NULL, 3 * 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0);
	uint64_t start, end;

	assert_true(at != MAP_FAILED);
	assert_true(mmap(at + 4096, 4096, prot, MAP_SHARED | MAP_ANONYMOUS |
	    MAP_FIXED, -1, 0) == at + 4096);
	assert_int_equal(munmap(at + 2 * 4096, 4096), 0);
	wp_proc_own(getpid(), (uintptr_t)at + 8, 8, &start, &end);
	assert_true(start <= (uintptr_t)at && end == (uintptr_t)at + 4096);
	for (size_t i = 4092; i < 3 * 4096; i += 4096) {
		wp_proc_own(getpid(), (uintptr_t)at + i, 8, &start, &end);
		assert_int_equal(start, 0);
		assert_int_equal(end, 0);
	}
	wp_proc_own(getpid(), (uintptr_t)at + 5000, 8, &start, &end);
	assert_int_equal(end, 0);
	(void)munmap(at, 2 * 4096);
}

TEST(ends_when_told_to)
{
	int calls = 0;

	assert_int_equal(wp_proc_maps(getpid(), count_maps, &calls), 77);
	assert_int_equal(calls, 3);
	assert_int_equal(wp_proc_maps(gone(), count_maps, &calls), -ESRCH);
	assert_int_equal(calls, 3);
}

/* --- what is in mappings --- */

/* The usage of one's own mapping that begins somewhere. */
struct usage_at {
	uint64_t start;
	bool found;
	struct wp_proc_usage usage;
};

static int
take_usage(void *arg, const struct wp_proc_map *map,
    const struct wp_proc_usage *usage)
{
	struct usage_at *at = arg;

	if (map->start != at->start)
		return 0;
	at->found = true;
	at->usage = *usage;
	return 77;
}

static struct wp_proc_usage
usage_of(const void *start)
{
	struct usage_at at = {.start = (uintptr_t)start};

	assert_int_equal(wp_proc_smaps(getpid(), take_usage, &at), 77);
	assert_true(at.found);
	return at.usage;
}

/* Many pages with a mapping of nothing on both sides, so that they are one by
   themselves. */
enum { MANY = 9000 };

static uint8_t *
map_alone(int flags)
{
	uint8_t *at = mmap(NULL, (MANY + 2) * PAGE, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	at = mmap(at + PAGE, MANY * PAGE, PROT_READ | PROT_WRITE,
	    flags | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_true(at != MAP_FAILED);
	(void)madvise(at, MANY * PAGE, MADV_NOHUGEPAGE);
	return at;
}

static void
unmap(uint8_t *at)
{
	assert_int_equal(munmap(at - PAGE, (MANY + 2) * PAGE), 0);
}

TEST(reads_usage)
{
	uint8_t *private = map_alone(MAP_PRIVATE);
	uint8_t *shared_pages = map_alone(MAP_SHARED);
	struct wp_proc_usage usage;

	assert_int_equal(usage_of(private).present, 0);
	for (int i = 0; i < 3; i++)
		private[i * PAGE] = shared_pages[i * PAGE] = 1;
	usage = usage_of(private);
	assert_int_equal(usage.present, 3 * PAGE);
	assert_int_equal(usage.own, 3 * PAGE);
	assert_false(usage.io || usage.no_dump || usage.huge);
	usage = usage_of(shared_pages);
	assert_int_equal(usage.present, 3 * PAGE);
	assert_int_equal(usage.own, 0);
	assert_int_equal(madvise(private, MANY * PAGE, MADV_DONTDUMP), 0);
	assert_true(usage_of(private).no_dump);
	unmap(private);
	unmap(shared_pages);
	assert_int_equal(wp_proc_smaps(gone(), take_usage, NULL), -ESRCH);
}

TEST(finds_used_pages)
{
	static const struct {
		uint64_t from, start, end;	/* pages */
	} runs[] = {
		{0, 0, 1}, {1, 5000, 5003}, {5001, 5001, 5003},
		{5003, MANY - 1, MANY},
	};
	uint8_t *at = map_alone(MAP_PRIVATE);
	int pagemap = wp_proc_pagemap(getpid());
	uint64_t start, end;

	assert_true(pagemap >= 0);
	at[0] = at[5000 * PAGE] = at[5001 * PAGE] = at[5002 * PAGE] = 1;
	at[(MANY - 1) * PAGE] = 1;
	for (size_t i = 0; i < COUNT(runs); i++) {
		start = (uintptr_t)at + runs[i].from * PAGE;
		end = (uintptr_t)at + MANY * PAGE;
		assert_true(wp_proc_pages(pagemap, &start, &end));
		assert_int_equal(start, (uintptr_t)at + runs[i].start * PAGE);
		assert_int_equal(end, (uintptr_t)at + runs[i].end * PAGE);
	}
	start = (uintptr_t)at + 5003 * PAGE;
	end = (uintptr_t)at + (MANY - 1) * PAGE;
	assert_false(wp_proc_pages(pagemap, &start, &end));
	(void)close(pagemap);
	unmap(at);
	assert_int_equal(wp_proc_pagemap(gone()), -ESRCH);
}

TEST(reads_small_files)
{
	char text[64], few[4];

	assert_int_equal(wp_proc_text(getpid(), "comm", text, sizeof(text)),
	    strlen(program_invocation_short_name) + 1);
	assert_int_equal(wp_proc_text(getpid(), "comm", few, sizeof(few)), 3);
	assert_memory_equal(few, program_invocation_short_name, 3);
	assert_int_equal(few[3], 0);
	assert_int_equal(wp_proc_text(gone(), "comm", text, sizeof(text)),
	    -ESRCH);
}

/* --- mapped files --- */

static int
open_map(pid_t pid, int root, const struct wp_proc_map *map)
{
	return wp_proc_open_mapped(pid, root, map->start, map->end, map->path,
	    map->maj, map->min, map->ino);
}

static void
expect_text(int fd, const char *text)
{
	char got[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(pread(fd, got, sizeof(got) - 1, 0) > 0);
	assert_string_equal(got, text);
	(void)close(fd);
}

/* Whether map_files can be used: it is not for everyone. */
static bool
may_follow_maps(pid_t pid, const struct wp_proc_map *map)
{
	char name[128];
	int fd;

	(void)snprintf(name, sizeof(name), "/proc/%d/map_files/%llx-%llx", pid,
	    (unsigned long long)map->start, (unsigned long long)map->end);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

TEST(opens_the_very_file)
{
	pid_t pid = start_mapper();

	for (size_t i = 0; i < FILES; i++) {
		const struct wp_proc_map map = map_at(pid, shared->at[i]);

		if (!map.deleted || may_follow_maps(pid, &map))
			expect_text(open_map(pid, -1, &map), files[i].name);
		else
			assert_true(open_map(pid, -1, &map) < 0);
	}
	child_kill(pid);
}

TEST(opens_no_other_file)
{
	pid_t pid = start_mapper();
	struct wp_proc_map map = map_at(pid, shared->at[0]);

	map.ino++;
	assert_int_equal(open_map(pid, -1, &map), -ESTALE);
	map.ino--;
	map.end += PAGE;	/* no such mapping, but the file is it */
	expect_text(open_map(pid, -1, &map), "plain");
	(void)snprintf(map.path, sizeof(map.path), "%s",
	    scratch_path("none"));
	assert_int_equal(open_map(pid, -1, &map), -ESTALE);
	(void)snprintf(map.path, sizeof(map.path), "%s",
	    scratch_path("nothing"));
	assert_int_equal(open_map(pid, -1, &map), -ESRCH);
	map.ino = 0;			/* any regular file will do */
	(void)snprintf(map.path, sizeof(map.path), "%s",
	    scratch_path("plain"));
	expect_text(open_map(pid, -1, &map), "plain");
	child_kill(pid);
}

/* --- what is mapped, but no regular file --- */

static void
write_to_fifo(void *arg)
{
	shared->ready = 1;
	(void)!open(arg, O_WRONLY);	/* waits for a reader */
	shared->ready = 2;
}

/* Such are not even opened: that alone may do things. */
TEST(opens_no_device_or_fifo)
{
	const struct wp_proc_map none = {0};
	struct wp_proc_map map = none;
	char fifo[PATH_MAX];
	pid_t pid;

	(void)snprintf(fifo, sizeof(fifo), "%s", scratch_path("fifo"));
	assert_int_equal(mkfifo(fifo, 0600), 0);
	pid = child_start(write_to_fifo, fifo);
	await(shared->ready == 1 && state_of(pid) == 'S');
	(void)strcpy(map.path, fifo);
	assert_int_equal(open_map(pid, -1, &map), -ESTALE);
	nap_us(20000);
	assert_int_equal(shared->ready, 1);
	child_kill(pid);
	(void)strcpy(map.path, "/dev/null");
	assert_int_equal(open_map(getpid(), -1, &map), -ESTALE);
	(void)strcpy(map.path, scratch_dir);
	assert_int_equal(open_map(getpid(), -1, &map), -ESTALE);
}

/* A process that sees files where we do not. */
static void
live_elsewhere(void *arg)
{
	const char *dir = arg;
	int fd;

	if (unshare(CLONE_NEWNS) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		goto out;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", dir, "tmpfs", 0, NULL) != 0 || chdir(dir) != 0 ||
	    syscall(SYS_pivot_root, ".", ".") != 0 ||
	    umount2(".", MNT_DETACH) != 0 ||
	    (fd = open("hidden", O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0 ||
	    write(fd, "elsewhere", 9) != 9)
		goto out;
	shared->at[0] = (uintptr_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd,
	    0);
	(void)close(fd);
out:
	child_rest((void *)&shared->ready);
}

TEST(looks_where_the_process_lives)
{
	char dir[PATH_MAX];
	struct wp_proc_map map;
	pid_t pid;
	int root;

	(void)snprintf(dir, sizeof(dir), "%s", scratch_path("mount"));
	assert_int_equal(mkdir(dir, 0700), 0);
	pid = child_start(live_elsewhere, dir);
	await(shared->ready == 1);
	if (shared->at[0] == 0) {
		child_kill(pid);
		print_message("not permitted to mount, even in a namespace\n");
		skip();
	}
	map = map_at(pid, shared->at[0]);
	assert_string_equal(map.path, "/hidden");
	root = wp_proc_root(pid);
	assert_true(root >= 0);
	assert_int_equal(fcntl(root, F_GETFD), FD_CLOEXEC);
	expect_text(open_map(pid, root, &map), "elsewhere");
	child_kill(pid);
	/* without the process, its root is all there is */
	expect_text(open_map(pid, root, &map), "elsewhere");
	assert_int_equal(open_map(pid, -1, &map), -ESRCH);
	(void)close(root);
	assert_int_equal(wp_proc_root(pid), -ESRCH);
}

TEST(hides_no_process)
{
	assert_true(wp_proc_mounted());
	assert_int_equal(wp_proc_check(NULL), 0);
	assert_false(wp_proc_hides(getpid()));
	assert_false(wp_proc_hides(gettid()));
	assert_false(wp_proc_hides(gone()));
}

TEST(reports_what_a_descriptor_is_open_on)
{
	char name[256], small[4];
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const pid_t pid = getpid();

	assert_true(fd >= 0);
	assert_int_equal(wp_proc_fd(pid, gettid(), fd, name, sizeof(name)), 0);
	assert_string_equal(name, "/proc");
	/* of the process, where the thread has ended */
	assert_int_equal(wp_proc_fd(pid, gone(), fd, name, sizeof(name)), 0);
	assert_string_equal(name, "/proc");
	assert_int_equal(wp_proc_fd(pid, gettid(), fd, small, sizeof(small)),
	    -ENAMETOOLONG);
	(void)close(fd);
	assert_int_equal(wp_proc_fd(pid, gettid(), fd, name, sizeof(name)),
	    -ENOENT);
	assert_int_equal(wp_proc_fd(gone(), 1, 0, name, sizeof(name)),
	    -ENOENT);
}

/* --- a process whose first thread has ended --- */

static void
leave_first(void *arg)
{
	(void)arg;
	shared->alone = true;
	child_threads(3, thread_rest);
	while (shared->ready < 3)
		(void)usleep(1000);
	shared->at[0] = (uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	(void)strcpy((char *)shared->at[0], "still here");
	pthread_exit(NULL);
}

TEST(sees_what_the_first_thread_left)
{
	pid_t pid = child_start(leave_first, NULL), *tids = NULL;
	struct wp_proc_status status;
	struct wp_proc_map map;
	char text[16] = "";
	uint64_t value;
	size_t cap = 0;
	int root;

	await(state_of(pid) == 'Z');
	assert_int_equal(wp_proc_status(pid, &status), 0);
	assert_false(status.kernel_thread);
	assert_int_equal(wp_proc_threads(pid, &tids, &cap), 4);
	free(tids);
	map = map_at(pid, shared->at[0]);
	assert_int_equal(map.end, map.start + PAGE);
	assert_int_equal(wp_proc_auxv(pid, AT_PAGESZ, &value), 0);
	assert_int_equal(value, PAGE);
	assert_int_equal(wp_proc_read(pid, shared->at[0], text, 11), 11);
	assert_string_equal(text, "still here");
	root = wp_proc_root(pid);
	assert_true(root >= 0);
	(void)close(root);
	shared->end = true;
	(void)child_wait(pid);
}

/* Its mapped files can be reached, if those of any process can. */
TEST(opens_what_the_first_thread_left)
{
	pid_t pid = child_start(leave_first, NULL);
	struct find find = {.ordered = true};
	int fd;

	await(state_of(pid) == 'Z');
	/* the program itself is mapped where we have it */
	find.start = (uintptr_t)getauxval(AT_PHDR) & ~(uintptr_t)(PAGE - 1);
	assert_int_equal(wp_proc_maps(pid, find_map, &find), 0);
	assert_true(find.found);
	assert_true(find.map.ino != 0);
	if (may_follow_maps(getpid(), &find.map)) {
		find.map.path[0] = '\0';
		fd = open_map(pid, -1, &find.map);
		assert_true(fd >= 0);
		(void)close(fd);
	}
	shared->end = true;
	(void)child_wait(pid);
}

/* --- memory --- */

static uint8_t *
three_pages(void)
{
	uint8_t *at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	for (int i = 0; i < 3 * PAGE; i++)
		at[i] = (uint8_t)(i * 7);
	return at;
}

TEST(reads_as_far_as_there_is)
{
	static uint8_t got[3 * PAGE];
	uint8_t *at = three_pages();
	pid_t pid;

	assert_int_equal(munmap(at + 2 * PAGE, PAGE), 0);
	pid = child_start(child_rest, (void *)&shared->ready);
	await(shared->ready == 1);
	(void)memset(at, 0, 2 * PAGE);	/* ours, not the child's */

	assert_int_equal(wp_proc_read(pid, (uintptr_t)at, got, PAGE), PAGE);
	for (int i = 0; i < PAGE; i++)
		assert_int_equal(got[i], (uint8_t)(i * 7));
	assert_int_equal(wp_proc_read(pid, (uintptr_t)at + 3, got, 5), 5);
	assert_int_equal(got[0], 21);
	/* up to the end of the mapping */
	assert_int_equal(wp_proc_read(pid, (uintptr_t)at + PAGE + 1, got,
	    2 * PAGE), PAGE - 1);
	assert_int_equal(got[PAGE - 2], (uint8_t)((2 * PAGE - 1) * 7));
	assert_int_equal(wp_proc_read(pid, (uintptr_t)at, got, 0), 0);
	/* nothing there */
	assert_true(wp_proc_read(pid, (uintptr_t)at + 2 * PAGE, got, 8) < 0);
	assert_true(wp_proc_read(pid, 0, got, 8) < 0);
	assert_true(wp_proc_read(pid, 0xdead000000000000, got, 8) < 0);
	assert_true(wp_proc_read(pid, 0xffffffff81000000, got, 8) < 0);
	child_kill(pid);
	assert_int_equal(wp_proc_read(pid, (uintptr_t)at, got, 8), -ESRCH);
	(void)munmap(at, 2 * PAGE);
}

/* What the process itself may not read is there nevertheless. */
/* One word from each of several places, up to the first bad one. */
TEST(reads_words)
{
	uint8_t *at = three_pages();
	const uint64_t addr[] = {
		(uintptr_t)at + 8, (uintptr_t)at + 2 * PAGE - 8,
		(uintptr_t)at + 2 * PAGE - 4, (uintptr_t)at,
	};
	uint64_t got[COUNT(addr)], many[WP_PROC_WORDS + 1];
	pid_t pid;

	assert_int_equal(munmap(at + 2 * PAGE, PAGE), 0);
	pid = child_start(child_rest, (void *)&shared->ready);
	await(shared->ready == 1);
	assert_int_equal(wp_proc_read_words(pid, addr, got, COUNT(addr)), 2);
	assert_memory_equal(&got[0], at + 8, sizeof(got[0]));
	assert_memory_equal(&got[1], at + 2 * PAGE - 8, sizeof(got[1]));
	assert_int_equal(wp_proc_read_words(pid, addr + 2, got, 1), 0);
	assert_int_equal(wp_proc_read_words(pid, addr, got, 0), 0);
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = (uintptr_t)at;
	assert_int_equal(wp_proc_read_words(pid, many, many, COUNT(many)),
	    WP_PROC_WORDS);
	child_kill(pid);
	(void)munmap(at, 2 * PAGE);
}

static void
map_things(void *arg)
{
	(void)arg;
	for (;;) {
		int step = shared->ready;

		if (step == 1)
			(void)mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		else if (step == 3)
			shared->at[0] = (uintptr_t)mmap(NULL, PAGE,
			    PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		else if (step == 5)
			(void)munmap((void *)shared->at[0], PAGE);
		if (step % 2 == 1)
			shared->ready++;
		nap_us(100);
	}
}

/* What can be executed counts, and nothing else. */
TEST(reports_when_code_changes)
{
	uint64_t code[4];
	pid_t pid = child_start(map_things, NULL);

	for (int i = 0; i < 4; i++) {
		assert_int_equal(wp_proc_code(pid, &code[i]), 0);
		if (i < 3) {
			shared->ready++;
			await(shared->ready == 2 * i + 2);
		}
	}
	assert_true(code[0] == code[1]);
	assert_false(code[1] == code[2]);
	assert_true(code[3] == code[0]);
	child_kill(pid);
	assert_int_equal(wp_proc_code(pid, &code[0]), -ESRCH);
}

TEST(reads_what_is_protected)
{
	uint8_t *at = three_pages(), got[8];
	pid_t pid;

	assert_int_equal(mprotect(at, PAGE, PROT_NONE), 0);
	pid = child_start(child_rest, (void *)&shared->ready);
	await(shared->ready == 1);
	assert_int_equal(wp_proc_read(pid, (uintptr_t)at + 1, got, 8), 8);
	assert_int_equal(got[7], 8 * 7);
	child_kill(pid);
	(void)munmap(at, 3 * PAGE);
}

TEST(reads_the_auxiliary_vector)
{
	static const uint64_t types[] = {
		AT_PAGESZ, AT_ENTRY, AT_PHDR, AT_BASE, AT_SYSINFO_EHDR, AT_UID,
	};
	pid_t pid = child_start(child_rest, (void *)&shared->ready);
	uint64_t value;

	await(shared->ready == 1);
	for (size_t i = 0; i < COUNT(types); i++) {
		assert_int_equal(wp_proc_auxv(pid, types[i], &value), 0);
		assert_int_equal(value, getauxval(types[i]));
	}
	assert_int_equal(wp_proc_auxv(pid, 4711, &value), -ENOENT);
	child_kill(pid);
	assert_int_equal(wp_proc_auxv(pid, AT_PAGESZ, &value), -ESRCH);
}

/* --- none of all that leaves anything open --- */

TEST(leaves_nothing_open)
{
	unsigned before = open_descriptors();

	reads_mappings(state);
	(void)clear_shared(state);
	opens_the_very_file(state);
	(void)clear_shared(state);
	opens_no_other_file(state);
	(void)clear_shared(state);
	reads_as_far_as_there_is(state);
	assert_int_equal(open_descriptors(), before);
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove,
    .before_each = clear_shared, .after_each = children_end)
