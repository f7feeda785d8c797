/* jit: the names that processes write for code that they generated. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "space/jit.h"
#include "module/module.h"

static char path[64];		/* this process's file */

static void
write_map(const char *text, const char *mode)
{
	FILE *f = fopen(path, mode);

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

static int
set_up(void **state)
{
	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	(void)remove(path);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	(void)remove(path);
	return 0;
}

/* What an address is called; NULL: nothing. */
static const char *
name_at(struct ex_jit *jit, uint64_t addr)
{
	uint64_t start;

	return ex_jit_find(jit, addr, &start);
}

/* After a look that comes too soon to be one. */
static void
wait_a_look(void)
{
	nap_us(2000);
}

TEST_WITH(names_what_the_file_names, set_up, tear_down)
{
	static const struct {
		uint64_t addr;
		const char *name;
		uint64_t start;
	} cases[] = {
		{0xfff, NULL, 0}, {0x1000, "first", 0x1000},
		{0x10ff, "first", 0x1000}, {0x1100, NULL, 0},
		{0x2000, "with some words", 0x2000},
		{0x3000, "with 0x", 0x3000},
		{0xfffffffffffffff0, "at the end", 0xfffffffffffffff0},
		/* twice, by one name */
		{0x5000, "again", 0x5000}, {0x5010, "again", 0x5010},
		/* by two */
		{0x6000, NULL, 0}, {0x6010, NULL, 0}, {0x6011, "other", 0x6010},
		{0x7000, "\033[31mred\\", 0x7000},
	};
	struct ex_jit *jit = ex_jit_new(getpid(), -1);

	assert_non_null(jit);
	assert_null(name_at(jit, 0x1000));
	write_map("1000 100 first\n2000 1 with some words\n"
	    "0x3000 0x10 with 0x\nfffffffffffffff0 f at the end\n"
	    "5000 20 again\n5010 20 again\n"
	    "6000 11 one\n6010 10 other\n6000 10 other\n"
	    "7000 10 \033[31mred\\\n"
	    /* none of these */
	    "\n\n1000\n1000 100\n1000 100 \nx 100 bad\n1000 x bad\n"
	    "1000 0 bad\n-1 100 bad\nffffffffffffffff 100 bad\n"
	    "10000000000000000 100 bad\n1000 ffffffffffffffff bad\n"
	    "1000\t100\tbad\n", "w");
	wait_a_look();
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t start = 0;
		const char *name = ex_jit_find(jit, cases[i].addr, &start);

		if (cases[i].name == NULL) {
			assert_null(name);
			continue;
		}
		assert_non_null(name);
		assert_string_equal(name, cases[i].name);
		assert_int_equal(start, cases[i].start);
	}
	assert_string_equal(ex_module_path(ex_jit_module(jit)), path);
	assert_string_equal(ex_module_name(ex_jit_module(jit)), path + 5);
	assert_string_equal(ex_module_build_id(ex_jit_module(jit)), "");
	ex_jit_free(jit);
}

/* A line that is still being written is none yet. */
TEST_WITH(reads_what_is_added, set_up, tear_down)
{
	struct ex_jit *jit = ex_jit_new(getpid(), -1);
	const char *first;
	uint64_t edition;

	write_map("1000 100 first\n2000 10", "w");
	first = name_at(jit, 0x1000);
	assert_non_null(first);
	assert_null(name_at(jit, 0x2000));
	write_map("0 second\n", "a");
	wait_a_look();
	assert_string_equal(name_at(jit, 0x2080), "second");
	/* what was given out stays */
	assert_ptr_equal(name_at(jit, 0x1000), first);
	edition = ex_jit_edition(jit);
	wait_a_look();
	assert_null(name_at(jit, 0x9000));
	assert_int_equal(ex_jit_edition(jit), edition);
	/* begun anew */
	assert_int_equal(remove(path), 0);
	write_map("3000 100 third\n", "w");
	wait_a_look();
	assert_string_equal(name_at(jit, 0x3000), "third");
	assert_null(name_at(jit, 0x1000));
	assert_string_equal(first, "first");
	ex_jit_free(jit);
}

TEST_WITH(bears_much, set_up, tear_down)
{
	struct ex_jit *jit = ex_jit_new(getpid(), -1);
	static char line[100000];
	FILE *f;

	memset(line, 'x', sizeof(line) - 2);
	memcpy(line, "1000 100 ", 9);
	line[sizeof(line) - 2] = '\n';
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(line, f) >= 0);
	for (unsigned i = 0; i < 100000; i++)
		(void)fprintf(f, "%x %x f%u\n", 0x100000 + 16 * i, 16, i);
	/* more than is read: a hole, which is no line */
	assert_int_equal(fseek(f, 1L << 40, SEEK_SET), 0);
	(void)fprintf(f, "\n2000 10 far\n");
	assert_int_equal(fclose(f), 0);
	assert_string_equal(name_at(jit, 0x100000 + 16 * 99999), "f99999");
	assert_int_equal(strlen(name_at(jit, 0x1000)), 1024);
	wait_a_look();
	assert_null(name_at(jit, 0x2000));
	ex_jit_free(jit);
}

/* Files that are not read. */
TEST_WITH(believes_only_the_process_itself, set_up, tear_down)
{
	const struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
	struct ex_jit *jit = ex_jit_new(getpid(), -1);
	char other[80];

	(void)snprintf(other, sizeof(other), "%s.other", path);
	write_map("1000 100 first\n", "w");
	/* of a process of before, with this id */
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_null(name_at(jit, 0x1000));
	/* a link */
	assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	wait_a_look();
	assert_null(name_at(jit, 0x1000));
	assert_int_equal(remove(path), 0);
	/* no file */
	assert_int_equal(mkfifo(path, 0666), 0);
	(void)alarm(60);
	wait_a_look();
	assert_null(name_at(jit, 0x1000));
	(void)alarm(0);
	assert_int_equal(remove(path), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	wait_a_look();
	assert_null(name_at(jit, 0x1000));
	assert_int_equal(rmdir(path), 0);
	/* another's */
	assert_int_equal(rename(other, path), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		wait_a_look();
		assert_null(name_at(jit, 0x1000));
		assert_int_equal(chown(path, 0, 0), 0);
	}
	wait_a_look();
	assert_string_equal(name_at(jit, 0x1000), "first");
	ex_jit_free(jit);
}

/* --- another root, another PID namespace --- */

static volatile int *ready;	/* 1: it is there; 2: it cannot be made */

/* Process 1 there, with a /tmp of its own. */
static void
live_elsewhere(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, NULL) != 0)
		_exit(1);
	(void)snprintf(path, sizeof(path), "/tmp/perf-1.map");
	write_map("1000 100 elsewhere\n", "w");
	*ready = 1;
	for (;;)
		(void)pause();
}

static void
make_elsewhere(void *pid)
{
	pid_t child;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
		*ready = 2;
		return;
	}
	if ((child = fork()) == 0)
		live_elsewhere();
	*(volatile pid_t *)pid = child;
	for (;;)
		(void)pause();
}

TEST(looks_where_the_process_is)
{
	volatile pid_t *pid = shared_memory(sizeof(*pid));
	struct ex_jit *jit;
	pid_t maker;
	int root;
	char name[64];

	ready = shared_memory(sizeof(*ready));
	maker = child_start(make_elsewhere, (void *)(uintptr_t)pid);
	await(*ready != 0);
	if (*ready == 2) {
		print_message("unshare(2): %s, not tried\n", strerror(errno));
		skip();
	}
	await(*pid != 0);
	(void)snprintf(name, sizeof(name), "/proc/%d/root", *pid);
	root = open(name, O_PATH | O_CLOEXEC);
	assert_true(root >= 0);
	jit = ex_jit_new(*pid, root);
	assert_non_null(jit);
	assert_string_equal(name_at(jit, 0x1000), "elsewhere");
	ex_jit_free(jit);
	(void)close(root);
	(void)kill(*pid, SIGKILL);
	(void)kill(maker, SIGKILL);
	(void)child_wait(maker);
}

TEST(needs_a_process)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(ex_jit_new(pid, -1));
}

RUN_TESTS()
