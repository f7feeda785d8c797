/*
 * synthetic_records: records of this process are kept, decoded and learnt from.
 */
#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "os/attr.h"
#include "processes/synthetic_records.h"
#include "module/module.h"
#include "os/slot.h"
#include "space/space.h"

/* What was given, in all. */
struct seen {
	size_t records, comms, maps, shared;
	bool name;		/* of this thread */
	bool code;		/* the mapping of this program's code */
	struct ex_space *space;	/* that learns it; NULL: none */
};

static void
see(void *arg, const struct ex_record *r)
{
	struct seen *seen = arg;
	const uint64_t here = (uintptr_t)see;

	seen->records++;
	seen->comms += r->type == PERF_RECORD_COMM;
	seen->maps += r->type == PERF_RECORD_MMAP2;
	seen->shared += r->type == PERF_RECORD_MMAP2 &&
	    (r->mmap.flags & MAP_SHARED) != 0;
	assert_int_equal(r->time, 0);
	assert_int_equal(r->pid, getpid());
	if (r->type == PERF_RECORD_COMM && r->tid == gettid())
		seen->name = strcmp(r->comm.name, "earlier \033") == 0;
	if (r->type == PERF_RECORD_MMAP2 && here - r->mmap.start < r->mmap.len)
		seen->code = (r->mmap.prot & PROT_EXEC) != 0 &&
		    strstr(r->mmap.path, "/synthetic_records_test") != NULL;
	if (seen->space != NULL)
		ex_space_learn(seen->space, r);
}

TEST(records_of_a_process)
{
	struct synthetic_records e = {0};
	struct seen seen = {0};

	(void)prctl(PR_SET_NAME, "earlier \033");
	assert_int_equal(synthetic_records_take(&e, getpid()), 0);
	synthetic_records_each(&e, see, &seen);
	assert_true(seen.comms >= 1);	/* a sanitizer may have a thread */
	assert_true(seen.maps > 4);
	assert_int_equal(seen.records, seen.comms + seen.maps);
	assert_true(seen.name);
	assert_true(seen.code);
	synthetic_records_free(&e);
	assert_null(e.bytes);
	synthetic_records_free(&e);
}

TEST(a_space_learns_from_it)
{
	struct seen seen = {.space = ex_space_new(EX_LIVE)};
	struct ex_module *module;
	struct synthetic_records e = {0};
	uint64_t vaddr;

	assert_non_null(seen.space);
	assert_int_equal(synthetic_records_take(&e, getpid()), 0);
	synthetic_records_each(&e, see, &seen);
	synthetic_records_free(&e);	/* the space keeps nothing of it */
	module = ex_process_module(ex_space_process(seen.space, getpid()),
	    (uintptr_t)see, &vaddr);
	assert_non_null(module);
	assert_string_equal(ex_module_name(module), "synthetic_records_test");
	ex_space_free(seen.space);
}

/* Of the process that is meant. */
TEST(what_others_have_is_shared)
{
	struct seen before = {0}, other = {0}, seen = {0};
	struct synthetic_records e = {0};

	assert_int_equal(synthetic_records_take(&e, getpid()), 0);
	synthetic_records_each(&e, see, &before);
	assert_true(before.shared < before.maps);
	synthetic_records_shared(&e, getppid());
	synthetic_records_each(&e, see, &other);
	assert_int_equal(other.shared, before.shared);
	synthetic_records_shared(&e, getpid());
	synthetic_records_each(&e, see, &seen);
	assert_int_equal(seen.shared, seen.maps);
	assert_int_equal(seen.records, before.records);
	synthetic_records_free(&e);
}

/* More than the first allocation holds, of several processes in turn. */
TEST(keeps_as_much_as_there_is)
{
	enum { TIMES = 40, PAGES = 2000 };
	const size_t page = 4096;
	struct seen once = {0}, seen = {0};
	struct synthetic_records e = {0};
	char *pages = mmap(NULL, PAGES * page, PROT_READ,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	for (size_t i = 0; i < PAGES; i += 2)	/* a mapping each */
		assert_int_equal(mprotect(pages + i * page, page,
		    PROT_READ | PROT_EXEC), 0);
	assert_int_equal(synthetic_records_take(&e, getpid()), 0);
	synthetic_records_each(&e, see, &once);
	assert_true(once.records > PAGES / 2);
	for (unsigned i = 1; i < TIMES; i++)
		assert_int_equal(synthetic_records_take(&e, getpid()), 0);
	synthetic_records_each(&e, see, &seen);
	assert_int_equal(seen.comms, once.comms * TIMES);
	assert_true(seen.records >= once.records * TIMES);
	assert_true(e.len > 1 << 20 && e.len <= e.cap);
	synthetic_records_free(&e);
	(void)munmap(pages, PAGES * page);
}

/* Records of before go into a recording of any watch: one layout. */
TEST(has_the_layout_of_any_watch)
{
	static const struct wp_options options[] = {
		{.kernel = true, .callchain = true, .stack = 4096},
		{.for_perf = true, .stack = 8, .follow = true},
	};
	const struct wp_slot slot = {0x1000, 8, 1};
	struct synthetic_records e = {0};

	assert_int_equal(synthetic_records_take(&e, getpid()), 0);
	for (size_t i = 0; i < 2; i++) {
		struct seen seen = {0};
		struct ex_formats *own = e.formats;
		struct perf_event_attr attr;

		wp_attr_watch(&attr, &slot, &options[i], true);
		e.formats = ex_formats_new();
		assert_non_null(e.formats);
		assert_int_equal(ex_formats_add(e.formats, &attr, NULL, 0), 0);
		synthetic_records_each(&e, see, &seen);
		assert_true(seen.name && seen.code);
		ex_formats_free(e.formats);
		e.formats = own;
	}
	synthetic_records_free(&e);
}

TEST(says_when_there_is_no_process)
{
	struct synthetic_records e = {0};
	struct seen seen = {0};
	const pid_t pid = child_gone();

	assert_int_equal(synthetic_records_take(&e, pid), -ESRCH);
	synthetic_records_each(&e, see, &seen);
	assert_int_equal(seen.records, 0);
	synthetic_records_free(&e);
}

RUN_TESTS()
