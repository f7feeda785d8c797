/*
 * record: every type and field of perf records, built byte by byte from the
 * documented layouts, and everything that can be wrong with them.
 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "record/record.h"

#define ID 77
#define BRANCH_COUNTERS (1ULL << 19)
#define REGS_USER 0xff0fffULL
#define REGS_INTR 0x8000000000000101ULL

/* A record under construction. */
struct bytes {
	uint8_t b[16384];
	size_t len;
};

static void
put(struct bytes *b, const void *p, size_t n)
{
	assert_true(b->len + n <= sizeof(b->b));
	memcpy(b->b + b->len, p, n);
	b->len += n;
}

static void
put64(struct bytes *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static void
put32(struct bytes *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void
put16(struct bytes *b, uint16_t v)
{
	put(b, &v, sizeof(v));
}

/* count u64s: first, first + 1, ... */
static void
put_series(struct bytes *b, uint64_t first, uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++)
		put64(b, first + i);
}

/* A string, padded with NULs to 8 bytes as the kernel does. */
static void
put_string(struct bytes *b, const char *s)
{
	static const char pad[8];
	size_t n = strlen(s) + 1;

	put(b, s, n);
	put(b, pad, -n & 7);
}

static void
begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	b->len = 0;
	put32(b, type);
	put16(b, misc);
	put16(b, 0);
}

static uint64_t
at64(const uint8_t *p, size_t i)
{
	uint64_t v;

	memcpy(&v, p + 8 * i, sizeof(v));
	return v;
}

/*
 * Decode the record from a heap block of just its size (a sanitizer sees every
 * step outside) and at an odd address; both must agree.  The pointers in *r
 * are good until the next call.
 */
static int
decode(const struct ex_formats *f, const struct bytes *b, struct ex_record *r)
{
	static uint8_t *block, *odd;
	uint16_t size = (uint16_t)b->len;
	struct ex_record other;
	int result;

	free(block);
	free(odd);
	block = malloc(b->len);
	odd = malloc(b->len + 1);
	assert_non_null(block);
	assert_non_null(odd);
	memcpy(block, b->b, b->len);
	memcpy(block + 6, &size, sizeof(size));
	memcpy(odd + 1, block, b->len);
	result = ex_record_decode(f, odd + 1, b->len, &other);
	assert_int_equal(ex_record_decode(f, block, b->len, r), result);
	if (result == 1) {
		assert_ptr_equal(r->bytes, block);
		assert_int_equal(r->size, b->len);
		assert_int_equal(other.time, r->time);
		assert_int_equal(other.tid, r->tid);
	}
	return result;
}

static struct ex_formats *
formats_of(const struct perf_event_attr *attr)
{
	const uint64_t id = ID;
	struct ex_formats *f = ex_formats_new();

	assert_non_null(f);
	assert_int_equal(ex_formats_add(f, attr, &id, 1), 0);
	return f;
}

/*
 * Samples: the fields in the order in which the kernel writes them, what each
 * is built as, and what it must be decoded to.
 */

struct field {
	uint64_t bit;		/* in sample_type */
	size_t number;		/* one u64: where it goes in struct ex_record */
	void (*put)(struct bytes *);	/* else: how it is built */
	void (*check)(const struct ex_record *);	/* and checked */
	void (*check_none)(const struct ex_record *);	/* when not asked for */
};

#define NUMBER(bit, member) {bit, offsetof(struct ex_record, member), \
	NULL, NULL, NULL}

static uint64_t
number_of(uint64_t bit)
{
	return 0x0102030405060708ULL * (uint64_t)__builtin_ctzll(bit) + 1;
}

static void
put_id(struct bytes *b)
{
	put64(b, ID);
}

static void
check_id(const struct ex_record *r)
{
	assert_int_equal(r->id, ID);
}

static void
put_tid(struct bytes *b)
{
	put32(b, 4335);
	put32(b, 4340);
}

static void
check_tid(const struct ex_record *r)
{
	assert_int_equal(r->pid, 4335);
	assert_int_equal(r->tid, 4340);
}

static void
check_no_tid(const struct ex_record *r)
{
	assert_int_equal(r->pid, -1);
	assert_int_equal(r->tid, -1);
}

static void
put_cpu(struct bytes *b)
{
	put32(b, 3);
	put32(b, 0xdeadbeef);	/* reserved */
}

static void
check_cpu(const struct ex_record *r)
{
	assert_int_equal(r->cpu, 3);
}

static void
check_no_cpu(const struct ex_record *r)
{
	assert_int_equal(r->cpu, UINT32_MAX);
}

static void
put_read(struct bytes *b)
{
	put64(b, 4711);
}

static void
check_read(const struct ex_record *r)
{
	assert_int_equal(r->sample.value, 4711);
}

static void
check_no_read(const struct ex_record *r)
{
	assert_int_equal(r->sample.value, 0);
}

static void
put_callchain(struct bytes *b)
{
	put64(b, 5);
	put64(b, PERF_CONTEXT_USER);
	put_series(b, 0x400000, 4);
}

static void
check_callchain(const struct ex_record *r)
{
	assert_int_equal(r->sample.callchain_len, 5);
	assert_int_equal(ex_callchain_at(&r->sample, 0), PERF_CONTEXT_USER);
	assert_int_equal(ex_callchain_at(&r->sample, 4), 0x400003);
}

static void
check_no_callchain(const struct ex_record *r)
{
	assert_int_equal(r->sample.callchain_len, 0);
	assert_null(r->sample.callchain);
}

static void
put_raw(struct bytes *b)
{
	put32(b, 12);
	put(b, "raw data\0\0\0", 12);
}

static void
check_raw(const struct ex_record *r)
{
	assert_int_equal(r->sample.raw_len, 12);
	assert_memory_equal(r->sample.raw, "raw data", 8);
}

static void
check_no_raw(const struct ex_record *r)
{
	assert_int_equal(r->sample.raw_len, 0);
	assert_null(r->sample.raw);
}

static void
put_branch(struct bytes *b)
{
	put64(b, 2);
	put64(b, 99);		/* hw_idx */
	put_series(b, 1000, 6);
	put_series(b, 2000, 2);	/* counters */
}

static void
check_branch(const struct ex_record *r)
{
	assert_int_equal(r->sample.branch_len, 2);
	assert_int_equal(r->sample.branch_hw_idx, 99);
	assert_int_equal(at64(r->sample.branch, 0), 1000);
	assert_int_equal(at64(r->sample.branch, 5), 1005);
	assert_int_equal(at64(r->sample.branch_counters, 1), 2001);
}

static void
check_no_branch(const struct ex_record *r)
{
	assert_int_equal(r->sample.branch_len, 0);
	assert_int_equal(r->sample.branch_hw_idx, 0);
	assert_null(r->sample.branch);
	assert_null(r->sample.branch_counters);
}

static void
put_user(struct bytes *b)
{
	put64(b, PERF_SAMPLE_REGS_ABI_64);
	put_series(b, 100, (uint64_t)__builtin_popcountll(REGS_USER));
}

static void
check_user(const struct ex_record *r)
{
	uint64_t v = 0;

	assert_int_equal(r->sample.user.abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(r->sample.user.mask, REGS_USER);
	assert_true(ex_regs_get(&r->sample.user, 0, &v));
	assert_int_equal(v, 100);
	assert_true(ex_regs_get(&r->sample.user, 23, &v));
	assert_int_equal(v, 119);
	assert_false(ex_regs_get(&r->sample.user, 12, &v));
	assert_false(ex_regs_get(&r->sample.user, 64, &v));
	assert_false(ex_regs_get(&r->sample.user, UINT32_MAX, &v));
}

static void
check_no_user(const struct ex_record *r)
{
	uint64_t v;

	assert_int_equal(r->sample.user.abi, 0);
	assert_null(r->sample.user.values);
	assert_false(ex_regs_get(&r->sample.user, 0, &v));
}

static void
put_stack(struct bytes *b)
{
	put64(b, 64);
	put_series(b, 0x7000, 8);
	put64(b, 40);
}

static void
check_stack(const struct ex_record *r)
{
	assert_int_equal(r->sample.stack_asked, 64);
	assert_int_equal(r->sample.stack_len, 40);
	assert_int_equal(at64(r->sample.stack, 0), 0x7000);
	assert_int_equal(at64(r->sample.stack, 7), 0x7007);
}

static void
check_no_stack(const struct ex_record *r)
{
	assert_int_equal(r->sample.stack_asked, 0);
	assert_int_equal(r->sample.stack_len, 0);
	assert_null(r->sample.stack);
}

static void
put_intr(struct bytes *b)
{
	put64(b, PERF_SAMPLE_REGS_ABI_32);
	put_series(b, 300, 3);
}

static void
check_intr(const struct ex_record *r)
{
	uint64_t v = 0;

	assert_int_equal(r->sample.intr.abi, PERF_SAMPLE_REGS_ABI_32);
	assert_true(ex_regs_get(&r->sample.intr, 8, &v));
	assert_int_equal(v, 301);
	assert_true(ex_regs_get(&r->sample.intr, 63, &v));
	assert_int_equal(v, 302);
}

static void
check_no_intr(const struct ex_record *r)
{
	assert_int_equal(r->sample.intr.abi, 0);
	assert_null(r->sample.intr.values);
}

static void
put_aux(struct bytes *b)
{
	put64(b, 16);
	put(b, "trace trace trac", 16);
}

static void
check_aux(const struct ex_record *r)
{
	assert_int_equal(r->sample.aux_len, 16);
	assert_memory_equal(r->sample.aux, "trace trace trac", 16);
}

static void
check_no_aux(const struct ex_record *r)
{
	assert_int_equal(r->sample.aux_len, 0);
	assert_null(r->sample.aux);
}

static const struct field fields[] = {
	{PERF_SAMPLE_IDENTIFIER, 0, put_id, check_id, NULL},
	NUMBER(PERF_SAMPLE_IP, sample.ip),
	{PERF_SAMPLE_TID, 0, put_tid, check_tid, check_no_tid},
	NUMBER(PERF_SAMPLE_TIME, time),
	NUMBER(PERF_SAMPLE_ADDR, sample.addr),
	{PERF_SAMPLE_ID, 0, put_id, check_id, NULL},
	NUMBER(PERF_SAMPLE_STREAM_ID, stream_id),
	{PERF_SAMPLE_CPU, 0, put_cpu, check_cpu, check_no_cpu},
	NUMBER(PERF_SAMPLE_PERIOD, sample.period),
	{PERF_SAMPLE_READ, 0, put_read, check_read, check_no_read},
	{PERF_SAMPLE_CALLCHAIN, 0, put_callchain, check_callchain,
	    check_no_callchain},
	{PERF_SAMPLE_RAW, 0, put_raw, check_raw, check_no_raw},
	{PERF_SAMPLE_BRANCH_STACK, 0, put_branch, check_branch,
	    check_no_branch},
	{PERF_SAMPLE_REGS_USER, 0, put_user, check_user, check_no_user},
	{PERF_SAMPLE_STACK_USER, 0, put_stack, check_stack, check_no_stack},
	NUMBER(PERF_SAMPLE_WEIGHT, sample.weight),
	NUMBER(PERF_SAMPLE_WEIGHT_STRUCT, sample.weight),
	NUMBER(PERF_SAMPLE_DATA_SRC, sample.data_src),
	NUMBER(PERF_SAMPLE_TRANSACTION, sample.transaction),
	{PERF_SAMPLE_REGS_INTR, 0, put_intr, check_intr, check_no_intr},
	NUMBER(PERF_SAMPLE_PHYS_ADDR, sample.phys_addr),
	NUMBER(PERF_SAMPLE_CGROUP, sample.cgroup),
	NUMBER(PERF_SAMPLE_DATA_PAGE_SIZE, sample.data_page_size),
	NUMBER(PERF_SAMPLE_CODE_PAGE_SIZE, sample.code_page_size),
	{PERF_SAMPLE_AUX, 0, put_aux, check_aux, check_no_aux},
};

static struct perf_event_attr
attr_of(uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_type = sample_type,
		.branch_sample_type = PERF_SAMPLE_BRANCH_ANY |
		    PERF_SAMPLE_BRANCH_HW_INDEX | BRANCH_COUNTERS,
		.sample_regs_user = REGS_USER,
		.sample_regs_intr = REGS_INTR,
	};

	return attr;
}

static void
build_sample(struct bytes *b, uint64_t type)
{
	size_t i;

	begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	for (i = 0; i < COUNT(fields); i++) {
		if (!(type & fields[i].bit))
			continue;
		if (fields[i].put != NULL)
			fields[i].put(b);
		else
			put64(b, number_of(fields[i].bit));
	}
}

static void
check_field(const struct field *field, bool there, const struct ex_record *r)
{
	uint64_t v;

	if (field->number == 0) {
		if (there)
			field->check(r);
		else if (field->check_none != NULL)
			field->check_none(r);
		return;
	}
	/* the two kinds of weight share a member */
	if (!there && (field->bit & PERF_SAMPLE_WEIGHT_TYPE))
		return;
	memcpy(&v, (const char *)r + field->number, sizeof(v));
	assert_int_equal(v, there ? number_of(field->bit) : 0);
}

static void
check_sample(uint64_t type)
{
	struct perf_event_attr attr = attr_of(type);
	struct ex_formats *f = formats_of(&attr);
	struct bytes b;
	struct ex_record r;
	size_t i;

	build_sample(&b, type);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.type, PERF_RECORD_SAMPLE);
	assert_int_equal(r.misc, PERF_RECORD_MISC_USER);
	assert_int_equal(r.attr, 0);
	for (i = 0; i < COUNT(fields); i++)
		check_field(&fields[i], type & fields[i].bit, &r);
	ex_formats_free(f);
}

/* A kernel never writes both kinds of weight. */
static bool
is_possible(uint64_t type)
{
	return (type & PERF_SAMPLE_WEIGHT_TYPE) != PERF_SAMPLE_WEIGHT_TYPE;
}

TEST(sample_fields_alone_and_in_pairs)
{
	size_t i, j;

	assert_int_equal(1ULL << COUNT(fields), PERF_SAMPLE_MAX);
	check_sample(0);
	for (i = 0; i < COUNT(fields); i++)
		for (j = 0; j <= i; j++)
			if (is_possible(fields[i].bit | fields[j].bit))
				check_sample(fields[i].bit | fields[j].bit);
}

TEST(sample_fields_all_and_mixed)
{
	uint64_t all = PERF_SAMPLE_MAX - 1, mix = 1;
	int i;

	check_sample(all & ~(uint64_t)PERF_SAMPLE_WEIGHT);
	check_sample(all & ~(uint64_t)PERF_SAMPLE_WEIGHT_STRUCT);
	for (i = 0; i < 2000; i++) {
		mix = mix * 6364136223846793005ULL + 1442695040888963407ULL;
		if (is_possible((mix >> 32) & all))
			check_sample((mix >> 32) & all);
	}
}

TEST(sample_sizes_must_fit)
{
	uint64_t type = PERF_SAMPLE_MAX - 1 - PERF_SAMPLE_WEIGHT;
	struct perf_event_attr attr = attr_of(type);
	struct ex_formats *f = formats_of(&attr);
	struct bytes b;
	struct ex_record r;
	size_t full;

	build_sample(&b, type);
	full = b.len;
	for (b.len = sizeof(struct perf_event_header); b.len < full; b.len++)
		assert_int_equal(decode(f, &b, &r), -EBADMSG);
	assert_int_equal(decode(f, &b, &r), 1);
	put64(&b, 0);
	assert_int_equal(decode(f, &b, &r), -EBADMSG);
	ex_formats_free(f);
}

/* Numbers inside a sample that claim more than there is. */
TEST(sample_counts_must_fit)
{
	static const uint64_t types[] = {
		PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_RAW, PERF_SAMPLE_AUX,
		PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_STACK_USER,
	};
	static const uint64_t counts[] = {
		65, 1ULL << 29, 1ULL << 60, 1ULL << 61, 1ULL << 63,
		UINT64_MAX - 7, UINT64_MAX,
	};
	struct bytes b;
	struct ex_record r;
	size_t i, j;

	for (i = 0; i < COUNT(types); i++) {
		struct perf_event_attr attr = attr_of(types[i]);
		struct ex_formats *f = formats_of(&attr);

		for (j = 0; j < COUNT(counts); j++) {
			begin(&b, PERF_RECORD_SAMPLE, 0);
			put64(&b, counts[j] | (counts[j] << 32));
			put_series(&b, 0, 8);
			assert_int_equal(decode(f, &b, &r), -EBADMSG);
		}
		ex_formats_free(f);
	}
}

TEST(stack_without_room_has_no_length)
{
	static const struct {
		uint64_t asked, words, copied;
		int result;
	} cases[] = {
		{0, 0, UINT64_MAX, 1},	/* UINT64_MAX: not in the record */
		{0, 0, 0, -EBADMSG},
		{16, 2, 0, 1},
		{16, 2, 16, 1},
		{16, 2, 17, -EBADMSG},
		{16, 2, UINT64_MAX - 1, -EBADMSG},
		{16, 2, UINT64_MAX, -EBADMSG},
	};
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_STACK_USER);
	struct ex_formats *f = formats_of(&attr);
	struct bytes b;
	struct ex_record r;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		begin(&b, PERF_RECORD_SAMPLE, 0);
		put64(&b, cases[i].asked);
		put_series(&b, 7, cases[i].words);
		if (cases[i].copied != UINT64_MAX)
			put64(&b, cases[i].copied);
		assert_int_equal(decode(f, &b, &r), cases[i].result);
		if (cases[i].result != 1)
			continue;
		assert_int_equal(r.sample.stack_asked, cases[i].asked);
		assert_int_equal(r.sample.stack_len,
		    cases[i].asked > 0 ? cases[i].copied : 0);
		if (cases[i].asked == 0)
			assert_null(r.sample.stack);
	}
	ex_formats_free(f);
}

TEST(registers_depend_on_the_abi)
{
	static const struct {
		uint64_t abi, values;
		int result;
	} cases[] = {
		{PERF_SAMPLE_REGS_ABI_NONE, 0, 1},
		{PERF_SAMPLE_REGS_ABI_NONE, 3, -EBADMSG},
		{PERF_SAMPLE_REGS_ABI_32, 3, 1},
		{PERF_SAMPLE_REGS_ABI_64, 3, 1},
		{PERF_SAMPLE_REGS_ABI_64, 2, -EBADMSG},
		{PERF_SAMPLE_REGS_ABI_64, 4, -EBADMSG},
		{3, 3, -EBADMSG},
		{UINT64_MAX, 3, -EBADMSG},
	};
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_REGS_INTR);
	struct ex_formats *f = formats_of(&attr);
	struct bytes b;
	struct ex_record r;
	uint64_t v;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		begin(&b, PERF_RECORD_SAMPLE, 0);
		put64(&b, cases[i].abi);
		put_series(&b, 7, cases[i].values);
		assert_int_equal(decode(f, &b, &r), cases[i].result);
		if (cases[i].result != 1)
			continue;
		assert_int_equal(r.sample.intr.abi, cases[i].abi);
		assert_int_equal(ex_regs_get(&r.sample.intr, 0, &v),
		    cases[i].values > 0);
	}
	ex_formats_free(f);
}

TEST(branch_stack_parts)
{
	uint64_t n, parts;
	struct bytes b;
	struct ex_record r;

	for (parts = 0; parts < 4; parts++) {
		struct perf_event_attr attr = attr_of(PERF_SAMPLE_BRANCH_STACK);
		struct ex_formats *f;

		attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY |
		    (parts & 1 ? PERF_SAMPLE_BRANCH_HW_INDEX : 0) |
		    (parts & 2 ? BRANCH_COUNTERS : 0);
		f = formats_of(&attr);
		for (n = 0; n < 4; n++) {
			begin(&b, PERF_RECORD_SAMPLE, 0);
			put64(&b, n);
			put_series(&b, 9, parts & 1);
			put_series(&b, 50, 3 * n);
			put_series(&b, 70, parts & 2 ? n : 0);
			assert_int_equal(decode(f, &b, &r), 1);
			assert_int_equal(r.sample.branch_len, n);
			assert_int_equal(r.sample.branch_hw_idx,
			    parts & 1 ? 9 : 0);
			assert_int_equal(r.sample.branch != NULL, n > 0);
			assert_int_equal(r.sample.branch_counters != NULL,
			    n > 0 && (parts & 2));
		}
		ex_formats_free(f);
	}
}

/* What read(2) gives, for n members of a group or (0) a single event. */
static void
put_counts(struct bytes *b, uint64_t format, uint64_t n)
{
	uint64_t i;

	if (format & PERF_FORMAT_GROUP)
		put64(b, n);
	else
		put64(b, 1000);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		put64(b, 1);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		put64(b, 2);
	for (i = 0; i < (format & PERF_FORMAT_GROUP ? n : 1); i++) {
		if (format & PERF_FORMAT_GROUP)
			put64(b, 1000 + i);
		if (format & PERF_FORMAT_ID)
			put64(b, 2000 + i);
		if (format & PERF_FORMAT_LOST)
			put64(b, 3000 + i);
	}
}

static void
check_counts(uint64_t format, uint64_t n)
{
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_READ |
	    PERF_SAMPLE_AUX);
	bool any = !(format & PERF_FORMAT_GROUP) || n > 0;
	struct ex_formats *f;
	struct bytes b;
	struct ex_record r;

	attr.read_format = format;
	f = formats_of(&attr);
	begin(&b, PERF_RECORD_SAMPLE, 0);
	put_counts(&b, format, n);
	put_aux(&b);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.sample.value, any ? 1000 : 0);
	check_aux(&r);

	begin(&b, PERF_RECORD_READ, 0);
	put_tid(&b);
	put_counts(&b, format, n);
	assert_int_equal(decode(f, &b, &r), 1);
	check_tid(&r);
	assert_int_equal(r.read.pid, 4335);
	assert_int_equal(r.read.tid, 4340);
	assert_int_equal(r.read.value, any ? 1000 : 0);
	assert_int_equal(r.read.enabled, format & 1 ? 1 : 0);
	assert_int_equal(r.read.running, format & 2 ? 2 : 0);
	assert_int_equal(r.read.id, any && (format & 4) ? 2000 : 0);
	assert_int_equal(r.read.lost, any && (format & 16) ? 3000 : 0);
	b.len--;
	assert_int_equal(decode(f, &b, &r), -EBADMSG);

	if (format & PERF_FORMAT_GROUP) {
		begin(&b, PERF_RECORD_READ, 0);
		put_tid(&b);
		put_counts(&b, format, 3);
		memset(b.b + 16, 0xff, 8);
		assert_int_equal(decode(f, &b, &r), -EBADMSG);
	}
	ex_formats_free(f);
}

TEST(read_formats)
{
	uint64_t format;

	for (format = 0; format < PERF_FORMAT_MAX; format++) {
		check_counts(format, 0);
		check_counts(format, 1);
		check_counts(format, 5);
	}
}

/*
 * Records other than samples: how each body is built and checked.
 */

static const uint8_t build_id[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
	11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

static void
put_mapping(struct bytes *b)
{
	put32(b, 500);
	put32(b, 501);
	put64(b, 0x400000);
	put64(b, 0x2000);
	put64(b, 0x1000);
}

static void
check_mapping(const struct ex_record *r)
{
	assert_int_equal(r->pid, 500);
	assert_int_equal(r->tid, 501);
	assert_int_equal(r->mmap.start, 0x400000);
	assert_int_equal(r->mmap.len, 0x2000);
	assert_int_equal(r->mmap.pgoff, 0x1000);
	assert_string_equal(r->mmap.path, "/usr/bin/victim");
}

static void
put_mmap(struct bytes *b)
{
	put_mapping(b);
	put_string(b, "/usr/bin/victim");
}

static void
check_mmap(const struct ex_record *r)
{
	check_mapping(r);
	assert_int_equal(r->mmap.prot, PROT_EXEC);
	assert_null(r->mmap.build_id);
}

static void
check_mmap_data(const struct ex_record *r)
{
	check_mapping(r);
	assert_int_equal(r->mmap.prot, 0);
}

static void
put_mmap2(struct bytes *b)
{
	put_mapping(b);
	put32(b, 8);
	put32(b, 1);
	put64(b, 1234567);
	put64(b, 89);
	put32(b, PROT_READ | PROT_EXEC);
	put32(b, MAP_PRIVATE);
	put_string(b, "/usr/bin/victim");
}

static void
check_mmap2(const struct ex_record *r)
{
	check_mapping(r);
	assert_int_equal(r->mmap.maj, 8);
	assert_int_equal(r->mmap.min, 1);
	assert_int_equal(r->mmap.ino, 1234567);
	assert_int_equal(r->mmap.ino_generation, 89);
	assert_int_equal(r->mmap.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(r->mmap.flags, MAP_PRIVATE);
	assert_null(r->mmap.build_id);
}

static void
put_mmap2_build_id(struct bytes *b)
{
	put_mapping(b);
	put(b, "\x14\0\0", 4);
	put(b, build_id, sizeof(build_id));
	put32(b, PROT_EXEC);
	put32(b, MAP_SHARED);
	put_string(b, "/usr/bin/victim");
}

static void
check_mmap2_build_id(const struct ex_record *r)
{
	check_mapping(r);
	assert_int_equal(r->mmap.build_id_len, 20);
	assert_memory_equal(r->mmap.build_id, build_id, 20);
	assert_int_equal(r->mmap.prot, PROT_EXEC);
	assert_int_equal(r->mmap.flags, MAP_SHARED);
	assert_int_equal(r->mmap.ino, 0);
}

static void
put_lost(struct bytes *b)
{
	put64(b, 4242);
	put64(b, 585);
}

static void
check_lost(const struct ex_record *r)
{
	assert_int_equal(r->lost.id, 4242);
	assert_int_equal(r->lost.count, 585);
}

static void
put_lost_samples(struct bytes *b)
{
	put64(b, 586);
}

static void
check_lost_samples(const struct ex_record *r)
{
	assert_int_equal(r->lost.id, 0);
	assert_int_equal(r->lost.count, 586);
}

static void
put_comm(struct bytes *b)
{
	put32(b, 500);
	put32(b, 502);
	put_string(b, "fifteen letters");
}

static void
check_comm(const struct ex_record *r)
{
	assert_int_equal(r->comm.pid, 500);
	assert_int_equal(r->comm.tid, 502);
	assert_int_equal(r->tid, 502);
	assert_string_equal(r->comm.name, "fifteen letters");
}

static void
put_task(struct bytes *b)
{
	put32(b, 600);
	put32(b, 500);
	put32(b, 601);
	put32(b, 501);
	put64(b, 0xabcdef);
}

static void
check_task(const struct ex_record *r)
{
	assert_int_equal(r->task.pid, 600);
	assert_int_equal(r->task.ppid, 500);
	assert_int_equal(r->task.tid, 601);
	assert_int_equal(r->task.ptid, 501);
	assert_int_equal(r->task.time, 0xabcdef);
	assert_int_equal(r->pid, 600);
	assert_int_equal(r->tid, 601);
	assert_int_not_equal(r->time, 0);
}

static void
put_throttle(struct bytes *b)
{
	put_series(b, 31, 3);
}

static void
check_throttle(const struct ex_record *r)
{
	assert_int_equal(r->throttle.time, 31);
	assert_int_equal(r->throttle.id, 32);
	assert_int_equal(r->throttle.stream, 33);
	assert_int_not_equal(r->time, 0);
}

static void
put_aux_record(struct bytes *b)
{
	put_series(b, 41, 3);
}

static void
check_aux_record(const struct ex_record *r)
{
	assert_int_equal(r->aux.offset, 41);
	assert_int_equal(r->aux.size, 42);
	assert_int_equal(r->aux.flags, 43);
}

static void
put_pids(struct bytes *b)
{
	put32(b, 700);
	put32(b, 701);
}

static void
check_itrace_start(const struct ex_record *r)
{
	assert_int_equal(r->pid, 700);
	assert_int_equal(r->tid, 701);
}

static void
put_nothing(struct bytes *b)
{
	(void)b;
}

static void
check_switch_in(const struct ex_record *r)
{
	assert_false(r->sw.out);
	assert_int_equal(r->sw.other_pid, -1);
	assert_int_equal(r->sw.other_tid, -1);
}

static void
check_switch_out(const struct ex_record *r)
{
	assert_true(r->sw.out);
	assert_int_equal(r->sw.other_tid, -1);
}

static void
check_switch_wide(const struct ex_record *r)
{
	assert_true(r->sw.out);
	assert_int_equal(r->sw.other_pid, 700);
	assert_int_equal(r->sw.other_tid, 701);
}

static void
put_namespaces(struct bytes *b)
{
	put_pids(b);
	put64(b, NR_NAMESPACES);
	put_series(b, 900, 2ULL * NR_NAMESPACES);
}

static void
check_namespaces(const struct ex_record *r)
{
	assert_int_equal(r->ns.pid, 700);
	assert_int_equal(r->ns.tid, 701);
	assert_int_equal(r->ns.count, NR_NAMESPACES);
	assert_int_equal(at64(r->ns.links, 2 * NR_NAMESPACES - 1), 913);
}

static void
put_ksymbol(struct bytes *b)
{
	put64(b, 0xffffffffc0001000ULL);
	put32(b, 384);
	put16(b, PERF_RECORD_KSYMBOL_TYPE_BPF);
	put16(b, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	put_string(b, "bpf_prog_0123456789abcdef_filter");
}

static void
check_ksymbol(const struct ex_record *r)
{
	assert_int_equal(r->ksymbol.addr, 0xffffffffc0001000ULL);
	assert_int_equal(r->ksymbol.len, 384);
	assert_int_equal(r->ksymbol.ksym_type, PERF_RECORD_KSYMBOL_TYPE_BPF);
	assert_int_equal(r->ksymbol.flags, 1);
	assert_string_equal(r->ksymbol.name,
	    "bpf_prog_0123456789abcdef_filter");
}

static void
put_bpf(struct bytes *b)
{
	put16(b, PERF_BPF_EVENT_PROG_LOAD);
	put16(b, 9);
	put32(b, 17);
	put(b, "tagtagta", 8);
}

static void
check_bpf(const struct ex_record *r)
{
	assert_int_equal(r->bpf.what, PERF_BPF_EVENT_PROG_LOAD);
	assert_int_equal(r->bpf.flags, 9);
	assert_int_equal(r->bpf.prog, 17);
	assert_memory_equal(r->bpf.tag, "tagtagta", 8);
}

static void
put_cgroup(struct bytes *b)
{
	put64(b, 5555);
	put_string(b, "/user.slice");
}

static void
check_cgroup(const struct ex_record *r)
{
	assert_int_equal(r->cgroup.cgroup, 5555);
	assert_string_equal(r->cgroup.path, "/user.slice");
}

static void
put_poke(struct bytes *b)
{
	put64(b, 0xffffffff81000000ULL);
	put16(b, 5);
	put16(b, 7);
	put(b, "old..newcode", 12);
}

static void
check_poke(const struct ex_record *r)
{
	assert_int_equal(r->poke.addr, 0xffffffff81000000ULL);
	assert_int_equal(r->poke.old_len, 5);
	assert_int_equal(r->poke.new_len, 7);
	assert_memory_equal(r->poke.bytes, "old..newcode", 12);
}

static void
put_hw_id(struct bytes *b)
{
	put64(b, 0x1001);
}

static void
check_hw_id(const struct ex_record *r)
{
	assert_int_equal(r->aux.hw_id, 0x1001);
}

static const struct body {
	uint32_t type;
	uint16_t misc;
	void (*put)(struct bytes *);
	void (*check)(const struct ex_record *);
	size_t pad;	/* bytes at its end that mean nothing */
	bool pids;	/* says itself whom it is about */
	bool time;	/* says itself when it was */
} bodies[] = {
	{PERF_RECORD_MMAP, 0, put_mmap, check_mmap, 0, true, false},
	{PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA, put_mmap,
	    check_mmap_data, 0, true, false},
	{PERF_RECORD_LOST, 0, put_lost, check_lost, 0, false, false},
	{PERF_RECORD_COMM, 0, put_comm, check_comm, 0, true, false},
	{PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, put_comm, check_comm, 0,
	    true, false},
	{PERF_RECORD_EXIT, 0, put_task, check_task, 0, true, true},
	{PERF_RECORD_THROTTLE, 0, put_throttle, check_throttle, 0, false, true},
	{PERF_RECORD_UNTHROTTLE, 0, put_throttle, check_throttle, 0, false,
	    true},
	{PERF_RECORD_FORK, 0, put_task, check_task, 0, true, true},
	{PERF_RECORD_MMAP2, 0, put_mmap2, check_mmap2, 0, true, false},
	{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, put_mmap2_build_id,
	    check_mmap2_build_id, 0, true, false},
	{PERF_RECORD_AUX, 0, put_aux_record, check_aux_record, 0, false, false},
	{PERF_RECORD_ITRACE_START, 0, put_pids, check_itrace_start, 0, true,
	    false},
	{PERF_RECORD_LOST_SAMPLES, 0, put_lost_samples, check_lost_samples, 0,
	    false, false},
	{PERF_RECORD_SWITCH, 0, put_nothing, check_switch_in, 0, false, false},
	{PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, put_nothing,
	    check_switch_out, 0, false, false},
	{PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, put_pids,
	    check_switch_wide, 0, false, false},
	{PERF_RECORD_NAMESPACES, 0, put_namespaces, check_namespaces, 0, true,
	    false},
	{PERF_RECORD_KSYMBOL, 0, put_ksymbol, check_ksymbol, 7, false, false},
	{PERF_RECORD_BPF_EVENT, 0, put_bpf, check_bpf, 0, false, false},
	{PERF_RECORD_CGROUP, 0, put_cgroup, check_cgroup, 4, false, false},
	{PERF_RECORD_TEXT_POKE, 0, put_poke, check_poke, 0, false, false},
	{PERF_RECORD_AUX_OUTPUT_HW_ID, 0, put_hw_id, check_hw_id, 0, false,
	    false},
};

/* The trailer's fields, in their order. */
static const struct field trailer[] = {
	{PERF_SAMPLE_TID, 0, put_tid, check_tid, check_no_tid},
	NUMBER(PERF_SAMPLE_TIME, time),
	{PERF_SAMPLE_ID, 0, put_id, check_id, NULL},
	NUMBER(PERF_SAMPLE_STREAM_ID, stream_id),
	{PERF_SAMPLE_CPU, 0, put_cpu, check_cpu, check_no_cpu},
	{PERF_SAMPLE_IDENTIFIER, 0, put_id, check_id, NULL},
};

static void
put_trailer(struct bytes *b, unsigned which)
{
	size_t i;

	for (i = 0; i < COUNT(trailer); i++) {
		if (!(which & (1U << i)))
			continue;
		if (trailer[i].put != NULL)
			trailer[i].put(b);
		else
			put64(b, number_of(trailer[i].bit));
	}
}

static struct perf_event_attr
trailer_attr(unsigned which)
{
	/* samples have more than trailers repeat */
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_IP |
	    PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER);
	size_t i;

	attr.sample_id_all = 1;
	for (i = 0; i < COUNT(trailer); i++)
		if (which & (1U << i))
			attr.sample_type |= trailer[i].bit;
	return attr;
}

static void
check_trailer(const struct body *body, unsigned which,
    const struct ex_record *r)
{
	size_t i;

	for (i = 0; i < COUNT(trailer); i++) {
		bool there = which & (1U << i);

		if (body->pids && trailer[i].bit == PERF_SAMPLE_TID)
			continue;
		if (body->time && trailer[i].bit == PERF_SAMPLE_TIME && !there)
			continue;
		check_field(&trailer[i], there, r);
	}
}

TEST(bodies_with_every_trailer)
{
	struct bytes b;
	struct ex_record r;
	unsigned which;
	size_t i;

	for (which = 0; which < 1U << COUNT(trailer); which++) {
		struct perf_event_attr attr = trailer_attr(which);
		struct ex_formats *f = formats_of(&attr);

		for (i = 0; i < COUNT(bodies); i++) {
			const struct body *body = &bodies[i];

			begin(&b, body->type, body->misc);
			body->put(&b);
			put_trailer(&b, which);
			assert_int_equal(decode(f, &b, &r), 1);
			assert_int_equal(r.type, body->type);
			assert_int_equal(r.misc, body->misc);
			assert_int_equal(r.attr, 0);
			body->check(&r);
			check_trailer(body, which, &r);
		}
		ex_formats_free(f);
	}
}

TEST(bodies_must_fit)
{
	/* what samples have tells nothing of others, without sample_id_all */
	struct perf_event_attr plain = attr_of(PERF_SAMPLE_IP |
	    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER);
	struct ex_formats *f = formats_of(&plain);
	struct bytes b;
	struct ex_record r;
	size_t i, full;

	for (i = 0; i < COUNT(bodies); i++) {
		begin(&b, bodies[i].type, bodies[i].misc);
		bodies[i].put(&b);
		full = b.len;
		/* a newer kernel may have put something after it */
		put64(&b, 1);
		assert_int_equal(decode(f, &b, &r), 1);
		bodies[i].check(&r);
		full -= bodies[i].pad;
		for (b.len = 8; b.len < full; b.len++)
			assert_int_equal(decode(f, &b, &r), -EBADMSG);
	}
	ex_formats_free(f);
}

TEST(trailers_must_fit)
{
	/* the id last, and the id before others */
	static const unsigned trailers[] = {0x3f, 0x1f};
	struct bytes b;
	struct ex_record r;
	size_t i, full;

	for (i = 0; i < COUNT(trailers); i++) {
		struct perf_event_attr attr = trailer_attr(trailers[i]);
		struct ex_formats *f = formats_of(&attr);

		begin(&b, PERF_RECORD_SWITCH, 0);
		put_trailer(&b, trailers[i]);
		full = b.len;
		assert_int_equal(decode(f, &b, &r), 1);
		for (b.len = 8; b.len < full; b.len++) {
			/* keep the last u64 a valid id */
			if (b.len >= 16)
				memcpy(b.b + b.len - 8, &(uint64_t){ID}, 8);
			assert_int_equal(decode(f, &b, &r), -EBADMSG);
		}
		ex_formats_free(f);
	}
}

/* One number in a body made too large for it. */
TEST(body_counts_must_fit)
{
	static const struct {
		uint32_t type;
		uint16_t misc;
		void (*put)(struct bytes *);
		size_t at, len;		/* which bytes to set to 0xff */
	} cases[] = {
		{PERF_RECORD_NAMESPACES, 0, put_namespaces, 16, 8},
		{PERF_RECORD_NAMESPACES, 0, put_namespaces, 23, 1},
		{PERF_RECORD_NAMESPACES, 0, put_namespaces, 16, 1},
		{PERF_RECORD_TEXT_POKE, 0, put_poke, 16, 2},
		{PERF_RECORD_TEXT_POKE, 0, put_poke, 18, 2},
		{PERF_RECORD_TEXT_POKE, 0, put_poke, 16, 4},
		{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID,
		    put_mmap2_build_id, 40, 1},
		/* strings without an end */
		{PERF_RECORD_COMM, 0, put_comm, 31, 1},
		{PERF_RECORD_MMAP, 0, put_mmap, 55, 1},
		{PERF_RECORD_MMAP2, 0, put_mmap2, 87, 1},
		{PERF_RECORD_KSYMBOL, 0, put_ksymbol, 56, 8},
		{PERF_RECORD_CGROUP, 0, put_cgroup, 27, 5},
	};
	struct perf_event_attr attr = trailer_attr(0x20);
	struct ex_formats *f = formats_of(&attr);
	struct bytes b;
	struct ex_record r;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		begin(&b, cases[i].type, cases[i].misc);
		cases[i].put(&b);
		assert_true(cases[i].at + cases[i].len <= b.len);
		put_id(&b);
		assert_int_equal(decode(f, &b, &r), 1);
		memset(b.b + cases[i].at, 0xff, cases[i].len);
		assert_int_equal(decode(f, &b, &r), -EBADMSG);
	}
	ex_formats_free(f);
}

TEST(short_build_ids)
{
	struct ex_formats *f = ex_formats_new();
	struct bytes b;
	struct ex_record r;
	uint8_t len;

	for (len = 0; len <= 20; len++) {
		begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
		put_mmap2_build_id(&b);
		b.b[40] = len;
		assert_int_equal(decode(f, &b, &r), 1);
		assert_int_equal(r.mmap.build_id_len, len);
		assert_int_equal(r.mmap.build_id != NULL, len > 0);
	}
	ex_formats_free(f);
}

TEST(unknown_types_are_told_apart)
{
	static const uint32_t types[] = {0, PERF_RECORD_AUX_OUTPUT_HW_ID + 1,
		63, 64, 68, 81, 1000, INT32_MAX, UINT32_MAX};
	struct perf_event_attr attr = trailer_attr(0x3f);
	struct ex_formats *f = formats_of(&attr);
	struct bytes b;
	struct ex_record r;
	size_t i;

	for (i = 0; i < COUNT(types); i++) {
		begin(&b, types[i], 5);
		put64(&b, 1);
		assert_int_equal(decode(f, &b, &r), 0);
		assert_int_equal(r.type, types[i]);
		assert_int_equal(r.misc, 5);
		assert_int_equal(r.size, 16);
		assert_non_null(r.bytes);
	}
	ex_formats_free(f);
}

TEST(headers_must_fit)
{
	static const struct {
		uint16_t size;
		size_t len;
	} cases[] = {
		{8, 0}, {8, 1}, {8, 7}, {0, 8}, {7, 8}, {9, 8}, {16, 15},
		{UINT16_MAX, 16},
	};
	struct ex_formats *f = ex_formats_new();
	struct perf_event_header header = {.type = PERF_RECORD_SWITCH};
	struct ex_record r;
	uint8_t block[16] = {0};
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		header.size = cases[i].size;
		memcpy(block, &header, sizeof(header));
		assert_int_equal(ex_record_decode(f, block, cases[i].len, &r),
		    -EBADMSG);
	}
	ex_formats_free(f);
}

/*
 * The formats.
 */

TEST(ids_lead_to_their_event)
{
	struct perf_event_attr a = attr_of(PERF_SAMPLE_IDENTIFIER);
	struct ex_formats *f = ex_formats_new();
	uint64_t id, ids[3];

	assert_int_equal(ex_formats_find(f, 1), -1);
	assert_int_equal(ex_formats_add(f, &a, NULL, 0), 0);
	assert_int_equal(ex_formats_add(f, &a, NULL, 0), 1);
	for (id = 1; id <= 20000; id += 2) {
		ids[0] = id;
		ids[1] = (id + 1) << 40;
		ids[2] = 0;
		assert_int_equal(ex_formats_ids(f, 0, &ids[0], 1), 0);
		assert_int_equal(ex_formats_ids(f, 1, &ids[1], 2), 0);
	}
	for (id = 1; id <= 20000; id += 2) {
		assert_int_equal(ex_formats_find(f, id), 0);
		assert_int_equal(ex_formats_find(f, id + 1), -1);
		assert_int_equal(ex_formats_find(f, (id + 1) << 40), 1);
	}
	assert_int_equal(ex_formats_find(f, 0), -1);
	assert_int_equal(ex_formats_ids(f, 0, ids, 1), 0);
	assert_int_equal(ex_formats_ids(f, 1, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_ids(f, 2, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_ids(f, -1, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_add(f, &a, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_count(f), 2);
	assert_non_null(ex_formats_attr(f, 1));
	assert_null(ex_formats_attr(f, 2));
	assert_null(ex_formats_attr(f, -1));
	ex_formats_free(f);
	ex_formats_free(NULL);
}

TEST(samples_of_several_events)
{
	const uint64_t ids[] = {5, 6};
	struct perf_event_attr a = attr_of(PERF_SAMPLE_IDENTIFIER |
	    PERF_SAMPLE_IP);
	struct perf_event_attr other = attr_of(PERF_SAMPLE_IDENTIFIER |
	    PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD);
	struct ex_formats *f = ex_formats_new();
	struct bytes b;
	struct ex_record r;

	a.sample_id_all = other.sample_id_all = 1;
	assert_int_equal(ex_formats_add(f, &a, &ids[0], 1), 0);
	assert_int_equal(ex_formats_add(f, &other, &ids[1], 1), 1);

	begin(&b, PERF_RECORD_SAMPLE, 0);
	put_series(&b, 5, 2);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.attr, 0);
	assert_int_equal(r.sample.ip, 6);

	begin(&b, PERF_RECORD_SAMPLE, 0);
	put_series(&b, 6, 3);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.attr, 1);
	assert_int_equal(r.sample.addr, 7);
	assert_int_equal(r.sample.period, 8);

	begin(&b, PERF_RECORD_SAMPLE, 0);
	put_series(&b, 7, 3);
	assert_int_equal(decode(f, &b, &r), -ENOENT);
	assert_int_equal(r.size, b.len);
	b.len = 12;
	assert_int_equal(decode(f, &b, &r), -EBADMSG);
	ex_formats_free(f);
}

/* Records that perf makes up carry zeros in their trailer. */
TEST(others_of_several_events)
{
	struct perf_event_attr a = trailer_attr(0x33);
	struct perf_event_attr other = trailer_attr(0x20);
	struct ex_formats *f = ex_formats_new();
	struct bytes b;
	struct ex_record r;

	assert_int_equal(ex_formats_add(f, &a, &(uint64_t){5}, 1), 0);
	assert_int_equal(ex_formats_add(f, &other, &(uint64_t){6}, 1), 1);

	begin(&b, PERF_RECORD_SWITCH, 0);
	put64(&b, 6);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.attr, 1);
	assert_int_equal(r.tid, -1);

	begin(&b, PERF_RECORD_CGROUP, 0);
	put_cgroup(&b);
	put_series(&b, 0, 1);	/* pid, tid */
	put64(&b, 555);		/* time */
	put_series(&b, 0, 1);	/* cpu */
	put64(&b, 0);
	assert_int_equal(decode(f, &b, &r), 1);
	check_cgroup(&r);
	check_no_tid(&r);
	check_no_cpu(&r);
	assert_int_equal(r.time, 555);
	assert_int_equal(r.attr, -1);

	begin(&b, PERF_RECORD_CGROUP, 0);
	put_cgroup(&b);
	put_series(&b, 4, 4);
	assert_int_equal(decode(f, &b, &r), -ENOENT);
	ex_formats_free(f);
}

TEST(events_that_cannot_be_told_apart)
{
	static const struct {
		uint64_t a, b;
		bool a_all, b_all;
		int result;
	} cases[] = {
		{PERF_SAMPLE_IP, PERF_SAMPLE_IP, false, false, 1},
		{PERF_SAMPLE_IP, PERF_SAMPLE_IP, true, true, 1},
		{PERF_SAMPLE_IP, PERF_SAMPLE_IP, false, true, -EINVAL},
		{PERF_SAMPLE_IP, PERF_SAMPLE_ADDR, true, true, -EINVAL},
		{PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_ADDR, true, true,
		    -EINVAL},
		{PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_ID, true, true, 1},
		{PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_ID | PERF_SAMPLE_IP, true,
		    true, -EINVAL},
		{PERF_SAMPLE_ID | PERF_SAMPLE_IP,
		    PERF_SAMPLE_ID | PERF_SAMPLE_ADDR, true, true, 1},
		{PERF_SAMPLE_ID, PERF_SAMPLE_ID | PERF_SAMPLE_CPU, true, true,
		    -EINVAL},
		{PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IDENTIFIER |
		    PERF_SAMPLE_CPU, true, true, 1},
		{PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IDENTIFIER |
		    PERF_SAMPLE_CPU, true, false, -EINVAL},
	};
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		struct perf_event_attr a = attr_of(cases[i].a);
		struct perf_event_attr b = attr_of(cases[i].b);
		struct ex_formats *f = ex_formats_new();

		a.sample_id_all = cases[i].a_all;
		b.sample_id_all = cases[i].b_all;
		assert_int_equal(ex_formats_add(f, &a, NULL, 0), 0);
		assert_int_equal(ex_formats_add(f, &b, NULL, 0),
		    cases[i].result);
		/* the third must agree with all, not with the first alone */
		assert_int_equal(ex_formats_add(f, &a, NULL, 0),
		    cases[i].result == 1 ? 2 : 1);
		ex_formats_free(f);
	}
}

/* A look-up of what is not there ends, however many ids there are. */
TEST(any_number_of_ids)
{
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_IDENTIFIER);
	uint64_t ids[64];
	size_t i, n;

	for (i = 0; i < COUNT(ids); i++)
		ids[i] = i + 1;
	for (n = 0; n <= COUNT(ids); n++) {
		struct ex_formats *f = ex_formats_new();

		assert_int_equal(ex_formats_add(f, &attr, ids, n), 0);
		assert_int_equal(ex_formats_find(f, n), n > 0 ? 0 : -1);
		assert_int_equal(ex_formats_find(f, n + 1), -1);
		ex_formats_free(f);
	}
}

/* Each alone makes the layout of samples or of READ another one. */
TEST(parts_of_a_layout)
{
	struct perf_event_attr first = attr_of(PERF_SAMPLE_REGS_USER);
	struct perf_event_attr other[5] = {first, first, first, first, first};
	size_t i;

	other[0].sample_regs_user ^= 1;
	other[1].sample_regs_intr ^= 1;
	other[2].read_format ^= PERF_FORMAT_LOST;
	other[3].branch_sample_type ^= PERF_SAMPLE_BRANCH_HW_INDEX;
	other[4].branch_sample_type ^= BRANCH_COUNTERS;
	for (i = 0; i < COUNT(other); i++) {
		struct ex_formats *f = ex_formats_new();

		assert_int_equal(ex_formats_add(f, &first, NULL, 0), 0);
		assert_int_equal(ex_formats_add(f, &other[i], NULL, 0),
		    -EINVAL);
		ex_formats_free(f);
	}
}

/* One event: any id is its own as long as it has named none. */
TEST(ids_of_a_single_event)
{
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_IDENTIFIER);
	struct ex_formats *f = ex_formats_new();
	struct bytes b;
	struct ex_record r;

	begin(&b, PERF_RECORD_SAMPLE, 0);
	put64(&b, 9);
	assert_int_equal(ex_formats_add(f, &attr, &(uint64_t){0}, 1), 0);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.attr, 0);
	assert_int_equal(r.id, 9);
	assert_int_equal(ex_formats_ids(f, 0, &(uint64_t){8}, 1), 0);
	assert_int_equal(decode(f, &b, &r), -ENOENT);
	assert_int_equal(ex_formats_ids(f, 0, &(uint64_t){9}, 1), 0);
	assert_int_equal(decode(f, &b, &r), 1);
	ex_formats_free(f);
}

TEST(records_of_a_nameless_event)
{
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_IP);
	struct ex_formats *f = ex_formats_new();
	struct bytes b;
	struct ex_record r;

	begin(&b, PERF_RECORD_SAMPLE, 0);
	put64(&b, 0x401327);
	assert_int_equal(decode(f, &b, &r), -ENOENT);
	/* one event without an id: all is its own */
	assert_int_equal(ex_formats_add(f, &attr, NULL, 0), 0);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.attr, 0);
	/* ids that its records do not carry change nothing */
	assert_int_equal(ex_formats_ids(f, 0, &(uint64_t){9}, 1), 0);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.attr, 0);
	/* two alike: readable, but whose? */
	assert_int_equal(ex_formats_add(f, &attr, NULL, 0), 1);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.attr, -1);
	assert_int_equal(r.sample.ip, 0x401327);
	ex_formats_free(f);
}

TEST(foreign_fields_are_refused)
{
	struct perf_event_attr attr[3] = {
		attr_of((uint64_t)PERF_SAMPLE_MAX),
		attr_of(PERF_SAMPLE_BRANCH_STACK),
		attr_of(PERF_SAMPLE_READ),
	};
	struct ex_formats *f = ex_formats_new();
	size_t i;

	attr[1].branch_sample_type = BRANCH_COUNTERS << 1;
	attr[2].read_format = PERF_FORMAT_MAX;
	for (i = 0; i < COUNT(attr); i++)
		assert_int_equal(ex_formats_add(f, &attr[i], NULL, 0),
		    -ENOTSUP);
	assert_int_equal(ex_formats_count(f), 0);
	ex_formats_free(f);
}

RUN_TESTS()
