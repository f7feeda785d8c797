/* slot: regions of all alignments and lengths, split as the tables show. */
#include "test.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <string.h>

#include "os/slot.h"
#include "os/slot_cpu.h"

static const struct wp_slot_caps plenty = {.slots = WP_SLOTS_MAX, .range = 8};

static int
plan(uint64_t addr, uint64_t len, enum wp_access access,
    const struct wp_slot_caps *caps, struct wp_slot out[WP_SLOTS_MAX],
    struct wp_cause *cause)
{
	const struct wp_region region = {addr, len, access};

	memset(cause, 0, sizeof(*cause));
	return wp_slot_plan(&region, caps, out, cause);
}

/* --- examples --- */

static const struct {
	uint64_t addr, len, range;
	int n;
	struct { uint64_t addr, len; } piece[8];
} splits[] = {
	{0x1000, 1, 8, 1, {{0x1000, 1}}},
	{0x1000, 2, 8, 1, {{0x1000, 2}}},
	{0x1000, 4, 8, 1, {{0x1000, 4}}},
	{0x1000, 8, 8, 1, {{0x1000, 8}}},
	{0x1000, 3, 8, 2, {{0x1000, 2}, {0x1002, 1}}},
	{0x1000, 5, 8, 2, {{0x1000, 4}, {0x1004, 1}}},
	{0x1000, 7, 8, 3, {{0x1000, 4}, {0x1004, 2}, {0x1006, 1}}},
	{0x1001, 1, 8, 1, {{0x1001, 1}}},
	{0x1001, 2, 8, 2, {{0x1001, 1}, {0x1002, 1}}},
	{0x1001, 7, 8, 3, {{0x1001, 1}, {0x1002, 2}, {0x1004, 4}}},
	{0x1001, 8, 8, 4, {{0x1001, 1}, {0x1002, 2}, {0x1004, 4},
	    {0x1008, 1}}},
	{0x1002, 4, 8, 2, {{0x1002, 2}, {0x1004, 2}}},
	{0x1004, 8, 8, 2, {{0x1004, 4}, {0x1008, 4}}},
	{0x1007, 2, 8, 2, {{0x1007, 1}, {0x1008, 1}}},
	{0x1000, 16, 8, 2, {{0x1000, 8}, {0x1008, 8}}},
	{0x1000, 32, 8, 4, {{0x1000, 8}, {0x1008, 8}, {0x1010, 8},
	    {0x1018, 8}}},
	{0x1004, 24, 8, 4, {{0x1004, 4}, {0x1008, 8}, {0x1010, 8},
	    {0x1018, 4}}},
	/* with address masks */
	{0x1000, 16, 16, 1, {{0x1000, 16}}},
	{0x1008, 16, 16, 2, {{0x1008, 8}, {0x1010, 8}}},
	{0x1000, 4096, 4096, 1, {{0x1000, 4096}}},
	{0x1000, 8192, 4096, 2, {{0x1000, 4096}, {0x2000, 4096}}},
	{0x1800, 4096, 4096, 2, {{0x1800, 2048}, {0x2000, 2048}}},
	{0x1000, 4096, 1024, 4, {{0x1000, 1024}, {0x1400, 1024},
	    {0x1800, 1024}, {0x1c00, 1024}}},
	{0x1ff0, 24, 4096, 2, {{0x1ff0, 16}, {0x2000, 8}}},
	/* the ends of the address space */
	{0, 8, 8, 1, {{0, 8}}},
	{UINT64_MAX, 1, 8, 1, {{UINT64_MAX, 1}}},
	{UINT64_MAX - 7, 8, 8, 1, {{UINT64_MAX - 7, 8}}},
	{UINT64_MAX - 8, 9, 8, 2, {{UINT64_MAX - 8, 1}, {UINT64_MAX - 7, 8}}},
	{UINT64_MAX - 4095, 4096, 4096, 1, {{UINT64_MAX - 4095, 4096}}},
};

TEST(splits_as_the_table_says)
{
	for (size_t i = 0; i < COUNT(splits); i++) {
		const struct wp_slot_caps caps = {8, splits[i].range};
		struct wp_slot out[WP_SLOTS_MAX];
		struct wp_cause cause;
		int n = plan(splits[i].addr, splits[i].len, WP_WRITE, &caps,
		    out, &cause);

		if (n != splits[i].n)
			fail_msg("row %zu: %d slots", i, n);
		for (int k = 0; k < n; k++)
			if (out[k].addr != splits[i].piece[k].addr ||
			    out[k].len != splits[i].piece[k].len)
				fail_msg("row %zu, slot %d: %#llx, %llu bytes",
				    i, k, (unsigned long long)out[k].addr,
				    (unsigned long long)out[k].len);
	}
}

/* --- every region, against another way to count --- */

/* The fewest aligned pieces from addr to end: the best over all first ones. */
static unsigned
fewest(uint64_t addr, uint64_t end, uint64_t range)
{
	static unsigned best[128];	/* from there to end */

	best[end] = 0;
	for (uint64_t at = end; at-- > addr; ) {
		best[at] = UINT16_MAX;
		for (uint64_t len = 1; len <= range && at + len <= end &&
		    at % len == 0; len *= 2)
			if (best[at + len] + 1 < best[at])
				best[at] = best[at + len] + 1;
	}
	return best[addr];
}

static void
check_cover(uint64_t addr, uint64_t len, uint64_t range)
{
	const struct wp_slot_caps caps = {WP_SLOTS_MAX, range};
	const uint64_t base = 0x7f0000000000;
	struct wp_slot out[WP_SLOTS_MAX];
	struct wp_cause cause;
	uint64_t at = base + addr;
	int n = plan(at, len, WP_WRITE, &caps, out, &cause);

	assert_int_equal(n, fewest(addr, addr + len, range));
	for (int i = 0; i < n; i++) {
		assert_int_equal(out[i].addr, at);
		assert_true(out[i].len >= 1 && out[i].len <= range);
		assert_int_equal(out[i].len & (out[i].len - 1), 0);
		assert_int_equal(out[i].addr % out[i].len, 0);
		at += out[i].len;
	}
	assert_int_equal(at, base + addr + len);
}

TEST(covers_exactly_with_the_fewest)
{
	for (uint64_t range = 8; range <= 4096; range *= 2)
		for (uint64_t addr = 0; addr < 64; addr++)
			for (uint64_t len = 1; len <= 32; len++)
				check_cover(addr, len, range);
}

/* A register that selects bytes takes what lies in its word. */
TEST(selects_bytes_where_the_processor_does)
{
	const struct wp_slot_caps caps = {WP_SLOTS_MAX, 8, true};
	struct wp_slot out[WP_SLOTS_MAX];
	struct wp_cause cause;

	for (uint64_t addr = 0x1000; addr < 0x1008; addr++)
		for (uint64_t len = 1; len <= 32; len++) {
			uint64_t at = addr;
			const int n = plan(addr, len, WP_WRITE, &caps, out,
			    &cause);

			assert_int_equal(n, (addr + len + 7) / 8 - addr / 8);
			for (int i = 0; i < n; at += out[i++].len) {
				assert_int_equal(out[i].addr, at);
				assert_int_equal((at + out[i].len - 1) / 8,
				    at / 8);
			}
			assert_int_equal(at, addr + len);
		}
}

/* --- what is asked for --- */

TEST(watches_for_what_is_asked)
{
	static const struct {
		enum wp_access access;
		uint32_t type;
	} types[] = {
		{WP_WRITE, HW_BREAKPOINT_W},
#ifdef __x86_64__
		{WP_READ, HW_BREAKPOINT_RW},
#else
		{WP_READ, HW_BREAKPOINT_R},
#endif
		{WP_ACCESS, HW_BREAKPOINT_RW},
	};
	struct wp_slot out[WP_SLOTS_MAX];
	struct wp_cause cause;

	for (size_t i = 0; i < COUNT(types); i++) {
		assert_int_equal(plan(0x1006, 4, types[i].access, &plenty, out,
		    &cause), 2);
		assert_int_equal(out[0].type, types[i].type);
		assert_int_equal(out[1].type, types[i].type);
	}
}

TEST(executes_at_one_address)
{
	static const uint64_t lengths[] = {0, 1, 8, 4096, UINT64_MAX};
	static const uint64_t addrs[] = {0, 0x401001, UINT64_MAX};
	static const struct wp_slot_caps one = {1, 8};
	struct wp_slot out[WP_SLOTS_MAX];
	struct wp_cause cause;

	for (size_t a = 0; a < COUNT(addrs); a++) {
		for (size_t i = 0; i < COUNT(lengths); i++) {
			assert_int_equal(plan(addrs[a], lengths[i], WP_EXEC,
			    &one, out, &cause), 1);
			assert_int_equal(out[0].addr, addrs[a]);
			assert_int_equal(out[0].type, HW_BREAKPOINT_X);
			assert_int_equal(out[0].len, wp_cpu_exec_len());
		}
	}
}

/* --- what does not fit --- */

static const struct {
	uint64_t addr, len;
	struct wp_slot_caps caps;
	int err;
	const char *text;	/* part of the cause; NULL: none is set */
} refused[] = {
	{0x1000, 33, {4, 8}, -E2BIG, "33 bytes at 0x1000 take 5 slots"},
	{0x1001, 9, {4, 8}, 4, NULL},
	{0x1003, 15, {4, 8}, 4, NULL},
	{0x1003, 16, {4, 8}, -E2BIG, "16 bytes at 0x1003 take 5 slots"},
	{0x1001, 32, {4, 8}, -E2BIG, "take 7 slots, and this processor has 4"},
	{0x1000, 16, {1, 8}, -E2BIG, "watch 8 bytes (SPEC:LEN)"},
	{0x1000, 8, {0, 8}, -E2BIG, "has 0"},
	{0x1000, 31, {4, 8}, -E2BIG, "take 6 slots, and this processor has 4 "
	    "free: watch 28 or 32 bytes (SPEC:LEN)"},
	{0x1000, 100, {4, 8}, -E2BIG, ": watch 32 bytes (SPEC:LEN)"},
	{0x1001, 20, {4, 8}, -E2BIG, ": watch 15 bytes, or more from an "
	    "aligned address (SPEC:LEN)"},
	{0x1004, 23, {4, 8}, -E2BIG, ": watch 22 or 24 bytes"},
	{0x1000, 16384, {4, 4096}, 4, NULL},
	{0x1000, 16385, {4, 4096}, -E2BIG, "watch 16384 bytes"},
	/* more than can be listed, whatever the processor has */
	{0x1000, 8 * WP_SLOTS_MAX, {64, 8}, WP_SLOTS_MAX, NULL},
	{0x1000, 8 * WP_SLOTS_MAX + 1, {64, 8}, -E2BIG, "take 17 slots"},
	{0x1000, 800, {4, 8}, -E2BIG, "take 100 slots"},
	{0, UINT64_MAX, {4, 8}, -E2BIG, "18446744073709551615 bytes"},
	/* over the end of the address space, or nothing at all */
	{UINT64_MAX, 2, {4, 8}, -ERANGE, NULL},
	{UINT64_MAX - 7, 9, {4, 8}, -ERANGE, NULL},
	{2, UINT64_MAX, {4, 8}, -ERANGE, NULL},
	{0x1000, 0, {4, 8}, -ERANGE, NULL},
	{0, 0, {4, 8}, -ERANGE, NULL},
};

TEST(refuses_what_does_not_fit)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct wp_slot out[WP_SLOTS_MAX];
		struct wp_cause cause;
		int got = plan(refused[i].addr, refused[i].len, WP_WRITE,
		    &refused[i].caps, out, &cause);

		if (got != refused[i].err)
			fail_msg("row %zu: %d", i, got);
		if (refused[i].text == NULL)
			assert_int_equal(cause.code, WP_CAUSE_NONE);
		else if (cause.code != WP_CAUSE_LENGTH ||
		    strstr(cause.text, refused[i].text) == NULL)
			fail_msg("row %zu: %s", i, cause.text);
	}
}

TEST(needs_no_cause)
{
	const struct wp_region region = {0x1000, 64, WP_WRITE};
	struct wp_slot out[WP_SLOTS_MAX];

	assert_int_equal(wp_slot_plan(&region, &wp_slot_usual, out, NULL),
	    -E2BIG);
}

/* --- the address space --- */

TEST(knows_what_is_an_address)
{
	uint64_t here = (uintptr_t)&here;

	assert_true(here < wp_slot_user_end());
	assert_int_equal(wp_slot_user_end() % 4096, 0);
	assert_true(wp_slot_canonical(0));
	assert_true(wp_slot_canonical(here));
	assert_true(wp_slot_canonical(wp_slot_user_end() - 1));
	assert_true(wp_slot_canonical(UINT64_MAX));
	assert_true(wp_slot_canonical(0xffffffff81000000));
	assert_false(wp_slot_canonical(UINT64_MAX / 2));
	assert_false(wp_slot_canonical(UINT64_MAX / 2 + 1));
	assert_false(wp_slot_canonical(0xdeadbeefdeadbeef));
}

TEST(knows_what_is_in_the_kernel)
{
	static const struct {
		struct wp_region region;
		bool in;
	} cases[] = {
		{{0xffffffff81000000, 8, WP_WRITE}, true},
		{{0xffff888000000000, 1, WP_WRITE}, true},
		{{UINT64_MAX, 1, WP_WRITE}, true},
		{{UINT64_MAX, 2, WP_WRITE}, false},
		{{0xffffffff81000000, 0xffffffff81000000, WP_WRITE}, false},
		{{UINT64_MAX / 2 + 1, 8, WP_WRITE}, false},
		{{0x404090, 8, WP_WRITE}, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		if (wp_slot_in_kernel(&cases[i].region) != cases[i].in)
			fail_msg("row %zu", i);
}

RUN_TESTS()
