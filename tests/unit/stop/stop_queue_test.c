/* stop_queue: records wait in the order of time, and get their values. */
#include "test.h"

#include "os/attr.h"
#include "stop/stop_queue.h"

enum { REGS = 36 * 8 };		/* bytes after the raw ones */

/* A sample as the kernel writes it, its chain only if there is to be one. */
struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time, addr;
	uint32_t cpu, zero;
	uint64_t rest[48];
};

static const struct perf_event_header *
sample(uint64_t time, uint32_t tid, size_t chain)
{
	static struct sample s;
	const uint32_t raw[2] = {4, 0};
	size_t n = 0;

	s = (struct sample){
		.header = {.type = PERF_RECORD_SAMPLE,
		    .misc = PERF_RECORD_MISC_KERNEL},
		.id = 99, .ip = 0x1234, .pid = 1, .tid = tid, .time = time,
		.cpu = 3,
	};
	if (chain > 0) {
		s.rest[n++] = chain;
		n += chain;
	}
	memcpy(&s.rest[n++], raw, sizeof(raw));
	for (size_t i = 0; i < REGS / 8; i++)
		s.rest[n++] = 0xa0 + i;
	s.header.size = (uint16_t)(offsetof(struct sample, rest) + 8 * n);
	return &s.header;
}

/* Any other record: it ends in pid and tid, time, cpu, identifier. */
static const struct perf_event_header *
other(uint64_t time)
{
	static struct {
		struct perf_event_header header;
		uint64_t task, time, cpu, id;
	} r;

	r.header = (struct perf_event_header){
		.type = PERF_RECORD_COMM, .size = sizeof(r),
	};
	r.time = time;
	return &r.header;
}

static struct wp_stop_queue queue;

static int
empty(void **state)
{
	(void)state;
	wp_stop_queue_free(&queue);
	return 0;
}

static struct wp_stop_record *
add(const struct perf_event_header *header, bool chain)
{
	struct wp_stop_record *record =
	    wp_stop_queue_add(&queue, header, chain, 7);

	assert_non_null(record);
	return record;
}

static uint64_t
word(const struct perf_event_header *header, size_t at)
{
	uint64_t value;

	assert_true(at + 8 <= header->size);
	memcpy(&value, (const uint8_t *)header + at, sizeof(value));
	return value;
}

TEST(a_value_is_put_in)
{
	for (size_t chain = 0; chain < 3; chain += 2) {
		const size_t raw = 56 + (chain > 0 ? 8 + 8 * chain : 0);
		const struct perf_event_header *got;
		struct wp_stop_record *r = add(sample(5, 42, chain), chain > 0);
		struct wp_stop_value value = {
			.magic = WP_STOP_MAGIC, .version = WP_STOP_VERSION,
			.len = 8, .new = {1, 2, 3},
		}, back;
		uint32_t size;

		assert_int_equal(r->tid, 42);
		assert_int_equal(r->cpu, 3);
		assert_int_equal(r->ip, 0x1234);
		assert_int_equal(r->pc, 0xa0 + 1 + wp_attr_user_pc());
		assert_true(r->kernel && r->waits);
		wp_stop_record_value(r, &value);
		assert_null(wp_stop_queue_next(&queue, UINT64_MAX, true));
		r->waits = false;
		got = wp_stop_queue_next(&queue, UINT64_MAX, true);
		assert_non_null(got);
		assert_int_equal(word(got, 8), 7);
		memcpy(&size, (const uint8_t *)got + raw, sizeof(size));
		assert_int_equal((size + 4) % 8, 0);
		assert_true(wp_stop_value_get((const uint8_t *)got + raw + 4,
		    size, &back));
		assert_memory_equal(&back, &value, sizeof(value));
		assert_int_equal(got->size, raw + 4 + size + REGS);
		for (size_t i = 0; i < REGS / 8; i++)
			assert_int_equal(word(got, raw + 4 + size + 8 * i),
			    0xa0 + i);
	}
}

TEST(without_one_there_is_none)
{
	const struct perf_event_header *got;
	struct wp_stop_value value;

	add(sample(5, 42, 0), false)->waits = false;
	got = wp_stop_queue_next(&queue, UINT64_MAX, true);
	assert_false(wp_stop_value_get((const uint8_t *)got + 60,
	    sizeof(value), &value));
}

TEST(in_order_of_time)
{
	const struct perf_event_header *got;

	(void)add(other(30), false);
	(void)add(sample(10, 1, 0), false);
	(void)add(other(20), false);
	assert_null(wp_stop_queue_next(&queue, 100, true));
	assert_int_equal(wp_stop_queue_waiting(&queue)->time, 10);
	/* those that do not wait can be had before it */
	got = wp_stop_queue_next(&queue, 25, false);
	assert_int_equal(word(got, 16), 20);
	assert_null(wp_stop_queue_next(&queue, 25, false));
	wp_stop_queue_waiting(&queue)->waits = false;
	got = wp_stop_queue_next(&queue, 100, true);
	assert_int_equal(got->type, PERF_RECORD_SAMPLE);
	assert_null(wp_stop_queue_next(&queue, 29, true));
	got = wp_stop_queue_next(&queue, 30, true);
	assert_int_equal(word(got, 16), 30);
	assert_null(wp_stop_queue_next(&queue, UINT64_MAX, true));
	assert_null(wp_stop_queue_waiting(&queue));
}

TEST(many_pass_through)
{
	uint64_t out = 0;

	for (uint64_t in = 1; in <= 1000; in++) {
		add(sample(in, 1, 0), false)->waits = false;
		while (in % 70 == 0 && out + 30 < in) {
			const struct perf_event_header *got =
			    wp_stop_queue_next(&queue, UINT64_MAX, true);

			assert_int_equal(word(got, 32), ++out);
		}
	}
	while (out < 1000)
		assert_int_equal(word(wp_stop_queue_next(&queue, UINT64_MAX,
		    true), 32), ++out);
}

/* What would not fit in a record, or is no sample with raw bytes, stays as it
   is. */
TEST(no_room_for_a_value)
{
	static union {
		struct perf_event_header header;
		uint8_t bytes[65528];
	} big;
	struct wp_stop_record *r;

	memcpy(&big, sample(5, 1, 0), sizeof(struct sample));
	big.header.size = 65528;
	r = add(&big.header, false);
	assert_int_equal(r->value, 0);
	assert_int_equal(r->header->size, 65528);
	wp_stop_record_value(r, &(struct wp_stop_value){0});
	r = add(sample(5, 1, 0), true);	/* its chain would be too long */
	assert_int_equal(r->header->size, sample(5, 1, 0)->size);
}

RUN_TESTS(.after_each = empty)
