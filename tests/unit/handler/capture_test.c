/*
 * capture: the records that the signal handler makes, and reading memory that
 * may not be mapped.
 */
#include "test.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "handler/capture.h"
#include "handler/channel.h"
#include "record/record.h"

enum { PAGE = 4096 };

/* Two pages that can be read between two that cannot. */
static uint8_t *pages;

static int
make_pages(void **state)
{
	(void)state;
	pages = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0);
	if (pages == MAP_FAILED ||
	    mprotect(pages + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE) != 0)
		return -1;
	for (unsigned i = 0; i < 2 * PAGE; i++)
		pages[PAGE + i] = (uint8_t)(i * 7 + i / 256);
	return 0;
}

static int
unmap_pages(void **state)
{
	(void)state;
	return munmap(pages, 4 * PAGE);
}

static void
peek_copies_what_is_there(void **state)
{
	const uintptr_t first = (uintptr_t)pages + PAGE;
	const struct {
		uint64_t from;
		size_t len, copied;
	} cases[] = {
		{first, 0, 0}, {first, 1, 1}, {first + 1, 15, 15},
		{first, 2 * PAGE, 2 * PAGE}, {first, 2 * PAGE + 1, 2 * PAGE},
		{first + PAGE - 3, 7, 7}, {first + 2 * PAGE - 5, 100, 5},
		{first + 2 * PAGE, 8, 0}, {first - 1, 8, 0}, {0, 8, 0},
		{8, 8, 0}, {UINT64_MAX - 7, 8, 0}, {UINT64_MAX - 3, 8, 0},
		{UINT64_MAX / 2, PAGE, 0}, {1ull << 63, 8, 0},
		{0xffffffffff600000, 8, 0},
	};
	static uint8_t copy[3 * PAGE];

	(void)state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		memset(copy, 0xee, sizeof(copy));
		if (wp_peek(copy, cases[i].from, cases[i].len) !=
		    cases[i].copied)
			fail_msg("case %u", i);
		if (cases[i].copied > 0)
			assert_memory_equal(copy, (void *)cases[i].from,
			    cases[i].copied);
		assert_int_equal(copy[cases[i].copied], 0xee);
	}
}

/* A context that a thread might have; sp may be anywhere. */
static ucontext_t
context_at(uint64_t sp)
{
	ucontext_t context;

	memset(&context, 0, sizeof(context));
#if defined(__x86_64__)
	for (unsigned i = 0; i < 16; i++)
		context.uc_mcontext.gregs[i] = 0x1000 + i;
	context.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	context.uc_mcontext.gregs[REG_RIP] = 0x401320;
	context.uc_mcontext.gregs[REG_EFL] = 0x246;
	context.uc_mcontext.gregs[REG_CSGSFS] = 0x002b000000000033;
#elif defined(__aarch64__)
	for (unsigned i = 0; i < 31; i++)
		context.uc_mcontext.regs[i] = 0x1000 + i;
	context.uc_mcontext.sp = sp;
	context.uc_mcontext.pc = 0x401320;
#endif
	return context;
}

static struct ex_formats *
formats(void)
{
	struct perf_event_attr attr;
	struct ex_formats *f = ex_formats_new();

	wp_channel_attr(&attr);
	assert_non_null(f);
	assert_int_equal(ex_formats_add(f, &attr, NULL, 0), 0);
	return f;
}

static uint64_t
reg(const struct ex_record *record, unsigned number)
{
	uint64_t value;

	assert_true(ex_regs_get(&record->sample.user, number, &value));
	return value;
}

static _Alignas(8) uint8_t bytes[WP_RECORD_MAX];

/* Capture with this stack pointer; the record decodes. */
static struct ex_record
capture_at(struct ex_formats *f, uint64_t sp, uint32_t stack, size_t room)
{
	const struct wp_captured what = {
		.id = 12, .addr = 0x404090, .pid = 100, .tid = 101,
		.stack = stack,
	};
	const ucontext_t context = context_at(sp);
	struct ex_record record;

	memset(bytes, 0xee, sizeof(bytes));
	wp_capture(bytes, room, &what, &context);
	assert_int_equal(ex_record_decode(f, bytes, sizeof(bytes), &record), 1);
	assert_in_range(record.size, 64, room);
	for (size_t i = room; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0xee);
	return record;
}

static uint64_t
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
a_record_has_what_a_sample_has(void **state)
{
	struct ex_formats *f = formats();
	const uint64_t sp = (uintptr_t)pages + PAGE, before = now();
	struct ex_record r = capture_at(f, sp, 1024, sizeof(bytes));

	(void)state;
	assert_int_equal(r.type, PERF_RECORD_SAMPLE);
	assert_int_equal(r.misc, PERF_RECORD_MISC_USER);
	assert_int_equal(r.id, 12);
	assert_int_equal(r.pid, 100);
	assert_int_equal(r.tid, 101);
	assert_in_range(r.time, before, now());
	assert_in_range(r.cpu, 0, 4096);
	assert_int_equal(r.sample.addr, 0x404090);
	assert_int_equal(r.sample.ip, 0x401320);
	assert_int_equal(r.sample.user.abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(r.sample.stack_len, 1024);
	assert_memory_equal(r.sample.stack, (void *)sp, 1024);
	ex_formats_free(f);
}

#if defined(__x86_64__)

#include <asm/perf_regs.h>

static void
registers_are_where_perf_has_them(void **state)
{
	static const struct {
		unsigned perf, frame;
	} regs[] = {
		{PERF_REG_X86_AX, REG_RAX}, {PERF_REG_X86_BX, REG_RBX},
		{PERF_REG_X86_CX, REG_RCX}, {PERF_REG_X86_DX, REG_RDX},
		{PERF_REG_X86_SI, REG_RSI}, {PERF_REG_X86_DI, REG_RDI},
		{PERF_REG_X86_BP, REG_RBP}, {PERF_REG_X86_SP, REG_RSP},
		{PERF_REG_X86_IP, REG_RIP}, {PERF_REG_X86_FLAGS, REG_EFL},
		{PERF_REG_X86_R8, REG_R8}, {PERF_REG_X86_R9, REG_R9},
		{PERF_REG_X86_R10, REG_R10}, {PERF_REG_X86_R11, REG_R11},
		{PERF_REG_X86_R12, REG_R12}, {PERF_REG_X86_R13, REG_R13},
		{PERF_REG_X86_R14, REG_R14}, {PERF_REG_X86_R15, REG_R15},
	};
	struct ex_formats *f = formats();
	const ucontext_t context = context_at(64);
	struct ex_record r = capture_at(f, 64, 0, sizeof(bytes));
	uint64_t value;

	(void)state;
	for (unsigned i = 0; i < COUNT(regs); i++)
		assert_int_equal(reg(&r, regs[i].perf),
		    context.uc_mcontext.gregs[regs[i].frame]);
	assert_int_equal(reg(&r, PERF_REG_X86_CS), 0x33);
	assert_int_equal(reg(&r, PERF_REG_X86_SS), 0x2b);
	assert_false(ex_regs_get(&r.sample.user, PERF_REG_X86_FS, &value));
	ex_formats_free(f);
}

static void
a_system_call_is_known_by_its_code(void **state)
{
	static const struct {
		uint8_t code[4];
		bool is;
	} cases[] = {
		{{0x90, 0x90, 0x0f, 0x05}, true},	/* syscall */
		{{0x90, 0x90, 0xcd, 0x80}, true},	/* int $0x80 */
		{{0x0f, 0x05, 0x48, 0x89}, false},
		{{0x90, 0x48, 0x89, 0x07}, false},	/* mov %rax,(%rdi) */
	};
	ucontext_t context = context_at(64);

	(void)state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		memcpy(pages + PAGE, cases[i].code, sizeof(cases[i].code));
		context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)(pages +
		    PAGE + sizeof(cases[i].code));
		assert_int_equal(wp_cpu_after_syscall(&context), cases[i].is);
	}
	/* nothing is there */
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)(pages + PAGE);
	assert_false(wp_cpu_after_syscall(&context));
	context.uc_mcontext.gregs[REG_RIP] = 1;
	assert_false(wp_cpu_after_syscall(&context));
}

#endif

/* The stack is cut where it cannot be read, and where the record ends. */
static void
the_stack_is_cut(void **state)
{
	const uintptr_t end = (uintptr_t)pages + 3 * PAGE;
	const struct {
		uint64_t sp;
		uint32_t asked;
		size_t room;
		uint64_t len;
	} cases[] = {
		{end - 512, 512, WP_RECORD_MAX, 512},
		{end - 512, 1024, WP_RECORD_MAX, 512},
		{end - 508, 1024, WP_RECORD_MAX, 504},
		{end - 4, 1024, WP_RECORD_MAX, 0},
		{end, 1024, WP_RECORD_MAX, 0},
		{end - 2 * PAGE, 0, WP_RECORD_MAX, 0},
		{end - 2 * PAGE, WP_STACK_MAX, WP_RECORD_MAX, 2 * PAGE},
		{end - 2 * PAGE, 1024, 512, 512 - 64 - 20 * 8 - 16},
		{0, 1024, WP_RECORD_MAX, 0},
		{UINT64_MAX, 1024, WP_RECORD_MAX, 0},
		{1ull << 47, 1024, WP_RECORD_MAX, 0},
	};
	struct ex_formats *f = formats();

	(void)state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct ex_record r = capture_at(f, cases[i].sp, cases[i].asked,
		    cases[i].room);

#if !defined(__x86_64__)
		if (cases[i].room < WP_RECORD_MAX)
			continue;	/* other registers, another length */
#endif
		if (r.sample.stack_len != cases[i].len)
			fail_msg("case %u: %llu bytes", i,
			    (unsigned long long)r.sample.stack_len);
		if (cases[i].len > 0)
			assert_memory_equal(r.sample.stack,
			    (void *)(uintptr_t)cases[i].sp, cases[i].len);
	}
	ex_formats_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peek_copies_what_is_there),
		cmocka_unit_test(a_record_has_what_a_sample_has),
#if defined(__x86_64__)
		cmocka_unit_test(registers_are_where_perf_has_them),
		cmocka_unit_test(a_system_call_is_known_by_its_code),
#endif
		cmocka_unit_test(the_stack_is_cut),
	};

	return cmocka_run_group_tests_name("capture", tests, make_pages,
	    unmap_pages);
}
