/*
 * attr: with every combination of options, the decoder understands the records
 * of the events, and the time is where a ring's reader expects it.
 */
#include "test.h"

#include <linux/hw_breakpoint.h>
#include <string.h>
#include <time.h>

#include "os/attr.h"
#include "record/record.h"

static const uint64_t id = 1234, when = 0x1122334455667788;

/* --- combinations --- */

/* Options from the bits of a number. */
enum { COMBINATIONS = 1 << 9 };

static struct wp_options
combination(unsigned bits)
{
	return (struct wp_options){
		.count = bits & 1, .kernel = bits & 2,
		/* as wp_options_fit leaves it */
		.callchain = (bits & 6) == 6,
		.follow = bits & 8, .remove_on_exec = bits & 16,
		.inherit_thread = bits & 32, .format_lost = bits & 64,
		.stack = bits & 128 ? 512 : 0, .for_perf = bits & 256,
	};
}

static const struct wp_slot slot = {
	.addr = 0x404090, .len = 8, .type = HW_BREAKPOINT_W,
};

static struct perf_event_attr
make(const struct wp_options *options, bool side)
{
	struct perf_event_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	wp_attr_watch(&attr, &slot, options, side);
	return attr;
}

TEST(says_what_is_watched)
{
	static const struct wp_slot slots[] = {
		{0x404090, 8, HW_BREAKPOINT_W}, {0x1, 1, HW_BREAKPOINT_RW},
		{0x401001, sizeof(long), HW_BREAKPOINT_X},
		{0x7f0000000000, 4096, HW_BREAKPOINT_W},
	};
	const struct wp_options options = {0};
	struct perf_event_attr attr;

	for (size_t i = 0; i < COUNT(slots); i++) {
		wp_attr_watch(&attr, &slots[i], &options, false);
		assert_int_equal(attr.type, PERF_TYPE_BREAKPOINT);
		assert_int_equal(attr.size, sizeof(attr));
		assert_int_equal(attr.bp_addr, slots[i].addr);
		assert_int_equal(attr.bp_len, slots[i].len);
		assert_int_equal(attr.bp_type, slots[i].type);
	}
}

TEST(follows_the_options)
{
	for (unsigned bits = 0; bits < COMBINATIONS; bits++) {
		const struct wp_options o = combination(bits);
		const struct perf_event_attr attr = make(&o, bits % 3 == 0);

		assert_int_equal(attr.disabled, 0);
		assert_int_equal(attr.exclude_user, 0);
		assert_int_equal(attr.exclude_kernel, !o.kernel);
		assert_int_equal(attr.inherit, 1);
		assert_int_equal(attr.inherit_thread,
		    o.inherit_thread && !o.follow);
		assert_int_equal(attr.remove_on_exec, o.remove_on_exec);
		assert_int_equal(attr.read_format,
		    PERF_FORMAT_TOTAL_TIME_RUNNING |
		    (o.format_lost ? PERF_FORMAT_LOST : 0));
		assert_int_equal(attr.use_clockid, 1);
		assert_int_equal(attr.clockid, CLOCK_MONOTONIC);
		assert_int_equal(attr.sigtrap, 0);
		/* no skid is asked for: the kernel refuses it */
		assert_int_equal(attr.precise_ip, 0);
	}
}

TEST(counting_takes_no_samples)
{
	for (unsigned bits = 1; bits < COMBINATIONS; bits += 2) {
		const struct wp_options o = combination(bits);
		const struct perf_event_attr attr = make(&o, true);

		assert_int_equal(attr.sample_period, 0);
		assert_int_equal(attr.sample_type, 0);
		assert_int_equal(attr.mmap | attr.mmap2 | attr.mmap_data |
		    attr.comm | attr.task, 0);
	}
}

TEST(samples_what_is_needed)
{
	const uint64_t always = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
	    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
	    PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER;

	for (unsigned bits = 0; bits < COMBINATIONS; bits += 2) {
		const struct wp_options o = combination(bits);
		const struct perf_event_attr attr = make(&o, false);

		assert_int_equal(attr.sample_period, 1);
		assert_int_equal(attr.sample_type, always |
		    (o.stack > 0 ? (uint64_t)PERF_SAMPLE_STACK_USER : 0) |
		    (o.kernel ? (uint64_t)PERF_SAMPLE_REGS_INTR : 0) |
		    (o.callchain || o.for_perf ?
		    (uint64_t)PERF_SAMPLE_CALLCHAIN : 0));
		assert_int_equal(attr.sample_stack_user, o.stack);
		assert_int_equal(attr.sample_id_all, 1);
		/* the user's part of a stack is unwound from its copy */
		if (attr.sample_type & PERF_SAMPLE_CALLCHAIN) {
			assert_int_equal(attr.exclude_callchain_user, 1);
			assert_int_equal(attr.exclude_callchain_kernel,
			    !o.callchain);
		}
	}
}

/* One event of a thread reports maps and names, all are read alike. */
TEST(side_events_differ_in_nothing_else)
{
	for (unsigned bits = 0; bits < COMBINATIONS; bits += 2) {
		const struct wp_options o = combination(bits);
		const struct perf_event_attr plain = make(&o, false);
		struct perf_event_attr side = make(&o, true);

		assert_int_equal(plain.mmap | plain.mmap2 | plain.mmap_data |
		    plain.comm | plain.comm_exec | plain.task, 0);
		assert_int_equal(side.mmap & side.mmap2 & side.comm &
		    side.comm_exec & side.task, 1);
		assert_true(side.mmap_data);
		side.mmap = side.mmap2 = side.mmap_data = side.comm =
		    side.comm_exec = side.task = 0;
		assert_memory_equal(&side, &plain, sizeof(side));
	}
}

/* --- records made by hand, as perf_event_open(2) lays them out --- */

struct bytes {
	uint8_t b[8192];
	size_t len;
};

static void
put64(struct bytes *bytes, uint64_t v)
{
	memcpy(bytes->b + bytes->len, &v, sizeof(v));
	bytes->len += sizeof(v);
}

static const struct perf_event_header *
finish(struct bytes *bytes, uint32_t type, uint16_t misc)
{
	const struct perf_event_header header = {
		type, misc, (uint16_t)bytes->len,
	};

	memcpy(bytes->b, &header, sizeof(header));
	return (const struct perf_event_header *)(const void *)bytes->b;
}

static const struct perf_event_header *
make_sample(struct bytes *bytes, const struct perf_event_attr *attr)
{
	const uint64_t type = attr->sample_type;

	bytes->len = sizeof(struct perf_event_header);
	put64(bytes, id);
	put64(bytes, 0x401327);			/* ip */
	put64(bytes, 20ull << 32 | 10);		/* pid, tid */
	put64(bytes, when);
	put64(bytes, attr->bp_addr);
	put64(bytes, 1);			/* cpu */
	if (type & PERF_SAMPLE_CALLCHAIN) {
		put64(bytes, 2);
		put64(bytes, PERF_CONTEXT_KERNEL);
		put64(bytes, 0xffffffff81000000);
	}
	if (type & PERF_SAMPLE_REGS_USER) {
		put64(bytes, PERF_SAMPLE_REGS_ABI_64);
		for (int i = 0; i < __builtin_popcountll(
		    attr->sample_regs_user); i++)
			put64(bytes, 100 + (uint64_t)i);
	}
	if (type & PERF_SAMPLE_STACK_USER) {
		put64(bytes, attr->sample_stack_user);
		for (uint32_t i = 0; i < attr->sample_stack_user; i += 8)
			put64(bytes, i);
		put64(bytes, attr->sample_stack_user / 2);
	}
	if (type & PERF_SAMPLE_REGS_INTR) {
		put64(bytes, PERF_SAMPLE_REGS_ABI_64);
		for (int i = 0; i < __builtin_popcountll(
		    attr->sample_regs_intr); i++)
			put64(bytes, 200 + (uint64_t)i);
	}
	return finish(bytes, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
}

/* Records other than samples: words of body, then who, when, where, which. */
static const struct {
	uint32_t type;
	unsigned words;
} others[] = {
	{PERF_RECORD_COMM, 1 + 2}, {PERF_RECORD_MMAP2, 8 + 1},
	{PERF_RECORD_FORK, 3}, {PERF_RECORD_EXIT, 3},
	{PERF_RECORD_LOST, 2}, {PERF_RECORD_LOST_SAMPLES, 1},
	{PERF_RECORD_THROTTLE, 3}, {PERF_RECORD_UNTHROTTLE, 3},
};

static const struct perf_event_header *
make_other(struct bytes *bytes, size_t i)
{
	bytes->len = sizeof(struct perf_event_header);
	for (unsigned w = 0; w < others[i].words; w++)
		put64(bytes, 0);
	put64(bytes, 20ull << 32 | 10);
	put64(bytes, when);
	put64(bytes, 1);
	put64(bytes, id);
	return finish(bytes, others[i].type, 0);
}

static void
check_time(const struct ex_formats *formats,
    const struct perf_event_header *header, struct ex_record *record)
{
	uint64_t found;

	assert_int_equal(ex_record_decode(formats, header, header->size,
	    record), 1);
	assert_int_equal(record->type, header->type);
	assert_int_equal(record->time, when);
	assert_true(wp_attr_time_offset(header) + 8u <= header->size);
	memcpy(&found, (const uint8_t *)header + wp_attr_time_offset(header),
	    sizeof(found));
	assert_int_equal(found, when);
}

static void
check_sample(const struct ex_record *record, const struct wp_options *o)
{
	uint64_t value;

	assert_int_equal(record->id, id);
	assert_int_equal(record->pid, 10);
	assert_int_equal(record->tid, 20);
	assert_int_equal(record->sample.ip, 0x401327);
	assert_int_equal(record->sample.addr, slot.addr);
	assert_int_equal(record->sample.stack_asked, o->stack);
	assert_int_equal(record->sample.callchain_len,
	    o->callchain || o->for_perf ? 2 : 0);
	assert_int_equal(record->sample.intr.values != NULL, o->kernel);
#ifdef __x86_64__
	/* all that unwinding and decoding of instructions start from */
	for (unsigned reg = 0; reg < 24; reg++)
		assert_int_equal(ex_regs_get(&record->sample.user, reg, &value),
		    reg < 12 || reg >= 16);	/* but ds, es, fs, gs */
#else
	(void)value;
#endif
}

TEST(time_is_where_it_is_looked_for)
{
	for (unsigned bits = 0; bits < COMBINATIONS; bits += 2) {
		const struct wp_options o = combination(bits);
		const struct perf_event_attr attr = make(&o, bits & 16);
		struct ex_formats *formats = ex_formats_new();
		struct ex_record record;
		struct bytes bytes;

		assert_int_equal(ex_formats_add(formats, &attr, &id, 1), 0);
		check_time(formats, make_sample(&bytes, &attr), &record);
		check_sample(&record, &o);
		for (size_t i = 0; i < COUNT(others); i++)
			check_time(formats, make_other(&bytes, i), &record);
		ex_formats_free(formats);
	}
}

/* Watches of several slots, side events or not, in one stream. */
TEST(one_layout_for_all_watches)
{
	const struct wp_options o = {.kernel = true, .stack = 1024};
	const struct perf_event_attr side = make(&o, true),
	    plain = make(&o, false);
	const uint64_t ids[] = {1, 2, id};
	struct ex_formats *formats = ex_formats_new();
	struct ex_record record;
	struct bytes bytes;

	assert_int_equal(ex_formats_add(formats, &side, &ids[0], 1), 0);
	assert_int_equal(ex_formats_add(formats, &plain, &ids[1], 2), 1);
	check_time(formats, make_sample(&bytes, &plain), &record);
	assert_int_equal(record.attr, 1);
	/* a record whose event is not known can be read all the same */
	make_other(&bytes, 0);
	memset(bytes.b + bytes.len - 8, 0, 8);
	check_time(formats, finish(&bytes, PERF_RECORD_COMM, 0), &record);
	ex_formats_free(formats);
}

/* --- wishes and what is possible --- */

TEST(settings_are_brought_into_range)
{
	/* the callchain comes with the kernel's accesses: it names them */
	static const struct {
		bool want_kernel, can_kernel, can_callchain, kernel, callchain;
	} rows[] = {
		{false, false, false, false, false},
		{false, true, true, false, false},
		{true, false, false, false, false},
		{true, false, true, false, false},
		{true, true, false, true, false},
		{true, true, true, true, true},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct wp_features can = {
			.kernel = rows[i].can_kernel,
			.callchain = rows[i].can_callchain,
			.remove_on_exec = i & 1, .inherit_thread = i & 2,
			.format_lost = i & 4,
		};
		struct wp_options o = {
			.kernel = rows[i].want_kernel,
			.count = i & 1, .follow = i & 2, .stack = 1024,
		};

		wp_options_fit(&o, &can);
		assert_int_equal(o.kernel, rows[i].kernel);
		assert_int_equal(o.callchain, rows[i].callchain);
		assert_int_equal(o.remove_on_exec, can.remove_on_exec);
		assert_int_equal(o.inherit_thread, can.inherit_thread);
		assert_int_equal(o.format_lost, can.format_lost);
		assert_int_equal(o.count, i & 1);
		assert_int_equal(o.follow, (i & 2) != 0);
		assert_int_equal(o.stack, 1024);
	}
}

TEST(rings_belong_to_events_that_never_fire)
{
	struct perf_event_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	wp_attr_ring(&attr, 4096);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_DUMMY);
	assert_int_equal(attr.sample_period, 0);
	assert_int_equal(attr.inherit, 0);
	assert_int_equal(attr.mmap | attr.mmap2 | attr.comm | attr.task, 0);
	assert_int_equal(attr.watermark, 1);
	assert_int_equal(attr.wakeup_watermark, 4096);
	assert_int_equal(attr.clockid, CLOCK_MONOTONIC);
}

/* Whatever it is measured by it lives and dies with. */
TEST(reference_events_are_like_those_they_measure)
{
	for (unsigned bits = 0; bits < COMBINATIONS; bits++) {
		const struct wp_options o = combination(bits);
		const struct perf_event_attr watch = make(&o, false);
		struct perf_event_attr attr;

		memset(&attr, 0xff, sizeof(attr));
		wp_attr_reference(&attr, &o);
		assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
		assert_int_equal(attr.config, PERF_COUNT_SW_DUMMY);
		assert_int_equal(attr.sample_period, 0);
		assert_int_equal(attr.disabled, watch.disabled);
		assert_int_equal(attr.inherit, watch.inherit);
		assert_int_equal(attr.inherit_thread, watch.inherit_thread);
		assert_int_equal(attr.remove_on_exec, watch.remove_on_exec);
		assert_int_equal(attr.read_format, watch.read_format);
	}
}

RUN_TESTS()
