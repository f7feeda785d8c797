/*
 * perfdata: the reader and perf read what the writer wrote; files of both
 * layouts are built byte by byte, complete, truncated and damaged.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "record/perfdata.h"
#include "scratch.h"

#define WATCH_IDS {101, 102}
#define OTHER_IDS {103}
#define DUMMY_IDS {104, 105}
#define REGS 0xff0fffULL	/* what x86-64 has for user space */
#define NREGS 20
#define STACK 512
#define PID 4335

/* Begin a record at the end of b; its place is for finish. */
static size_t
begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};

	put(b, &header, sizeof(header));
	return b->len - sizeof(header);
}

static void
finish(struct bytes *b, size_t at)
{
	uint16_t size = (uint16_t)(b->len - at);

	memcpy(b->b + at + offsetof(struct perf_event_header, size), &size,
	    sizeof(size));
}

static void
finish_with_trailer(struct bytes *b, size_t at, uint32_t tid, uint64_t time,
    uint64_t id)
{
	put32(b, PID);
	put32(b, tid);
	put64(b, time);
	put64(b, 1);		/* cpu */
	put64(b, id);
	finish(b, at);
}

/*
 * The events of a watchctl session, and records as they would be.
 */

static struct perf_event_attr
watch_attr(uint64_t addr)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
		    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
		    PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER |
		    PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR,
		.inherit = 1,
		.exclude_kernel = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.bp_type = 2,
		.bp_addr = addr,
		.bp_len = 8,
		.sample_regs_user = REGS,
		.sample_regs_intr = REGS,
		.sample_stack_user = STACK,
	};

	return attr;
}

static struct perf_event_attr
dummy_attr(void)
{
	struct perf_event_attr attr = watch_attr(0);

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.bp_type = 0;
	attr.bp_len = 0;
	attr.mmap = attr.mmap2 = attr.comm = attr.task = 1;
	return attr;
}

static void
put_regs(struct bytes *b, uint64_t ip)
{
	unsigned i;

	put64(b, PERF_SAMPLE_REGS_ABI_64);
	for (i = 0; i < NREGS; i++)
		put64(b, i == 8 ? ip : 0x1000 + i);	/* PERF_REG_X86_IP */
}

static void
put_sample(struct bytes *b, uint64_t id, uint32_t tid, uint64_t time,
    uint64_t ip, uint64_t addr)
{
	size_t i, at = begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put64(b, id);
	put64(b, ip);
	put32(b, PID);
	put32(b, tid);
	put64(b, time);
	put64(b, addr);
	put64(b, 1);		/* cpu */
	put_regs(b, ip);
	put64(b, STACK);
	for (i = 0; i < STACK / 8; i++)
		put64(b, 0);
	put64(b, STACK / 2);
	put_regs(b, ip);
	finish(b, at);
}

static void
put_comm(struct bytes *b, uint64_t time, uint64_t id, uint32_t tid,
    const char *name)
{
	size_t at = begin(b, PERF_RECORD_COMM, 0);

	put32(b, PID);
	put32(b, tid);
	put_string(b, name);
	finish_with_trailer(b, at, tid, time, id);
}

static void
put_mmap2(struct bytes *b, uint64_t time, uint64_t id)
{
	size_t at = begin(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);

	put32(b, PID);
	put32(b, PID);
	put64(b, 0x401000);
	put64(b, 0x1000);
	put64(b, 0x1000);
	put64(b, 0);
	put64(b, 0);
	put64(b, 0);
	put32(b, PROT_READ | PROT_EXEC);
	put32(b, MAP_PRIVATE);
	put_string(b, "/nowhere/victim");
	finish_with_trailer(b, at, PID, time, id);
}

static void
put_fork(struct bytes *b, uint32_t tid, uint64_t time)
{
	size_t at = begin(b, PERF_RECORD_FORK, 0);

	put32(b, PID);
	put32(b, PID);
	put32(b, tid);
	put32(b, PID);
	put64(b, time);
	finish_with_trailer(b, at, PID, time, 104);
}

static void
put_lost(struct bytes *b, uint64_t time)
{
	size_t at = begin(b, PERF_RECORD_LOST, 0);

	put64(b, 101);
	put64(b, 7);
	finish_with_trailer(b, at, PID, time, 101);
}

static void
put_unknown(struct bytes *b, uint32_t type)
{
	size_t at = begin(b, type, 0);

	put64(b, 0);
	finish(b, at);
}

/* In the order of writing, which is not that of time: buffers of two CPUs.
   perf would complain of the last two: of what was lost, and of a type that no
   kernel has yet. */
#define PLAIN 8
#define ALL 10

static void
put_session(struct bytes *b)
{
	put_comm(b, 0, 0, PID, "victim");
	put_mmap2(b, 0, 0);
	put_sample(b, 101, PID, 1000003000, 0x401327, 0x404090);
	put_sample(b, 103, PID, 1000004000, 0x401340, 0x404098);
	put_fork(b, PID + 5, 1000001000);
	put_comm(b, 1000002000, 105, PID + 5, "worker thread");
	put_sample(b, 102, PID + 5, 1000003000, 0x401328, 0x404090);
	put_sample(b, 102, PID + 5, 1000005000, 0x401329, 0x404090);
	put_lost(b, 1000006000);
	put_unknown(b, 63);
}

/* What comes out of it, by place in the order of writing. */
static const struct {
	size_t place;
	uint32_t type;
	uint64_t time;
	int attr;
	pid_t tid;
	uint64_t ip, addr;
} expected[] = {
	{0, PERF_RECORD_COMM, 0, -1, PID, 0, 0},
	{1, PERF_RECORD_MMAP2, 0, -1, PID, 0, 0},
	{4, PERF_RECORD_FORK, 1000001000, 2, PID + 5, 0, 0},
	{5, PERF_RECORD_COMM, 1000002000, 2, PID + 5, 0, 0},
	{2, PERF_RECORD_SAMPLE, 1000003000, 0, PID, 0x401327, 0x404090},
	{6, PERF_RECORD_SAMPLE, 1000003000, 0, PID + 5, 0x401328, 0x404090},
	{3, PERF_RECORD_SAMPLE, 1000004000, 1, PID, 0x401340, 0x404098},
	{7, PERF_RECORD_SAMPLE, 1000005000, 0, PID + 5, 0x401329, 0x404090},
	{8, PERF_RECORD_LOST, 1000006000, 0, PID, 0, 0},
};

/* Record number n in a row of records. */
static const uint8_t *
record_at(const struct bytes *b, size_t n)
{
	struct perf_event_header header;
	size_t at = 0;

	for (;; at += header.size) {
		assert_true(at < b->len);
		memcpy(&header, b->b + at, sizeof(header));
		if (n-- == 0)
			return b->b + at;
	}
}

/*
 * Files, in memory: nothing is left behind.
 */

static char path_buffer[64];

/* A path that names fd for other programs too. */
static const char *
path_of(int fd)
{
	(void)snprintf(path_buffer, sizeof(path_buffer), "/proc/%d/fd/%d",
	    (int)getpid(), fd);
	return path_buffer;
}

static int
memory_file(void)
{
	int fd = memfd_create("perfdata_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	return fd;
}

TEST_KEEPS(kept, struct ex_perfdata *, ex_perfdata_close)

/* What can be read of a file so far. */
static struct ex_perfdata *
opened(int fd)
{
	struct ex_perfdata *d;
	const char *why;

	assert_int_equal(ex_perfdata_open(path_of(fd), &d, &why), 0);
	return kept(d);
}

/* Open bytes as a file. */
static int
open_bytes(const struct bytes *b, struct ex_perfdata **d, const char **why)
{
	int fd = memory_file(), err;

	assert_int_equal(write(fd, b->b, b->len), b->len);
	*why = NULL;
	err = ex_perfdata_open(path_of(fd), d, why);
	assert_int_equal(err == 0, *d != NULL);
	assert_true(err == 0 || *why != NULL);
	if (err == 0)
		(void)kept(*d);
	(void)close(fd);
	return err;
}

/* How many records can be read, and what comes after them. */
static size_t
count_records(struct ex_perfdata *d, int *last)
{
	struct ex_record r;
	size_t n = 0;

	while ((*last = ex_perfdata_next(d, &r)) == 1)
		n++;
	assert_int_equal(ex_perfdata_next(d, &r), *last);
	return n;
}

/* Write the session's first n records; the writer closes its own descriptor. */
static int
written_session(size_t n)
{
	static const uint64_t ids[][2] = {WATCH_IDS, OTHER_IDS, DUMMY_IDS};
	struct ex_perf_event events[] = {
		{watch_attr(0x404090), "mem:0x404090/8:w", ids[0], 2},
		{watch_attr(0x404098), "mem:0x404098/8:w", ids[1], 1},
		{dummy_attr(), "dummy:u", ids[2], 2},
	};
	static const uint8_t id[] = {0xab, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
		13, 14, 15, 16, 17, 18, 19, 0xcd};
	struct ex_perfwriter *w;
	struct bytes b = {.len = 0};
	int fd = memory_file();
	size_t i;

	events[2].attr.size = 0;	/* as one may leave it */
	assert_int_equal(ex_perfwriter_open(dup(fd), events, COUNT(events), &w),
	    0);
	put_session(&b);
	for (i = 0; i < n; i++)
		assert_int_equal(ex_perfwriter_record(w, record_at(&b, i)), 0);
	assert_int_equal(ex_perfwriter_build_id(w, "/nowhere/victim", id, 20),
	    0);
	assert_int_equal(ex_perfwriter_build_id(w, "/nowhere/short", id, 8), 0);
	assert_int_equal(ex_perfwriter_build_id(w, "[kernel.kallsyms]", id, 20),
	    0);
	assert_int_equal(ex_perfwriter_build_id(w, "/x", id, 0), -EINVAL);
	assert_int_equal(ex_perfwriter_build_id(w, "/x", id, 21), -EINVAL);
	assert_int_equal(ex_perfwriter_close(w), 0);
	return fd;
}

/*
 * Written and read back.
 */

TEST(says_where_it_was_recorded)
{
	const struct ex_perf_event event = {.attr = watch_attr(0x404090)};
	static const unsigned ranks[] = {0, 7, 999999999};

	for (size_t i = 0; i <= COUNT(ranks); i++) {
		const unsigned *rank = i < COUNT(ranks) ? &ranks[i] : NULL;
		struct ex_perfwriter *w;
		struct ex_perfdata *d;
		int fd = memory_file();

		assert_int_equal(ex_perfwriter_open(dup(fd), &event, 1, &w), 0);
		ex_perfwriter_origin(w, rank == NULL ? "" : "n1.example", rank);
		assert_int_equal(ex_perfwriter_close(w), 0);
		d = opened(fd);
		assert_string_equal(ex_perfdata_host(d), rank == NULL ? "" :
		    "n1.example");
		if (rank == NULL)
			assert_null(ex_perfdata_rank(d));
		else
			assert_int_equal(*ex_perfdata_rank(d), *rank);
		(void)close(fd);
	}
}

TEST(reads_the_records_in_time_order)
{
	struct bytes b = {.len = 0};
	struct ex_perfdata *d;
	struct ex_record r;
	int fd = written_session(ALL);
	size_t i;

	put_session(&b);
	d = opened(fd);
	for (i = 0; i < COUNT(expected); i++) {
		assert_int_equal(ex_perfdata_next(d, &r), 1);
		assert_int_equal(r.type, expected[i].type);
		assert_int_equal(r.time, expected[i].time);
		assert_int_equal(r.attr, expected[i].attr);
		assert_int_equal(r.tid, expected[i].tid);
		assert_memory_equal(r.bytes, record_at(&b, expected[i].place),
		    r.size);
		if (r.type != PERF_RECORD_SAMPLE)
			continue;
		assert_int_equal(r.sample.ip, expected[i].ip);
		assert_int_equal(r.sample.addr, expected[i].addr);
		assert_int_equal(r.sample.stack_asked, STACK);
		assert_int_equal(r.sample.stack_len, STACK / 2);
	}
	assert_int_equal(ex_perfdata_next(d, &r), 0);
	assert_int_equal(ex_perfdata_next(d, &r), 0);
	assert_int_equal(ex_perfdata_skipped(d), 1);
	(void)close(fd);
}

/* Whether a file has these characters in it, and a NUL. */
static bool
holds(int fd, const char *text)
{
	static char bytes[1 << 20];
	const ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	return n > 0 && memmem(bytes, (size_t)n, text, strlen(text) + 1) !=
	    NULL;
}

TEST(reads_events_and_features)
{
	const struct perf_event_attr attr = watch_attr(0x404090);
	const struct perf_event_attr dummy = dummy_attr();
	const struct ex_perf_event *events;
	struct ex_perfdata *d;
	struct utsname u;
	int fd = written_session(ALL);

	d = opened(fd);
	assert_int_equal(ex_perfdata_events(d, &events), 3);
	assert_memory_equal(&events[0].attr, &attr, sizeof(attr));
	assert_memory_equal(&events[2].attr, &dummy, sizeof(dummy));
	assert_string_equal(events[0].name, "mem:0x404090/8:w");
	assert_string_equal(events[1].name, "mem:0x404098/8:w");
	assert_string_equal(events[2].name, "dummy:u");
	assert_int_equal(events[2].nids, 2);
	assert_int_equal(events[2].ids[1], 105);
	assert_int_equal(uname(&u), 0);
	assert_true(holds(fd, u.machine));
	assert_true(holds(fd, u.release));
	(void)close(fd);
}

static void
note_build_id(void *arg, const char *path, const uint8_t *id, size_t len)
{
	struct bytes *text = arg;

	put(text, path, strlen(path));
	put(text, " ", 1);
	assert_int_equal(id[0], 0xab);
	assert_int_equal(id[len - 1], len == 20 ? 0xcd : 8);
	put(text, len == 20 ? "20\n" : "8\n", len == 20 ? 3 : 2);
}

TEST(reads_build_ids)
{
	struct bytes text = {.len = 0};
	struct ex_perfdata *d;
	int fd = written_session(ALL);

	d = opened(fd);
	ex_perfdata_build_ids(d, note_build_id, &text);
	put(&text, "", 1);
	assert_string_equal((char *)text.b,
	    "/nowhere/victim 20\n/nowhere/short 8\n[kernel.kallsyms] 20\n");
	(void)close(fd);
}

TEST(writes_more_than_its_buffer)
{
	const uint64_t ids[] = WATCH_IDS;
	const struct ex_perf_event event = {watch_attr(0x404090), "w", ids, 2};
	struct bytes b = {.len = 0};
	struct ex_perfwriter *w;
	struct ex_perfdata *d;
	struct ex_record r;
	int fd = memory_file();
	uint64_t i, n = 5000;

	assert_int_equal(ex_perfwriter_open(dup(fd), &event, 1, &w), 0);
	for (i = 0; i < n; i++) {
		b.len = 0;
		put_sample(&b, 101, PID, n - i, 0x401000 + i, 0x404090);
		assert_int_equal(ex_perfwriter_record(w, b.b), 0);
	}
	assert_int_equal(ex_perfwriter_close(w), 0);
	assert_true(lseek(fd, 0, SEEK_END) > (off_t)(n * STACK));
	d = opened(fd);
	for (i = 1; i <= n; i++) {
		assert_int_equal(ex_perfdata_next(d, &r), 1);
		assert_int_equal(r.time, i);
		assert_int_equal(r.sample.ip, 0x401000 + n - i);
	}
	assert_int_equal(ex_perfdata_next(d, &r), 0);
	(void)close(fd);
}

TEST(writes_a_recording_without_records)
{
	const uint64_t ids[] = WATCH_IDS;
	const struct ex_perf_event event = {watch_attr(0x404090), NULL, ids, 2};
	const struct ex_perf_event *read_back;
	struct ex_perfwriter *w;
	struct ex_perfdata *d;
	int fd = memory_file(), last;

	assert_int_equal(ex_perfwriter_open(dup(fd), &event, 1, &w), 0);
	assert_int_equal(ex_perfwriter_close(w), 0);
	d = opened(fd);
	assert_int_equal(ex_perfdata_events(d, &read_back), 1);
	assert_null(read_back->name);
	assert_int_equal(count_records(d, &last), 0);
	assert_int_equal(last, 0);
	assert_int_equal(ex_perfdata_skipped(d), 0);
	(void)close(fd);
}

/* A recorder that was killed: what had been written can be read. */
TEST(reads_what_a_killed_writer_left)
{
	const uint64_t ids[] = WATCH_IDS;
	const struct ex_perf_event event = {watch_attr(0x404090), "w", ids, 2};
	struct bytes b = {.len = 0};
	struct ex_perfwriter *w;
	struct ex_perfdata *d;
	int fd = memory_file(), last;
	size_t i, n;

	assert_int_equal(ex_perfwriter_open(dup(fd), &event, 1, &w), 0);
	d = opened(fd);
	assert_int_equal(count_records(d, &last), 0);
	assert_int_equal(last, -EBADMSG);
	put_sample(&b, 101, PID, 1, 0x401000, 0x404090);
	for (i = 0; i < 2000; i++)
		assert_int_equal(ex_perfwriter_record(w, b.b), 0);
	d = opened(fd);
	n = count_records(d, &last);
	assert_true(n > 100 && n < 2000);
	assert_int_equal(ex_perfwriter_flush(w), 0);
	d = opened(fd);
	assert_int_equal(count_records(d, &last), 2000);
	assert_int_equal(last, -EBADMSG);
	assert_int_equal(ex_perfwriter_close(w), 0);
	(void)close(fd);
}

TEST(writer_refuses_what_it_cannot_seek)
{
	const uint64_t ids[] = WATCH_IDS;
	const struct ex_perf_event event = {watch_attr(0x404090), "w", ids, 2};
	struct ex_perfwriter *w;
	int pipe_fds[2], fd = memory_file();

	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(ex_perfwriter_open(pipe_fds[1], &event, 1, &w),
	    -ESPIPE);
	assert_null(w);
	/* still the caller's */
	assert_int_equal(close(pipe_fds[1]), 0);
	(void)close(pipe_fds[0]);
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
	assert_int_equal(ex_perfwriter_open(fd, &event, 1, &w), -ESPIPE);
	assert_int_equal(close(fd), 0);
	assert_int_equal(ex_perfwriter_open(-1, &event, 1, &w), -ESPIPE);
}

TEST(writer_keeps_the_first_error)
{
	const uint64_t ids[] = WATCH_IDS;
	const struct ex_perf_event event = {watch_attr(0x404090), "w", ids, 2};
	static const uint8_t id[20];
	struct bytes b = {.len = 0};
	struct ex_perfwriter *w;
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int fd = memory_file(), err = 0, i;

	assert_true(full >= 0);
	assert_int_equal(ex_perfwriter_open(full, &event, 1, &w), -ENOSPC);
	assert_int_equal(close(full), 0);

	assert_int_equal(ex_perfwriter_open(dup(fd), &event, 1, &w), 0);
	assert_int_equal(ex_perfwriter_record(w, &(uint64_t){7}), -EINVAL);
	/* from now on the file may not grow */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	put_sample(&b, 101, PID, 1, 0x401000, 0x404090);
	for (i = 0; i < 5000 && err == 0; i++)
		err = ex_perfwriter_record(w, b.b);
	assert_int_equal(err, -EPERM);
	assert_true(i > 1000);
	assert_int_equal(ex_perfwriter_record(w, b.b), -EPERM);
	assert_int_equal(ex_perfwriter_build_id(w, "/x", id, 20), -EPERM);
	assert_int_equal(ex_perfwriter_close(w), -EPERM);
	(void)close(fd);
}

/*
 * perf itself reads what was written.
 */

/* Run perf on the session's file; its output until the next run. */
static const char *
run_perf(const char *options)
{
	static char *text;
	int fd, status;

	if (!scratch_has("perf")) {
		print_message("skipped: there is no perf command here\n");
		skip();
	}
	fd = written_session(PLAIN);
	status = scratch_try("perf %s -i %s >out 2>&1 </dev/null", options,
	    path_of(fd));
	(void)close(fd);
	text = scratch_read("out", NULL);
	if (status != 0)
		fail_msg("perf %s: %s", options, text);
	return text;
}

TEST(perf_script_lists_the_samples)
{
	const char *text = run_perf(
	    "script -G -F comm,tid,time,event,ip,addr");
	char comm[32], event[64], *line, *end, *copy = strdup(text);
	unsigned tid, i = 0;
	unsigned long addr, ip;
	double time;

	for (line = copy; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		*end = '\0';
		while (expected[i].type != PERF_RECORD_SAMPLE)
			i++;
		assert_true(i < COUNT(expected));
		assert_int_equal(sscanf(line, "%31[^0-9] %u %lf: %63s %lx %lx",
		    comm, &tid, &time, event, &addr, &ip), 6);
		assert_int_equal(tid, expected[i].tid);
		assert_holds(comm, tid == PID ? "victim" : "worker thread");
		assert_true(time * 1e9 > (double)expected[i].time - 1000 &&
		    time * 1e9 < (double)expected[i].time + 1000);
		assert_int_equal(addr, expected[i].addr);
		assert_int_equal(ip, expected[i].ip);
		if (expected[i].attr == 0)
			assert_string_equal(event, "mem:0x404090/8:w:");
		i++;
	}
	assert_int_equal(i, COUNT(expected) - 1);	/* LOST is last */
	free(copy);
}

TEST(perf_report_accepts_it)
{
	const char *text = run_perf("report --stdio");

	assert_holds(text, "of event 'mem:0x404090/8:w'");
	assert_holds(text, "worker thread");
	assert_null(strcasestr(text, "warning"));
}

TEST(perf_lists_events_clock_and_build_ids)
{
	const char *text;

	text = run_perf("evlist");
	assert_string_equal(text, "mem:0x404090/8:w\nmem:0x404098/8:w\n"
	    "dummy:u\n");
	text = run_perf("buildid-list");
	assert_holds(text, "ab02030405060708090a0b0c0d0e0f10111213cd"
	    " /nowhere/victim\n");
	assert_holds(text, " [kernel.kallsyms]\n");
	text = run_perf("report --header-only");
	assert_holds(text, "clockid: monotonic");
	assert_holds(text, "name = mem:0x404090/8:w, , " "id = { 101, 102 }");
	assert_holds(text, "nrcpus online");
}

/*
 * Files built byte by byte.
 */

#define MAGIC "PERFILE2"

/* The sections of a file's header, where they are in it. */
enum { AT_SIZE = 8, AT_ATTR_SIZE = 16, AT_ATTRS = 24, AT_DATA = 40,
	AT_FLAGS = 72, HEADER_SIZE = 104 };

static void
set64(struct bytes *b, size_t at, uint64_t v)
{
	memcpy(b->b + at, &v, sizeof(v));
}

/*
 * A file of one event (ids 101 and 102) whose attribute takes attr_size bytes,
 * and the session's records, without features.
 */
static void
build_file(struct bytes *b, size_t attr_size)
{
	struct perf_event_attr attr = watch_attr(0x404090);
	static const uint8_t zeros[64];
	size_t i;

	attr.size = (uint32_t)attr_size;
	/* older attributes have no such fields */
	if (attr_size < PERF_ATTR_SIZE_VER4)
		attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP;
	b->len = 0;
	put(b, MAGIC, 8);
	put64(b, HEADER_SIZE);
	put64(b, attr_size + 16);
	for (i = 0; i < 10; i++)
		put64(b, 0);
	put64(b, 101);
	put64(b, 102);
	set64(b, AT_ATTRS, b->len);
	set64(b, AT_ATTRS + 8, attr_size + 16);
	put(b, &attr, attr_size < sizeof(attr) ? attr_size : sizeof(attr));
	if (attr_size > sizeof(attr))
		put(b, zeros, attr_size - sizeof(attr));
	put64(b, HEADER_SIZE);
	put64(b, 16);
	set64(b, AT_DATA, b->len);
	for (i = 0; i < 4; i++) {
		size_t at = begin(b, PERF_RECORD_SAMPLE, 0);

		if (attr_size < PERF_ATTR_SIZE_VER4) {
			put64(b, 101);
			put64(b, 0x401000 + i);
			finish(b, at);
		} else {
			b->len = at;
			put_sample(b, 101, PID, 10 - i, 0x401000 + i, 0x404090);
		}
	}
}

static void
set_data_size(struct bytes *b)
{
	uint64_t offset;

	memcpy(&offset, b->b + AT_DATA, sizeof(offset));
	set64(b, AT_DATA + 8, b->len - offset);
}

TEST(reads_attributes_of_other_sizes)
{
	static const size_t sizes[] = {PERF_ATTR_SIZE_VER0, PERF_ATTR_SIZE_VER1,
		PERF_ATTR_SIZE_VER3, PERF_ATTR_SIZE_VER4, PERF_ATTR_SIZE_VER6,
		PERF_ATTR_SIZE_VER7, 136, 192};
	const struct ex_perf_event *events;
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	size_t i;
	int last;

	for (i = 0; i < COUNT(sizes); i++) {
		build_file(&b, sizes[i]);
		set_data_size(&b);
		assert_int_equal(open_bytes(&b, &d, &why), 0);
		assert_int_equal(ex_perfdata_events(d, &events), 1);
		assert_int_equal(events[0].attr.size, sizeof(events[0].attr));
		assert_int_equal(events[0].attr.bp_addr, 0x404090);
		assert_int_equal(events[0].attr.bp_len,
		    sizes[i] > PERF_ATTR_SIZE_VER0 ? 8 : 0);
		assert_int_equal(events[0].nids, 2);
		assert_null(events[0].name);
		assert_int_equal(count_records(d, &last), 4);
		assert_int_equal(last, 0);
	}
}

/* Cut at every byte: never a crash, and no record that is whole is lost. */
TEST(reads_what_is_left_of_a_cut_file)
{
	size_t size, start, full, i;
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	uint64_t offset;
	int sized, err, last;

	for (sized = 0; sized < 2; sized++) {
		build_file(&b, sizeof(struct perf_event_attr));
		if (sized)
			set_data_size(&b);
		full = b.len;
		memcpy(&offset, b.b + AT_DATA, sizeof(offset));
		start = (size_t)offset;
		size = (full - start) / 4;
		for (b.len = 0; b.len < full; b.len++) {
			err = open_bytes(&b, &d, &why);
			if (b.len < start) {
				assert_true(err == -EBADMSG || b.len < 16);
				assert_true(err < 0);
				continue;
			}
			assert_int_equal(err, 0);
			i = b.len - start;
			assert_int_equal(count_records(d, &last), i / size);
			assert_int_equal(last, -EBADMSG);
		}
	}
}

TEST(ends_where_a_record_is_damaged)
{
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	size_t size;
	uint64_t offset;
	int last;

	build_file(&b, sizeof(struct perf_event_attr));
	set_data_size(&b);
	memcpy(&offset, b.b + AT_DATA, sizeof(offset));
	size = (b.len - offset) / 4;
	set64(&b, offset + 2 * size + 8, 999);	/* id: only skipped */
	assert_int_equal(open_bytes(&b, &d, &why), 0);
	assert_int_equal(count_records(d, &last), 3);
	assert_int_equal(last, 0);
	assert_int_equal(ex_perfdata_skipped(d), 1);
	set64(&b, offset + 2 * size + 8, 101);
	set64(&b, offset + 2 * size + 56, 77);	/* abi of registers */
	assert_int_equal(open_bytes(&b, &d, &why), 0);
	assert_int_equal(count_records(d, &last), 2);
	assert_int_equal(last, -EBADMSG);
}

TEST(refuses_damaged_headers)
{
	static const struct {
		size_t at;
		uint64_t value;
		int result;
	} cases[] = {
		{0, 0, -EINVAL},
		{0, 0x454c494646524550ULL, -EINVAL},	/* version 1 */
		{0, 0x50455246494c4532ULL, -ENOTSUP},	/* other byte order */
		{AT_SIZE, 0, -EBADMSG},
		{AT_SIZE, HEADER_SIZE - 1, -EBADMSG},
		{AT_ATTR_SIZE, 0, -EBADMSG},
		{AT_ATTR_SIZE, 79, -EBADMSG},
		{AT_ATTR_SIZE, 1 << 20, -EBADMSG},	/* no event fits */
		{AT_ATTR_SIZE, UINT64_MAX, -EBADMSG},
		{AT_ATTRS, UINT64_MAX, -EBADMSG},
		{AT_ATTRS, 1 << 20, -EBADMSG},
		{AT_ATTRS + 8, UINT64_MAX, -EBADMSG},
		{AT_ATTRS + 8, 0, -EBADMSG},
		{AT_DATA, UINT64_MAX, -EBADMSG},
		{AT_DATA, 1 << 20, -EBADMSG},
		/* the attribute: at 120, then its ids */
		{120 + 24, 1ULL << 40, -ENOTSUP},	/* sample_type */
		{120, PERF_TYPE_BREAKPOINT | 63ULL << 32, -EBADMSG},
		{120, PERF_TYPE_BREAKPOINT | 129ULL << 32, -EBADMSG},
		{120 + 128, UINT64_MAX, -EBADMSG},
		{120 + 128, 1 << 20, -EBADMSG},
		{120 + 136, UINT64_MAX, -EBADMSG},
		{120 + 136, 1 << 20, -EBADMSG},
	};
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		build_file(&b, sizeof(struct perf_event_attr));
		set_data_size(&b);
		set64(&b, cases[i].at, cases[i].value);
		assert_int_equal(open_bytes(&b, &d, &why), cases[i].result);
	}
}

/* Features that lead nowhere are only missing. */
TEST(ignores_damaged_features)
{
	static const struct {
		uint64_t offset, size;
	} cases[] = {
		{UINT64_MAX, 8}, {0, UINT64_MAX}, {UINT64_MAX, UINT64_MAX},
		{0, 0}, {0, 104}, {4, 7}, {8, 300},
	};
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	size_t i, bit;
	int last;

	for (i = 0; i < COUNT(cases); i++) {
		build_file(&b, sizeof(struct perf_event_attr));
		set_data_size(&b);
		for (bit = 0; bit < 4; bit++)
			set64(&b, AT_FLAGS + 8 * bit, UINT64_MAX);
		/* a table for fewer than all 256 */
		for (bit = 0; bit < 200; bit++) {
			put64(&b, cases[i].offset);
			put64(&b, cases[i].size);
		}
		assert_int_equal(open_bytes(&b, &d, &why), 0);
		assert_int_equal(count_records(d, &last), 4);
		assert_int_equal(last, 0);
	}
}

TEST(refuses_what_is_no_file)
{
	static const struct {
		const char *path;
		int result;
	} cases[] = {
		{"/nowhere/perf.data", -ENOENT},
		{"/proc", -EISDIR},
		{"/dev/null", -EINVAL},
		{"/etc/passwd", -EINVAL},
		{"/etc/passwd/perf.data", -ENOTDIR},
	};
	struct ex_perfdata *d;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		why = NULL;
		assert_int_equal(ex_perfdata_open(cases[i].path, &d, &why),
		    cases[i].result);
		assert_null(d);
		assert_non_null(why);
	}
	ex_perfdata_close(NULL);
}

/*
 * Pipe mode.
 */

static void
put_attr_record(struct bytes *b, uint64_t addr, uint64_t id)
{
	struct perf_event_attr attr = watch_attr(addr);
	size_t at = begin(b, 64, 0);

	put(b, &attr, sizeof(attr));
	put64(b, id);
	finish(b, at);
}

static void
put_string_feature(struct bytes *b, uint64_t feature, const char *s)
{
	size_t at = begin(b, 80, 0);

	put64(b, feature);
	put32(b, (uint32_t)strlen(s) + 1);
	put(b, s, strlen(s) + 1);	/* not padded: as perf does */
	finish(b, at);
}

static void
put_names_feature(struct bytes *b)
{
	static const struct perf_event_attr attr;
	size_t i, at = begin(b, 80, 0);

	put64(b, 12);
	put32(b, 2);
	put32(b, sizeof(attr));
	for (i = 0; i < 2; i++) {
		put(b, &attr, sizeof(attr));
		put32(b, 1);
		put32(b, 2);
		put(b, i == 0 ? "a" : "b", 2);
		put64(b, 101 + i);
	}
	finish(b, at);
}

static void
put_build_id_record(struct bytes *b)
{
	size_t at = begin(b, 67, PERF_RECORD_MISC_USER);

	put32(b, UINT32_MAX);
	put(b, "\xab\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\xcd\0\0\0",
	    24);
	put_string(b, "/old/style");
	finish(b, at);
}

/* Records with data behind them that their size does not count. */
static void
put_long_records(struct bytes *b)
{
	size_t at = begin(b, 66, 0);

	put32(b, 13);
	put32(b, 0);
	finish(b, at);
	put(b, "tracing data\0\0\0", 16);
	at = begin(b, 71, 0);
	put64(b, 24);
	put(b, "offset..referencid..tid.cpu.res.", 32);
	finish(b, at);
	put(b, "24 bytes of trace data..", 24);
}

static void
build_stream(struct bytes *b)
{
	b->len = 0;
	put(b, MAGIC, 8);
	put64(b, 16);
	put_attr_record(b, 0x404090, 101);
	put_names_feature(b);	/* of one more than there are yet */
	put_attr_record(b, 0x404098, 102);
	put_string_feature(b, 4, "6.1.0-test");
	put_string_feature(b, 6, "x86_64");
	put_string_feature(b, 3, "hostname");
	put_names_feature(b);
	put_build_id_record(b);
	put_long_records(b);
	put_unknown(b, 68);
	put_unknown(b, 1000);
	put_sample(b, 101, PID, 20, 0x401000, 0x404090);
	put_sample(b, 102, PID, 10, 0x401001, 0x404098);
	put_unknown(b, 40);
}

TEST(reads_streams)
{
	const struct ex_perf_event *events;
	struct bytes b, text = {.len = 0};
	struct ex_perfdata *d;
	struct ex_record r;
	const char *why;

	build_stream(&b);
	assert_int_equal(open_bytes(&b, &d, &why), 0);
	assert_int_equal(ex_perfdata_events(d, &events), 2);
	assert_string_equal(events[0].name, "a");
	assert_string_equal(events[1].name, "b");
	assert_int_equal(events[1].attr.bp_addr, 0x404098);
	ex_perfdata_build_ids(d, note_build_id, &text);
	put(&text, "", 1);
	assert_string_equal((char *)text.b, "/old/style 20\n");
	assert_int_equal(ex_perfdata_next(d, &r), 1);
	assert_int_equal(r.sample.ip, 0x401001);
	assert_int_equal(r.attr, 1);
	assert_int_equal(ex_perfdata_next(d, &r), 1);
	assert_int_equal(r.sample.ip, 0x401000);
	assert_int_equal(ex_perfdata_next(d, &r), 0);
	assert_int_equal(ex_perfdata_skipped(d), 1);
}

TEST(cut_streams_do_not_hurt)
{
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	size_t full, n, most = 0;
	int err, last;

	build_stream(&b);
	full = b.len;
	for (b.len = 0; b.len < full; b.len++) {
		err = open_bytes(&b, &d, &why);
		if (err < 0)
			continue;
		n = count_records(d, &last);
		assert_true(n >= most);
		most = n;
	}
	assert_int_equal(most, 2);
}

TEST(refuses_streams)
{
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	uint32_t type;

	/* compressed, in two ways */
	for (type = 81; type <= 83; type += 2) {
		build_stream(&b);
		put_unknown(&b, type);
		assert_int_equal(open_bytes(&b, &d, &why), -ENOTSUP);
		assert_holds(why, "compressed");
	}
	/* without events */
	b.len = 16;
	assert_int_equal(open_bytes(&b, &d, &why), -EBADMSG);
	/* one id for two events */
	build_stream(&b);
	put_attr_record(&b, 0x4040a0, 101);
	assert_int_equal(open_bytes(&b, &d, &why), -EBADMSG);
	/* an event that is no attribute */
	build_stream(&b);
	put_unknown(&b, 64);
	assert_int_equal(open_bytes(&b, &d, &why), -EBADMSG);
}

/* A record that could be read before a second event was named. */
TEST(ends_where_events_contradict)
{
	struct perf_event_attr attr = watch_attr(0x404090);
	struct ex_perfdata *d;
	struct bytes b = {.len = 0};
	const char *why;
	size_t at;
	int last;

	put(&b, MAGIC, 8);
	put64(&b, 16);
	at = begin(&b, 64, 0);
	put(&b, &attr, sizeof(attr));
	finish(&b, at);
	put_sample(&b, 999, PID, 20, 0x401000, 0x404090);
	assert_int_equal(open_bytes(&b, &d, &why), 0);
	assert_int_equal(count_records(d, &last), 1);
	assert_int_equal(last, 0);
	put_attr_record(&b, 0x404098, 102);
	put_sample(&b, 102, PID, 10, 0x401001, 0x404098);
	assert_int_equal(open_bytes(&b, &d, &why), 0);
	assert_int_equal(count_records(d, &last), 1);
	assert_int_equal(last, -EBADMSG);
}

/* The table's second entry damaged: the first is there, and no more. */
TEST(reads_build_ids_until_damage)
{
	static const struct {
		size_t at;
		uint8_t byte;
		const char *text;
	} cases[] = {
		{4, 0, "/old/style 20\n/old/style 20\n"},
		{6, 0, "/old/style 20\n"},	/* size */
		{6, 7, "/old/style 20\n"},
		{6, 36, "/old/style 20\n"},
		{6, 46, "/old/style 20\n"},	/* no end of the path */
		{6, 53, "/old/style 20\n"},	/* more than there is */
		{7, 0xff, "/old/style 20\n"},
		{5, 0x80, "/old/style 20\n"},	/* id of the length 0 */
	};
	struct ex_perfdata *d;
	struct bytes b, text;
	const char *why;
	size_t i, at;

	for (i = 0; i < COUNT(cases); i++) {
		build_stream(&b);
		at = b.len;
		put_build_id_record(&b);
		b.b[at + cases[i].at] = cases[i].byte;
		/* as a feature both are one table */
		text = b;
		b.len = at;
		at = begin(&b, 80, 0);
		put64(&b, 2);
		put_build_id_record(&b);
		put(&b, text.b + text.len - 52, 52);
		finish(&b, at);
		assert_int_equal(open_bytes(&b, &d, &why), 0);
		text.len = 0;
		ex_perfdata_build_ids(d, note_build_id, &text);
		put(&text, "", 1);
		/* the stream has one of its own */
		assert_string_equal((char *)text.b + strlen("/old/style 20\n"),
		    cases[i].text);
	}
}

/* Many events with one long list of ids between them, all of them 0. */
TEST(shared_ids_do_not_fill_memory)
{
	struct perf_event_attr attr = watch_attr(0x404090);
	struct ex_perfdata *d;
	struct bytes b;
	const char *why;
	size_t i;

	build_file(&b, sizeof(attr));
	set64(&b, AT_ATTRS, b.len);
	set64(&b, AT_ATTRS + 8, 200 * (sizeof(attr) + 16));
	for (i = 0; i < 200; i++) {
		put(&b, &attr, sizeof(attr));
		put64(&b, 300);
		put64(&b, 2048);
	}
	memset(b.b + 300, 0, 2048);
	assert_int_equal(open_bytes(&b, &d, &why), -EBADMSG);
	assert_holds(why, "ids");
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
