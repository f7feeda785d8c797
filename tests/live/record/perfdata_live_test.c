/*
 * perfdata: recordings of real breakpoints that perf record wrote, in its
 * several layouts, read the same as in perf script.
 */
#include "test.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live.h"
#include "record/perfdata.h"
#include "scratch.h"

/* Where the victim maps the page that it writes to: out of the way of whatever
   else is in it, AddressSanitizer too. */
#define WATCHED 0x200000000000UL
#define THREADS 2
#define WRITES 20

static char self[4096];		/* this program, which is the victim too */
static bool can_record;		/* perf can, breakpoints, here */

static void *
write_often(void *arg)
{
	volatile uint64_t *watched = (volatile uint64_t *)WATCHED;
	int i;

	for (i = 0; i < WRITES; i++)
		*watched = (uint64_t)i;
	return arg;
}

static int
victim(void)
{
	pthread_t threads[THREADS];
	int i;

	if (mmap((void *)WATCHED, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)WATCHED)
		return 1;
	/* all at once, so that no two have the same id */
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, write_often, NULL) != 0)
			return 1;
	for (i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	return 0;
}

/*
 * perf, as a program.
 */

/* Run a shell command in the scratch directory; its output is kept there.
   Result: its exit status. */
#define RUN(format, ...) \
	scratch_try("(" format ") >out 2>errors </dev/null", __VA_ARGS__)

/* What the last run said. */
static const char *
said(const char *where)
{
	static char *text;

	text = scratch_read(where, NULL);
	return text;
}

/* Record the victim, to a file or as a stream; perf's exit status. */
static int
record(const char *options, bool stream)
{
	(void)unlink(scratch_path("perf.data"));
	/* -N: nothing goes to the cache of build ids in the home directory;
	   no BPF events: perf would wait a second for them */
	return RUN("perf record -q -N --no-bpf-event -e mem:0x%lx/8:w %s -o %s"
	    " '%s' victim %s", WATCHED, options, stream ? "-" : "perf.data",
	    self, stream ? ">perf.data" : "");
}

/* Whether perf can record breakpoints here; if not, say why. */
static int
prepare(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0 || scratch_make(state) < 0)
		return -1;
	self[n] = '\0';
	can_record = record("", false) == 0;
	if (!can_record)
		print_message("perf cannot record breakpoints here:\n%s\n",
		    said("errors"));
	return 0;
}

/*
 * A recording, by sample, as perf script lists it and as it is read here.
 */

static struct ex_perfdata *
open_recording(void)
{
	struct ex_perfdata *d;
	const char *why;

	if (ex_perfdata_open(scratch_path("perf.data"), &d, &why) < 0)
		fail_msg("%s", why);
	return d;
}

/* The next sample, or NULL after the last; the end must be a good one. */
static const struct ex_record *
next_sample(struct ex_perfdata *d, uint64_t *lost)
{
	static struct ex_record r;
	int more;

	while ((more = ex_perfdata_next(d, &r)) == 1) {
		if (r.type == PERF_RECORD_SAMPLE)
			return &r;
		if (r.type == PERF_RECORD_LOST)
			*lost += r.lost.count;
	}
	assert_int_equal(more, 0);
	return NULL;
}

/* Every line that perf script prints is the next sample that is read. */
static void
compare_with_perf_script(void)
{
	struct ex_perfdata *d = open_recording();
	const struct ex_record *r;
	char *lines, *line, *rest;
	unsigned long s, ns, ip, n = 0;
	uint64_t lost = 0;
	int tid;

	assert_int_equal(RUN("perf script --ns -G -F tid,time,ip -i %s",
	    "perf.data"), 0);
	lines = scratch_read("out", NULL);
	for (line = strtok_r(lines, "\n", &rest); line != NULL;
	    line = strtok_r(NULL, "\n", &rest)) {
		r = next_sample(d, &lost);
		assert_non_null(r);
		assert_int_equal(sscanf(line, "%d %lu.%lu: %lx", &tid, &s, &ns,
		    &ip), 4);
		assert_int_equal(r->tid, tid);
		assert_int_equal(r->time, s * 1000000000 + ns);
		assert_int_equal(r->sample.ip, ip);
		n++;
	}
	assert_null(next_sample(d, &lost));
	if (lost == 0)
		assert_int_equal(n, THREADS * WRITES);
	assert_int_equal(ex_perfdata_skipped(d), 0);
	ex_perfdata_close(d);
}

static void
record_and_compare(const char *options, bool stream)
{
	if (!can_record)
		skip();
	if (record(options, stream) != 0)
		fail_msg("perf record %s: %s", options, said("errors"));
	compare_with_perf_script();
}

TEST(plain_file)
{
	record_and_compare("", false);
}

TEST(plain_stream)
{
	record_and_compare("", true);
}

TEST(file_with_several_events)
{
	record_and_compare("-e dummy:u --switch-events", false);
}

TEST(file_with_build_ids_in_mappings)
{
	record_and_compare("--buildid-mmap --clockid mono", false);
}

/* Registers and stack: what an unwinder will live on. */
static void
check_stacks(void)
{
	struct ex_perfdata *d = open_recording();
	const struct ex_record *r;
	uint64_t lost = 0, v;

	while ((r = next_sample(d, &lost)) != NULL) {
		assert_int_equal(r->sample.addr, WATCHED);
		assert_int_equal(r->sample.stack_asked, 8192);
		assert_true(r->sample.stack_len > 0);
		assert_int_equal(r->sample.user.abi, PERF_SAMPLE_REGS_ABI_64);
#ifdef __x86_64__
		assert_true(ex_regs_get(&r->sample.user, PERF_REG_X86_IP, &v));
#else
		assert_true(ex_regs_get(&r->sample.user, PERF_REG_ARM64_PC,
		    &v));
#endif
		assert_int_equal(v, r->sample.ip);
	}
	ex_perfdata_close(d);
}

TEST(file_with_stacks)
{
	record_and_compare("--call-graph dwarf", false);
	check_stacks();
}

TEST(stream_with_stacks)
{
	record_and_compare("--call-graph dwarf", true);
	check_stacks();
}

/* Nearly every field that a breakpoint's sample can have: their order. */
TEST(file_with_all_fields)
{
	struct ex_perfdata *d;
	const struct ex_record *r;
	uint64_t lost = 0;

	if (!can_record)
		skip();
	if (record("-d -T -W -s --phys-data --data-page-size --code-page-size"
	    " --sample-cpu --sample-identifier --period --all-cgroups"
	    " --intr-regs=ax,bx --user-regs=ip,sp --call-graph fp", false)) {
		print_message("not all fields can be had here:\n%s\n",
		    said("errors"));
		skip();
	}
	compare_with_perf_script();
	d = open_recording();
	while ((r = next_sample(d, &lost)) != NULL) {
		assert_int_equal(r->attr, 0);
		assert_int_equal(r->sample.addr, WATCHED);
		assert_int_equal(r->sample.period, 1);
		assert_true(r->cpu < 1 << 16);
		assert_int_equal(r->sample.phys_addr % 4096, 0);
		assert_int_not_equal(r->sample.phys_addr, 0);
		assert_int_not_equal(r->sample.cgroup, 0);
		assert_int_equal(r->sample.data_page_size, 4096);
		assert_int_not_equal(r->sample.code_page_size, 0);
		assert_int_equal(r->sample.intr.abi, PERF_SAMPLE_REGS_ABI_64);
		assert_int_equal(r->sample.user.mask, (1 << PERF_REG_X86_IP) |
		    (1 << PERF_REG_X86_SP));
	}
	ex_perfdata_close(d);
}

static void
find_self(void *found, const char *path, const uint8_t *id, size_t len)
{
	char line[64 + sizeof(self)];
	size_t i;

	if (strcmp(path, self) != 0)
		return;
	for (i = 0; i < len; i++)
		(void)snprintf(line + 2 * i, 3, "%02x", id[i]);
	(void)snprintf(line + 2 * len, sizeof(line) - 2 * len, " %s\n", path);
	*(bool *)found = strstr(said("out"), line) != NULL;
}

TEST(build_ids)
{
	struct ex_perfdata *d;
	bool found = false;

	if (!can_record)
		skip();
	assert_int_equal(record("", false), 0);
	assert_int_equal(RUN("perf buildid-list -i %s", "perf.data"), 0);
	d = open_recording();
	ex_perfdata_build_ids(d, find_self, &found);
	assert_true(found);
	ex_perfdata_close(d);
}

static void
copy_build_id(void *writer, const char *path, const uint8_t *id, size_t len)
{
	assert_int_equal(ex_perfwriter_build_id(writer, path, id, len), 0);
}

#define SCRIPT "perf script --ns --no-inline" \
	" -F comm,tid,time,event,ip,sym,addr -i %s"

/* What perf unwinds and names from a copy is what it does from its own. */
TEST(copied_file)
{
	const struct ex_perf_event *events;
	struct ex_perfwriter *w;
	struct ex_perfdata *d;
	struct ex_record r;
	char *own;
	size_t n;
	int fd;

	if (!can_record)
		skip();
	assert_int_equal(record("-e dummy:u --call-graph dwarf", false), 0);
	assert_int_equal(RUN(SCRIPT, "perf.data"), 0);
	own = scratch_read("out", NULL);
	d = open_recording();
	n = ex_perfdata_events(d, &events);
	fd = open(scratch_path("copy"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ex_perfwriter_open(fd, events, n, &w), 0);
	while (ex_perfdata_next(d, &r) == 1)
		assert_int_equal(ex_perfwriter_record(w, r.bytes), 0);
	ex_perfdata_build_ids(d, copy_build_id, w);
	assert_int_equal(ex_perfwriter_close(w), 0);
	ex_perfdata_close(d);
	assert_int_equal(RUN(SCRIPT, "copy"), 0);
	assert_holds(own, "write_often");
	assert_string_equal(said("out"), own);
}

TEST(compressed_file)
{
	struct ex_perfdata *d;
	const char *why;

	if (!can_record)
		skip();
	if (record("-z", false) != 0) {
		print_message("perf cannot compress here:\n%s\n",
		    said("errors"));
		skip();
	}
	assert_int_equal(ex_perfdata_open(scratch_path("perf.data"), &d,
	    &why), -ENOTSUP);
	assert_holds(why, "-z");
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "victim") == 0)
		return victim();
	return run_live_tests(.before_all = prepare,
	    .after_all = scratch_remove);
}
