/*
 * synth: the synthesized records of a process agree with /proc, and can be
 * decoded.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "kernel_symbol.h"
#include "os/attr.h"
#include "child.h"
#include "proc/proc.h"
#include "record/record.h"
#include "mounted.h"
#include "scratch.h"
#include "attach/synth.h"

enum { PAGE = 4096, RECORDS = 512 };

static const char *const names[] = {
	"plain", "", "two words", "a) R 1 (b", "x\ny", "123456789012345",
};

static const char *const files[] = {
	"plain", "two words", "line\nbreak", "(x) 00-ff r-xp", "gone",
};

enum {
	FILES = COUNT(files), GONE = FILES - 1,
	LONG = FILES, ANONYMOUS, MAPPED,	/* besides those */
};

static struct shared {
	volatile int ready;
	volatile bool end;
	volatile pid_t tid[COUNT(names)];
	volatile uintptr_t at[MAPPED];
	char long_path[PATH_MAX];
} *shared;

SHARED_FIXTURE

/* --- the process --- */

static void *
have_name(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	shared->tid[i] = gettid();
	(void)prctl(PR_SET_NAME, names[i]);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->end)
		nap_us(1000);
	return NULL;
}

static void
map_file(size_t i, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, 2 * PAGE) != 0)
		_exit(1);
	shared->at[i] = (uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_EXEC,
	    i % 2 == 0 ? MAP_PRIVATE : MAP_SHARED, fd, PAGE);
	(void)close(fd);
}

/* A path that is as long as it can be. */
static void
make_long_path(char *path)
{
	size_t len = strlen(scratch_dir);

	memcpy(path, scratch_dir, len + 1);
	while (len < PATH_MAX - 260) {
		path[len++] = '/';
		memset(path + len, 'd', 200);
		path[len += 200] = '\0';
		(void)mkdir(path, 0700);
	}
	path[len++] = '/';
	memset(path + len, 'f', PATH_MAX - 1 - len);
	path[PATH_MAX - 1] = '\0';
	if (strlen(path + len) > 255)
		path[len + 255] = '\0';
}

static void
have_all(void *arg)
{
	pthread_t thread;

	(void)arg;
	for (size_t i = 0; i < FILES; i++)
		map_file(i, scratch_path(files[i]));
	(void)unlink(scratch_path(files[GONE]));
	make_long_path(shared->long_path);
	map_file(LONG, shared->long_path);
	shared->at[ANONYMOUS] = (uintptr_t)mmap(NULL, PAGE, PROT_READ |
	    PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)prctl(PR_SET_NAME, names[0]);
	shared->tid[0] = getpid();
	shared->ready = 1;
	for (size_t i = 1; i < COUNT(names); i++)
		(void)pthread_create(&thread, NULL, have_name,
		    (void *)(uintptr_t)i);
	while (!shared->end)
		nap_us(1000);
}

/* --- what is made of it --- */

struct made {
	struct ex_formats *formats;
	struct ex_record record[RECORDS];
	uint8_t *bytes[RECORDS];
	size_t n;
};

/* Keep a record, in a block of just its size. */
static int
take(void *arg, const struct perf_event_header *header)
{
	struct made *made = arg;
	uint8_t *bytes = malloc(header->size);

	assert_true(made->n < RECORDS);
	assert_non_null(bytes);
	memcpy(bytes, header, header->size);
	assert_int_equal(header->size % 8, 0);
	assert_int_equal(ex_record_decode(made->formats, bytes, header->size,
	    &made->record[made->n]), 1);
	made->bytes[made->n++] = bytes;
	return 0;
}

static void
make(struct made *made, pid_t pid)
{
	const struct wp_slot slot = {0x1000, 8, HW_BREAKPOINT_W};
	const struct wp_options options = {.stack = 512};
	const uint64_t id = 1;
	struct perf_event_attr attr;

	memset(made, 0, sizeof(*made));
	wp_attr_watch(&attr, &slot, &options, true);
	made->formats = ex_formats_new();
	assert_int_equal(ex_formats_add(made->formats, &attr, &id, 1), 0);
	assert_int_equal(wp_synth_process(pid, take, made), 0);
	for (size_t i = 0; i < made->n; i++) {
		assert_int_equal(made->record[i].time, 0);
		assert_int_equal(made->record[i].pid, pid);
	}
}

static void
made_free(struct made *made)
{
	for (size_t i = 0; i < made->n; i++)
		free(made->bytes[i]);
	ex_formats_free(made->formats);
}

static const struct ex_mmap *
map_at(const struct made *made, uint64_t start)
{
	const struct ex_mmap *found = NULL;

	for (size_t i = 0; i < made->n; i++) {
		const struct ex_record *record = &made->record[i];

		if (record->type == PERF_RECORD_MMAP2 &&
		    record->mmap.start == start) {
			assert_null(found);
			found = &record->mmap;
		}
	}
	assert_non_null(found);
	return found;
}

/* --- tests --- */

static pid_t process;
static struct made made;

static int
begin(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	process = child_start(have_all, NULL);
	for (int i = 0; i < 20000 && shared->ready < (int)COUNT(names); i++)
		nap_us(1000);
	make(&made, process);
	return 0;
}

static int
finish(void **state)
{
	made_free(&made);
	(void)children_end(state);
	return scratch_remove(state);
}

TEST(reports_names)
{
	size_t n = 0;

	for (size_t i = 0; i < made.n; i++) {
		const struct ex_record *record = &made.record[i];
		size_t k = 0;

		if (record->type != PERF_RECORD_COMM)
			continue;
		while (k < COUNT(names) && shared->tid[k] != record->tid)
			k++;
		if (k == COUNT(names)) {
			fail_msg("thread %d is nobody", record->tid);
			return;
		}
		assert_string_equal(record->comm.name, names[k]);
		assert_int_equal(record->comm.pid, process);
		assert_int_equal(record->comm.tid, record->tid);
		assert_int_equal(record->misc & PERF_RECORD_MISC_COMM_EXEC, 0);
		/* before the mappings: whose they are is known by then */
		assert_true(i < COUNT(names));
		n++;
	}
	assert_int_equal(n, COUNT(names));
}

/* Every line of /proc/PID/maps, in order. */
TEST(reports_mappings)
{
	char name[64], *line = NULL;
	size_t cap = 0, i = COUNT(names);
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", process);
	f = fopen(name, "r");
	assert_non_null(f);
	while (getline(&line, &cap, f) > 0) {
		unsigned long start, end, offset, ino;
		unsigned maj, min;
		const struct ex_mmap *map;
		char perms[5];

		assert_int_equal(sscanf(line, "%lx-%lx %4s %lx %x:%x %lu",
		    &start, &end, perms, &offset, &maj, &min, &ino), 7);
		assert_true(i < made.n);
		assert_int_equal(made.record[i].type, PERF_RECORD_MMAP2);
		assert_int_equal(made.record[i].misc, PERF_RECORD_MISC_USER |
		    (perms[2] == 'x' ? 0 : PERF_RECORD_MISC_MMAP_DATA));
		map = &made.record[i++].mmap;
		assert_int_equal(map->start, start);
		assert_int_equal(map->len, end - start);
		assert_int_equal(map->pgoff, offset);
		assert_int_equal(map->maj, maj);
		assert_int_equal(map->min, min);
		assert_int_equal(map->ino, ino);
		assert_int_equal(map->prot,
		    (perms[0] == 'r' ? PROT_READ : 0) |
		    (perms[1] == 'w' ? PROT_WRITE : 0) |
		    (perms[2] == 'x' ? PROT_EXEC : 0));
		assert_int_equal(map->flags,
		    perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE);
	}
	assert_int_equal(i, made.n);
	free(line);
	(void)fclose(f);
}

TEST(reports_paths)
{
	char self[PATH_MAX] = "";

	for (size_t i = 0; i < FILES; i++) {
		const struct ex_mmap *map = map_at(&made, shared->at[i]);

		assert_string_equal(map->path, scratch_path(files[i]));
		assert_int_equal(map->pgoff, PAGE);
	}
	assert_true(strlen(shared->long_path) > PATH_MAX - 270);
	assert_string_equal(map_at(&made, shared->at[LONG])->path,
	    shared->long_path);
	/* as the kernel calls it in its records */
	assert_string_equal(map_at(&made, shared->at[ANONYMOUS])->path,
	    "//anon");
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (size_t i = 0; i < made.n; i++) {
		const struct ex_mmap *map = &made.record[i].mmap;

		if (made.record[i].type == PERF_RECORD_MMAP2 &&
		    strcmp(map->path, self) == 0 &&
		    map->start <= (uintptr_t)reports_paths &&
		    (uintptr_t)reports_paths < map->start + map->len)
			return;
	}
	fail_msg("the program itself is missing");
}

static int
end_at_third(void *arg, const struct perf_event_header *header)
{
	(void)header;
	return ++*(int *)arg == 3 ? 77 : 0;
}

static int
end_at_map(void *arg, const struct perf_event_header *header)
{
	(void)arg;
	return header->type == PERF_RECORD_MMAP2 ? -EIO : 0;
}

TEST(ends_when_told_to)
{
	int calls = 0;

	assert_int_equal(wp_synth_process(process, end_at_third, &calls), 77);
	assert_int_equal(calls, 3);
	assert_int_equal(wp_synth_process(process, end_at_map, NULL), -EIO);
}

TEST(reports_nothing_of_a_process_that_is_gone)
{
	pid_t pid = child_start(have_all, NULL);
	int calls = 0;

	child_kill(pid);
	assert_int_equal(wp_synth_process(pid, end_at_third, &calls), -ESRCH);
	assert_int_equal(calls, 0);
}

static void
leave_first(void *arg)
{
	pthread_t thread;

	(void)arg;
	(void)pthread_create(&thread, NULL, have_name, (void *)1);
	pthread_exit(NULL);
}

/* Whether it has ended. */
static bool
is_first_gone(pid_t pid)
{
	struct wp_proc_status status;

	assert_int_equal(wp_proc_status(pid, &status), 0);
	return status.state == 'Z';
}

/* The others still have it all when the first thread has ended, and while it
   is ending. */
TEST(reports_all_without_the_first_thread)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid;
		bool gone;

		shared->ready = 0;
		pid = child_start(leave_first, NULL);
		await(shared->ready == 1);
		do {
			struct made later;
			size_t maps = 0;

			gone = is_first_gone(pid);
			make(&later, pid);
			for (size_t k = 0; k < later.n; k++)
				maps += later.record[k].type ==
				    PERF_RECORD_MMAP2;
			assert_true(maps > 0);
			assert_int_equal(later.n, 2 + maps);
			made_free(&later);
		} while (!gone);
		child_kill(pid);
	}
}

TEST(reports_the_kernel)
{
	const uint64_t start = kernel_symbol("_text"),
	    end = kernel_symbol("_etext");
	struct made kernel = {.formats = made.formats};
	const struct ex_record *record = &kernel.record[0];

	assert_int_equal(wp_synth_kernel(take, &kernel), 0);
	assert_int_equal(kernel.n, start != 0 && end != 0);
	if (kernel.n == 0)
		return;
	assert_int_equal(record->type, PERF_RECORD_MMAP);
	assert_int_equal(record->misc, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(record->pid, -1);
	assert_int_equal(record->time, 0);
	assert_int_equal(record->mmap.start, start);
	assert_int_equal(record->mmap.len, end - start);
	assert_string_equal(record->mmap.path, "[kernel.kallsyms]_text");
	free(kernel.bytes[0]);
}

/* --- what other kernels write --- */

/* Where the kernel's code is by such a file: in a namespace of its own.  0: the
   length was 4096; 1: it was not, or nothing was reported; 126: not tried. */
static int
length_by(const char *kallsyms)
{
	struct made kernel = {.formats = made.formats};
	const struct ex_record *record = &kernel.record[0];

	if (!mounted_text("/proc/kallsyms", kallsyms))
		return 126;
	return wp_synth_kernel(take, &kernel) != 0 || kernel.n != 1 ||
	    record->mmap.len != 4096;
}

static int
status_by(const char *kallsyms)
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(length_by(kallsyms));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(reports_a_kernel_with_variables_at_zero)
{
	/* up to Linux 6.14 those of each processor are */
	const int status = status_by("0000000000000000 A fixed_percpu_data\n"
	    "0000000000001000 A cpu_debug_store\n"
	    "ffffffff81000000 T _text\n"
	    "ffffffff81001000 T _etext\n");

	if (status == 126) {
		print_message("no mount namespace here, not tried\n");
		skip();
	}
	assert_int_equal(status, 0);
	/* hidden */
	assert_int_equal(status_by("0000000000000000 A fixed_percpu_data\n"
	    "0000000000000000 T _text\n"
	    "ffffffff81000000 T _text\n"
	    "ffffffff81001000 T _etext\n"), 1);
}

RUN_TESTS(.before_all = begin, .after_all = finish)
