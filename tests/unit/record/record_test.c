/*
 * record: every type and field of perf records, built byte by byte from the
 * documented layouts, and everything that can be wrong with them.
 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bytes.h"
#include "record/record.h"

#define ID 77
#define BRANCH_COUNTERS (1ULL << 19)
#define REGS_USER 0xff0fffULL
#define REGS_INTR 0x8000000000000101ULL

/* count u64s: first, first + 1, ... */
static void
put_series(struct bytes *b, uint64_t first, uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++)
		put64(b, first + i);
}

static void
begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	b->len = 0;
	put32(b, type);
	put32(b, misc);		/* and the size, which decode() gives it */
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

TEST_KEEPS(kept, struct ex_formats *, ex_formats_free)

static struct ex_formats *
formats_of(const struct perf_event_attr *attr)
{
	const uint64_t id = ID;
	struct ex_formats *f = kept(ex_formats_new());

	assert_non_null(f);
	assert_int_equal(ex_formats_add(f, attr, &id, 1), 0);
	return f;
}

/*
 * What records are made of: parts, in their order, and what each is decoded to.
 */
struct part {
	uint8_t size;		/* in the record; 0: none there */
	uint8_t as;		/* and of the member; 0: it has none */
	size_t at;		/* where the member is in struct ex_record */
	uint64_t value;
	uint64_t none;		/* the member's value without the part */
	const char *bytes;	/* else: so many bytes, */
	const char *text;	/* or a string, */
	uint64_t count;		/* or so many u64: value, value + 1, ... */
	bool end;
};

#define MEMBER(name) .at = offsetof(struct ex_record, name),		\
	.as = sizeof(((struct ex_record *)0)->name)
#define U64(v, ...) {.size = 8, .value = (v), __VA_ARGS__}
#define U32(v, ...) {.size = 4, .value = (v), __VA_ARGS__}
#define U16(v, ...) {.size = 2, .value = (v), __VA_ARGS__}
#define SERIES(first, n, ...) {.value = (first), .count = (n), __VA_ARGS__}
#define BYTES(s, n, ...) {.bytes = (s), .size = (n), __VA_ARGS__}
#define TEXT(s, ...) {.text = (s), __VA_ARGS__}
#define IS(v, ...) {.value = (v), __VA_ARGS__}	/* follows from others */
#define END {.end = true}

static void
put_parts(struct bytes *b, const struct part *part)
{
	for (; !part->end; part++) {
		if (part->text != NULL)
			put_string(b, part->text);
		else if (part->bytes != NULL)
			put(b, part->bytes, part->size);
		else if (part->count > 0)
			put_series(b, part->value, part->count);
		else
			put(b, &part->value, part->size);
	}
}

/* A member's value, and as what it is wanted: of its size. */
static void
expect_member(const struct part *part, const struct ex_record *r,
    uint64_t wanted)
{
	uint64_t value = 0, cut = 0;

	memcpy(&value, (const char *)r + part->at, part->as);
	memcpy(&cut, &wanted, part->as);
	assert_int_equal(value, cut);
}

static void
expect_part(const struct part *part, const struct ex_record *r)
{
	const void *pointer;

	if (part->text == NULL && part->bytes == NULL && part->count == 0) {
		expect_member(part, r, part->value);
		return;
	}
	memcpy(&pointer, (const char *)r + part->at, sizeof(pointer));
	assert_non_null(pointer);
	if (part->text != NULL)
		assert_string_equal(pointer, part->text);
	else if (part->bytes != NULL)
		assert_memory_equal(pointer, part->bytes, part->size);
	for (uint64_t i = 0; i < part->count; i++)
		assert_int_equal(at64(pointer, i), part->value + i);
}

static void
expect_parts(const struct part *part, const struct ex_record *r)
{
	for (; !part->end; part++)
		if (part->as > 0)
			expect_part(part, r);
}

/* As it is when the parts are not in the record. */
static void
expect_no_parts(const struct part *part, const struct ex_record *r)
{
	for (; !part->end; part++)
		if (part->as > 0)
			expect_member(part, r, part->none);
}

/*
 * Samples: the fields in the order in which the kernel writes them.
 */
struct field {
	uint64_t bit;		/* in sample_type */
	const struct part *parts;
	bool shared;		/* its members are also another field's */
};

static const struct part id[] = {U64(ID, MEMBER(id)), END};
static const struct part tid[] = {
	U32(4335, MEMBER(pid), .none = UINT64_MAX),
	U32(4340, MEMBER(tid), .none = UINT64_MAX), END,
};
static const struct part cpu[] = {
	U32(3, MEMBER(cpu), .none = UINT64_MAX),
	U32(0xdeadbeef),	/* reserved */
	END,
};
static const struct part counter[] = {U64(4711, MEMBER(sample.value)), END};
static const struct part callchain[] = {
	U64(5, MEMBER(sample.callchain_len)),
	SERIES(PERF_CONTEXT_USER, 1, MEMBER(sample.callchain)),
	SERIES(0x400000, 4), END,
};
static const struct part raw[] = {
	U32(12, MEMBER(sample.raw_len)),
	BYTES("raw data\0\0\0", 12, MEMBER(sample.raw)), END,
};
static const struct part branch[] = {
	U64(2, MEMBER(sample.branch_len)),
	U64(99, MEMBER(sample.branch_hw_idx)),
	SERIES(1000, 6, MEMBER(sample.branch)),
	SERIES(2000, 2, MEMBER(sample.branch_counters)), END,
};
static const struct part user[] = {
	U64(PERF_SAMPLE_REGS_ABI_64, MEMBER(sample.user.abi)),
	SERIES(100, 20, MEMBER(sample.user.values)), END,
};
static const struct part stack[] = {
	U64(64, MEMBER(sample.stack_asked)),
	SERIES(0x7000, 8, MEMBER(sample.stack)),
	U64(40, MEMBER(sample.stack_len)), END,
};
static const struct part intr[] = {
	U64(PERF_SAMPLE_REGS_ABI_32, MEMBER(sample.intr.abi)),
	SERIES(300, 3, MEMBER(sample.intr.values)), END,
};
static const struct part aux[] = {
	U64(16, MEMBER(sample.aux_len)),
	BYTES("trace trace trac", 16, MEMBER(sample.aux)), END,
};

/* A field that is one number, another for each. */
#define NUMBER(flag, ...) {.bit = (flag), .parts = (const struct part[]){ \
	U64(0x0102030405060708ULL * (uint64_t)__builtin_ctzll(flag) + 1, \
	    MEMBER(__VA_ARGS__)), END}}
#define WEIGHT(flag) {.bit = (flag), .shared = true,			\
	.parts = (const struct part[]){U64(4712, MEMBER(sample.weight)), END}}

static const struct field fields[] = {
	{PERF_SAMPLE_IDENTIFIER, id, .shared = true},
	NUMBER(PERF_SAMPLE_IP, sample.ip),
	{PERF_SAMPLE_TID, tid},
	NUMBER(PERF_SAMPLE_TIME, time),
	NUMBER(PERF_SAMPLE_ADDR, sample.addr),
	{PERF_SAMPLE_ID, id, .shared = true},
	NUMBER(PERF_SAMPLE_STREAM_ID, stream_id),
	{PERF_SAMPLE_CPU, cpu},
	NUMBER(PERF_SAMPLE_PERIOD, sample.period),
	{PERF_SAMPLE_READ, counter},
	{PERF_SAMPLE_CALLCHAIN, callchain},
	{PERF_SAMPLE_RAW, raw},
	{PERF_SAMPLE_BRANCH_STACK, branch},
	{PERF_SAMPLE_REGS_USER, user},
	{PERF_SAMPLE_STACK_USER, stack},
	WEIGHT(PERF_SAMPLE_WEIGHT),
	WEIGHT(PERF_SAMPLE_WEIGHT_STRUCT),
	NUMBER(PERF_SAMPLE_DATA_SRC, sample.data_src),
	NUMBER(PERF_SAMPLE_TRANSACTION, sample.transaction),
	{PERF_SAMPLE_REGS_INTR, intr},
	NUMBER(PERF_SAMPLE_PHYS_ADDR, sample.phys_addr),
	NUMBER(PERF_SAMPLE_CGROUP, sample.cgroup),
	NUMBER(PERF_SAMPLE_DATA_PAGE_SIZE, sample.data_page_size),
	NUMBER(PERF_SAMPLE_CODE_PAGE_SIZE, sample.code_page_size),
	{PERF_SAMPLE_AUX, aux},
};

static void
expect_field(const struct field *field, bool there, const struct ex_record *r)
{
	if (there)
		expect_parts(field->parts, r);
	else if (!field->shared)
		expect_no_parts(field->parts, r);
}

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
	begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	for (size_t i = 0; i < COUNT(fields); i++)
		if (type & fields[i].bit)
			put_parts(b, fields[i].parts);
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
		expect_field(&fields[i], type & fields[i].bit, &r);
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

TEST(registers_and_callers_are_found)
{
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_REGS_USER |
	    PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_CALLCHAIN);
	struct ex_formats *f = formats_of(&attr);
	const struct {
		bool of_user;
		unsigned reg;
		uint64_t value;		/* 0: there is none */
	} rows[] = {
		{true, 0, 100}, {true, 23, 119}, {true, 12, 0}, {true, 64, 0},
		{true, UINT32_MAX, 0}, {false, 8, 301}, {false, 63, 302},
	};
	struct ex_perf_regs absent = {0};
	struct bytes b;
	struct ex_record r;
	uint64_t v;

	assert_int_equal(__builtin_popcountll(REGS_USER), 20);
	build_sample(&b, attr.sample_type);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(ex_callchain_at(&r.sample, 0), PERF_CONTEXT_USER);
	assert_int_equal(ex_callchain_at(&r.sample, 4), 0x400003);
	assert_int_equal(r.sample.user.mask, REGS_USER);
	for (size_t i = 0; i < COUNT(rows); i++) {
		v = 0;
		assert_int_equal(ex_regs_get(rows[i].of_user ? &r.sample.user :
		    &r.sample.intr, rows[i].reg, &v), rows[i].value != 0);
		assert_int_equal(v, rows[i].value);
	}
	assert_false(ex_regs_get(&absent, 0, &v));
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
	put_parts(&b, aux);
	assert_int_equal(decode(f, &b, &r), 1);
	assert_int_equal(r.sample.value, any ? 1000 : 0);
	expect_parts(aux, &r);

	begin(&b, PERF_RECORD_READ, 0);
	put_parts(&b, tid);
	put_counts(&b, format, n);
	assert_int_equal(decode(f, &b, &r), 1);
	expect_parts(tid, &r);
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
		put_parts(&b, tid);
		put_counts(&b, format, 3);
		memset(b.b + 16, 0xff, 8);
		assert_int_equal(decode(f, &b, &r), -EBADMSG);
	}
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
 * Records other than samples.
 */

static const struct part mmap_parts[] = {
	U32(500, MEMBER(pid)), U32(501, MEMBER(tid)),
	U64(0x400000, MEMBER(mmap.start)), U64(0x2000, MEMBER(mmap.len)),
	U64(0x1000, MEMBER(mmap.pgoff)),
	TEXT("/usr/bin/victim", MEMBER(mmap.path)),
	IS(PROT_EXEC, MEMBER(mmap.prot)), IS(0, MEMBER(mmap.build_id)), END,
};
static const struct part mmap_data[] = {
	U32(500, MEMBER(pid)), U32(501, MEMBER(tid)),
	U64(0x400000, MEMBER(mmap.start)), U64(0x2000, MEMBER(mmap.len)),
	U64(0x1000, MEMBER(mmap.pgoff)),
	TEXT("/usr/bin/victim", MEMBER(mmap.path)),
	IS(0, MEMBER(mmap.prot)), END,
};
static const struct part mmap2[] = {
	U32(500, MEMBER(pid)), U32(501, MEMBER(tid)),
	U64(0x400000, MEMBER(mmap.start)), U64(0x2000, MEMBER(mmap.len)),
	U64(0x1000, MEMBER(mmap.pgoff)),
	U32(8, MEMBER(mmap.maj)), U32(1, MEMBER(mmap.min)),
	U64(1234567, MEMBER(mmap.ino)), U64(89, MEMBER(mmap.ino_generation)),
	U32(PROT_READ | PROT_EXEC, MEMBER(mmap.prot)),
	U32(MAP_PRIVATE, MEMBER(mmap.flags)),
	TEXT("/usr/bin/victim", MEMBER(mmap.path)),
	IS(0, MEMBER(mmap.build_id)), END,
};
static const struct part mmap2_build_id[] = {
	U32(500, MEMBER(pid)), U32(501, MEMBER(tid)),
	U64(0x400000, MEMBER(mmap.start)), U64(0x2000, MEMBER(mmap.len)),
	U64(0x1000, MEMBER(mmap.pgoff)),
	U32(20, MEMBER(mmap.build_id_len)),
	BYTES("\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24", 20,
	    MEMBER(mmap.build_id)),
	U32(PROT_EXEC, MEMBER(mmap.prot)), U32(MAP_SHARED, MEMBER(mmap.flags)),
	TEXT("/usr/bin/victim", MEMBER(mmap.path)),
	IS(0, MEMBER(mmap.ino)), END,
};
static const struct part lost[] = {
	U64(4242, MEMBER(lost.id)), U64(585, MEMBER(lost.count)), END,
};
static const struct part lost_samples[] = {
	U64(586, MEMBER(lost.count)), IS(0, MEMBER(lost.id)), END,
};
static const struct part comm[] = {
	U32(500, MEMBER(comm.pid)), U32(502, MEMBER(comm.tid)),
	TEXT("fifteen letters", MEMBER(comm.name)),
	IS(502, MEMBER(tid)), END,
};
static const struct part task[] = {
	U32(600, MEMBER(task.pid)), U32(500, MEMBER(task.ppid)),
	U32(601, MEMBER(task.tid)), U32(501, MEMBER(task.ptid)),
	U64(0xabcdef, MEMBER(task.time)),
	IS(600, MEMBER(pid)), IS(601, MEMBER(tid)), END,
};
static const struct part throttle[] = {
	U64(31, MEMBER(throttle.time)), U64(32, MEMBER(throttle.id)),
	U64(33, MEMBER(throttle.stream)), END,
};
static const struct part aux_record[] = {
	U64(41, MEMBER(aux.offset)), U64(42, MEMBER(aux.size)),
	U64(43, MEMBER(aux.flags)), END,
};
static const struct part itrace_start[] = {
	U32(700, MEMBER(pid)), U32(701, MEMBER(tid)), END,
};
static const struct part switch_in[] = {
	IS(false, MEMBER(sw.out)), IS(UINT64_MAX, MEMBER(sw.other_pid)),
	IS(UINT64_MAX, MEMBER(sw.other_tid)), END,
};
static const struct part switch_out[] = {
	IS(true, MEMBER(sw.out)), IS(UINT64_MAX, MEMBER(sw.other_tid)), END,
};
static const struct part switch_wide[] = {
	U32(700, MEMBER(sw.other_pid)), U32(701, MEMBER(sw.other_tid)),
	IS(true, MEMBER(sw.out)), END,
};
static const struct part namespaces[] = {
	U32(700, MEMBER(ns.pid)), U32(701, MEMBER(ns.tid)),
	U64(NR_NAMESPACES, MEMBER(ns.count)),
	SERIES(900, 2ULL * NR_NAMESPACES, MEMBER(ns.links)), END,
};
static const struct part ksymbol[] = {
	U64(0xffffffffc0001000ULL, MEMBER(ksymbol.addr)),
	U32(384, MEMBER(ksymbol.len)),
	U16(PERF_RECORD_KSYMBOL_TYPE_BPF, MEMBER(ksymbol.ksym_type)),
	U16(PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER, MEMBER(ksymbol.flags)),
	TEXT("bpf_prog_0123456789abcdef_filter", MEMBER(ksymbol.name)), END,
};
static const struct part bpf[] = {
	U16(PERF_BPF_EVENT_PROG_LOAD, MEMBER(bpf.what)),
	U16(9, MEMBER(bpf.flags)), U32(17, MEMBER(bpf.prog)),
	BYTES("tagtagta", 8, MEMBER(bpf.tag)), END,
};
static const struct part cgroup[] = {
	U64(5555, MEMBER(cgroup.cgroup)),
	TEXT("/user.slice", MEMBER(cgroup.path)), END,
};
static const struct part poke[] = {
	U64(0xffffffff81000000ULL, MEMBER(poke.addr)),
	U16(5, MEMBER(poke.old_len)), U16(7, MEMBER(poke.new_len)),
	BYTES("old..newcode", 12, MEMBER(poke.bytes)), END,
};
static const struct part hw_id[] = {U64(0x1001, MEMBER(aux.hw_id)), END};

static const struct body {
	uint32_t type;
	uint16_t misc;
	const struct part *parts;
	size_t pad;	/* bytes at its end that mean nothing */
	bool pids;	/* says itself whom it is about */
	bool time;	/* says itself when it was */
} bodies[] = {
	{PERF_RECORD_MMAP, 0, mmap_parts, .pids = true},
	{PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA, mmap_data, .pids = true},
	{PERF_RECORD_LOST, 0, lost},
	{PERF_RECORD_COMM, 0, comm, .pids = true},
	{PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, comm, .pids = true},
	{PERF_RECORD_EXIT, 0, task, .pids = true, .time = true},
	{PERF_RECORD_THROTTLE, 0, throttle, .time = true},
	{PERF_RECORD_UNTHROTTLE, 0, throttle, .time = true},
	{PERF_RECORD_FORK, 0, task, .pids = true, .time = true},
	{PERF_RECORD_MMAP2, 0, mmap2, .pids = true},
	{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, mmap2_build_id,
	    .pids = true},
	{PERF_RECORD_AUX, 0, aux_record},
	{PERF_RECORD_ITRACE_START, 0, itrace_start, .pids = true},
	{PERF_RECORD_LOST_SAMPLES, 0, lost_samples},
	{PERF_RECORD_SWITCH, 0, switch_in},
	{PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, switch_out},
	{PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, switch_wide},
	{PERF_RECORD_NAMESPACES, 0, namespaces, .pids = true},
	{PERF_RECORD_KSYMBOL, 0, ksymbol, .pad = 7},
	{PERF_RECORD_BPF_EVENT, 0, bpf},
	{PERF_RECORD_CGROUP, 0, cgroup, .pad = 4},
	{PERF_RECORD_TEXT_POKE, 0, poke},
	{PERF_RECORD_AUX_OUTPUT_HW_ID, 0, hw_id},
};

/* The trailer's fields, in their order. */
static const struct field trailer[] = {
	{PERF_SAMPLE_TID, tid},
	NUMBER(PERF_SAMPLE_TIME, time),
	{PERF_SAMPLE_ID, id, .shared = true},
	NUMBER(PERF_SAMPLE_STREAM_ID, stream_id),
	{PERF_SAMPLE_CPU, cpu},
	{PERF_SAMPLE_IDENTIFIER, id, .shared = true},
};

static void
put_trailer(struct bytes *b, unsigned which)
{
	for (size_t i = 0; i < COUNT(trailer); i++)
		if (which & (1U << i))
			put_parts(b, trailer[i].parts);
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
		expect_field(&trailer[i], there, r);
	}
	if (body->time)
		assert_int_not_equal(r->time, 0);
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
			put_parts(&b, body->parts);
			put_trailer(&b, which);
			assert_int_equal(decode(f, &b, &r), 1);
			assert_int_equal(r.type, body->type);
			assert_int_equal(r.misc, body->misc);
			assert_int_equal(r.attr, 0);
			expect_parts(body->parts, &r);
			check_trailer(body, which, &r);
		}
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
		put_parts(&b, bodies[i].parts);
		full = b.len;
		/* a newer kernel may have put something after it */
		put64(&b, 1);
		assert_int_equal(decode(f, &b, &r), 1);
		expect_parts(bodies[i].parts, &r);
		full -= bodies[i].pad;
		for (b.len = 8; b.len < full; b.len++)
			assert_int_equal(decode(f, &b, &r), -EBADMSG);
	}
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
	}
}

/* One number in a body made too large for it. */
TEST(body_counts_must_fit)
{
	static const struct {
		uint32_t type;
		uint16_t misc;
		const struct part *parts;
		size_t at, len;		/* which bytes to set to 0xff */
	} cases[] = {
		{PERF_RECORD_NAMESPACES, 0, namespaces, 16, 8},
		{PERF_RECORD_NAMESPACES, 0, namespaces, 23, 1},
		{PERF_RECORD_NAMESPACES, 0, namespaces, 16, 1},
		{PERF_RECORD_TEXT_POKE, 0, poke, 16, 2},
		{PERF_RECORD_TEXT_POKE, 0, poke, 18, 2},
		{PERF_RECORD_TEXT_POKE, 0, poke, 16, 4},
		{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID,
		    mmap2_build_id, 40, 1},
		/* strings without an end */
		{PERF_RECORD_COMM, 0, comm, 31, 1},
		{PERF_RECORD_MMAP, 0, mmap_parts, 55, 1},
		{PERF_RECORD_MMAP2, 0, mmap2, 87, 1},
		{PERF_RECORD_KSYMBOL, 0, ksymbol, 56, 8},
		{PERF_RECORD_CGROUP, 0, cgroup, 27, 5},
	};
	struct perf_event_attr attr = trailer_attr(0x20);
	struct ex_formats *f = formats_of(&attr);
	struct bytes b;
	struct ex_record r;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		begin(&b, cases[i].type, cases[i].misc);
		put_parts(&b, cases[i].parts);
		assert_true(cases[i].at + cases[i].len <= b.len);
		put_parts(&b, id);
		assert_int_equal(decode(f, &b, &r), 1);
		memset(b.b + cases[i].at, 0xff, cases[i].len);
		assert_int_equal(decode(f, &b, &r), -EBADMSG);
	}
}

TEST(short_build_ids)
{
	struct ex_formats *f = kept(ex_formats_new());
	struct bytes b;
	struct ex_record r;
	uint8_t len;

	for (len = 0; len <= 20; len++) {
		begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
		put_parts(&b, mmap2_build_id);
		b.b[40] = len;
		assert_int_equal(decode(f, &b, &r), 1);
		assert_int_equal(r.mmap.build_id_len, len);
		assert_int_equal(r.mmap.build_id != NULL, len > 0);
	}
}

TEST(unknown_types_are_distinguished)
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
	struct ex_formats *f = kept(ex_formats_new());
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
}

/*
 * The formats.
 */

TEST(ids_lead_to_their_event)
{
	struct perf_event_attr a = attr_of(PERF_SAMPLE_IDENTIFIER);
	struct ex_formats *f = kept(ex_formats_new());
	uint64_t i, ids[3];

	assert_int_equal(ex_formats_find(f, 1), -1);
	assert_int_equal(ex_formats_add(f, &a, NULL, 0), 0);
	assert_int_equal(ex_formats_add(f, &a, NULL, 0), 1);
	for (i = 1; i <= 20000; i += 2) {
		ids[0] = i;
		ids[1] = (i + 1) << 40;
		ids[2] = 0;
		assert_int_equal(ex_formats_ids(f, 0, &ids[0], 1), 0);
		assert_int_equal(ex_formats_ids(f, 1, &ids[1], 2), 0);
	}
	for (i = 1; i <= 20000; i += 2) {
		assert_int_equal(ex_formats_find(f, i), 0);
		assert_int_equal(ex_formats_find(f, i + 1), -1);
		assert_int_equal(ex_formats_find(f, (i + 1) << 40), 1);
	}
	assert_int_equal(ex_formats_find(f, 0), -1);
	assert_int_equal(ex_formats_ids(f, 0, ids, 1), 0);
	assert_int_equal(ex_formats_ids(f, 1, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_ids(f, 2, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_ids(f, -1, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_add(f, &a, ids, 1), -EINVAL);
	assert_int_equal(ex_formats_add(f, &a, NULL, 0), 2);
	ex_formats_free(NULL);
}

TEST(samples_of_several_events)
{
	const uint64_t ids[] = {5, 6};
	struct perf_event_attr a = attr_of(PERF_SAMPLE_IDENTIFIER |
	    PERF_SAMPLE_IP);
	struct perf_event_attr other = attr_of(PERF_SAMPLE_IDENTIFIER |
	    PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD);
	struct ex_formats *f = kept(ex_formats_new());
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
}

/* Records that perf makes up carry zeros in their trailer. */
TEST(others_of_several_events)
{
	struct perf_event_attr a = trailer_attr(0x33);
	struct perf_event_attr other = trailer_attr(0x20);
	struct ex_formats *f = kept(ex_formats_new());
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
	put_parts(&b, cgroup);
	put_series(&b, 0, 1);	/* pid, tid */
	put64(&b, 555);		/* time */
	put_series(&b, 0, 1);	/* cpu */
	put64(&b, 0);
	assert_int_equal(decode(f, &b, &r), 1);
	expect_parts(cgroup, &r);
	expect_no_parts(tid, &r);
	expect_no_parts(cpu, &r);
	assert_int_equal(r.time, 555);
	assert_int_equal(r.attr, -1);

	begin(&b, PERF_RECORD_CGROUP, 0);
	put_parts(&b, cgroup);
	put_series(&b, 4, 4);
	assert_int_equal(decode(f, &b, &r), -ENOENT);
}

TEST(events_that_cannot_be_distinguished)
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
		struct ex_formats *f = kept(ex_formats_new());

		a.sample_id_all = cases[i].a_all;
		b.sample_id_all = cases[i].b_all;
		assert_int_equal(ex_formats_add(f, &a, NULL, 0), 0);
		assert_int_equal(ex_formats_add(f, &b, NULL, 0),
		    cases[i].result);
		/* the third must agree with all, not with the first alone */
		assert_int_equal(ex_formats_add(f, &a, NULL, 0),
		    cases[i].result == 1 ? 2 : 1);
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
		struct ex_formats *f = kept(ex_formats_new());

		assert_int_equal(ex_formats_add(f, &attr, ids, n), 0);
		assert_int_equal(ex_formats_find(f, n), n > 0 ? 0 : -1);
		assert_int_equal(ex_formats_find(f, n + 1), -1);
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
		struct ex_formats *f = kept(ex_formats_new());

		assert_int_equal(ex_formats_add(f, &first, NULL, 0), 0);
		assert_int_equal(ex_formats_add(f, &other[i], NULL, 0),
		    -EINVAL);
	}
}

/* One event: any id is its own as long as it has named none. */
TEST(ids_of_a_single_event)
{
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_IDENTIFIER);
	struct ex_formats *f = kept(ex_formats_new());
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
}

TEST(records_of_an_event_without_an_id)
{
	struct perf_event_attr attr = attr_of(PERF_SAMPLE_IP);
	struct ex_formats *f = kept(ex_formats_new());
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
}

TEST(foreign_fields_are_refused)
{
	struct perf_event_attr attr[3] = {
		attr_of((uint64_t)PERF_SAMPLE_MAX),
		attr_of(PERF_SAMPLE_BRANCH_STACK),
		attr_of(PERF_SAMPLE_READ),
	};
	struct ex_formats *f = kept(ex_formats_new());
	size_t i;

	attr[1].branch_sample_type = BRANCH_COUNTERS << 1;
	attr[2].read_format = PERF_FORMAT_MAX;
	for (i = 0; i < COUNT(attr); i++)
		assert_int_equal(ex_formats_add(f, &attr[i], NULL, 0),
		    -ENOTSUP);
	attr[0] = attr_of(PERF_SAMPLE_IP);
	assert_int_equal(ex_formats_add(f, &attr[0], NULL, 0), 0);
}

RUN_TESTS()
