/*
 * record_fuzz: any bytes as records, of events with any attributes.
 *
 * Input: the number of events (one byte), a struct input_event for each, then
 * records, one behind the other.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "record/record.h"

enum { EVENTS_MAX = 4, IDS_MAX = 3 };

struct input_event {
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t branch_sample_type;
	uint64_t regs_user;
	uint64_t regs_intr;
	uint8_t sample_id_all;
	uint8_t nids;		/* of the ids that follow, at most */
	uint16_t ids[IDS_MAX];
};

/* len bytes at p lie in the record, and can be read. */
static void
expect_part(const struct ex_record *r, const void *p, uint64_t len)
{
	static volatile uint8_t sink;
	uintptr_t at = (uintptr_t)p, record = (uintptr_t)r->bytes;

	if (p == NULL) {
		expect(len == 0);
		return;
	}
	expect(at >= record && at - record <= r->size);
	expect(len <= r->size - (at - record));
	for (uint64_t i = 0; i < len; i++)
		sink = ((const uint8_t *)p)[i];
	(void)sink;
}

static void
expect_string(const struct ex_record *r, const char *s)
{
	expect(s != NULL);
	expect_part(r, s, 1);
	expect_part(r, s, strlen(s) + 1);
}

static void
expect_regs(const struct ex_record *r, const struct ex_perf_regs *regs)
{
	uint64_t n = (uint64_t)__builtin_popcountll(regs->mask), found = 0, v;

	expect_part(r, regs->values, regs->values != NULL ? 8 * n : 0);
	for (unsigned i = 0; i < EX_REGS_MAX; i++)
		found += ex_regs_get(regs, i, &v);
	expect(found == n);
}

static void
expect_sample(const struct ex_record *r)
{
	const struct ex_sample *s = &r->sample;

	expect_part(r, s->callchain, 8 * s->callchain_len);
	if (s->callchain_len > 0)
		(void)ex_callchain_at(s, s->callchain_len - 1);
	expect_part(r, s->raw, s->raw_len);
	expect_part(r, s->branch, 24 * s->branch_len);
	if (s->branch_counters != NULL)
		expect_part(r, s->branch_counters, 8 * s->branch_len);
	expect(s->stack_len <= s->stack_asked);
	expect_part(r, s->stack, s->stack_asked);
	expect_part(r, s->aux, s->aux_len);
	expect_regs(r, &s->user);
	expect_regs(r, &s->intr);
}

static void
expect_record(const struct ex_record *r)
{
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		expect_sample(r);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		expect_string(r, r->mmap.path);
		expect(r->mmap.build_id_len <= 20);
		expect_part(r, r->mmap.build_id, r->mmap.build_id_len);
		break;
	case PERF_RECORD_COMM:
		expect_string(r, r->comm.name);
		break;
	case PERF_RECORD_NAMESPACES:
		expect_part(r, r->ns.links, 16 * r->ns.count);
		break;
	case PERF_RECORD_KSYMBOL:
		expect_string(r, r->ksymbol.name);
		break;
	case PERF_RECORD_BPF_EVENT:
		expect_part(r, r->bpf.tag, 8);
		break;
	case PERF_RECORD_CGROUP:
		expect_string(r, r->cgroup.path);
		break;
	case PERF_RECORD_TEXT_POKE:
		expect_part(r, r->poke.bytes,
		    (uint64_t)r->poke.old_len + r->poke.new_len);
		break;
	default:
		break;
	}
}

/* Add an event to count others; one that is refused is only left out.  Returns how
   many there are then. */
static int
add_event(struct ex_formats *f, int count, const struct input_event *e)
{
	struct perf_event_attr attr = {
		.sample_type = e->sample_type,
		.read_format = e->read_format,
		.branch_sample_type = e->branch_sample_type,
		.sample_regs_user = e->regs_user,
		.sample_regs_intr = e->regs_intr,
		.sample_id_all = e->sample_id_all & 1,
	};
	uint64_t ids[IDS_MAX];
	size_t i, n = e->nids % (IDS_MAX + 1);
	int result;

	for (i = 0; i < n; i++)
		ids[i] = e->ids[i];
	result = ex_formats_add(f, &attr, ids, n);
	expect(result < 0 || result == count);
	for (i = 0; i < n && result >= 0; i++)
		expect(ex_formats_find(f, ids[i]) ==
		    (ids[i] != 0 ? result : -1));
	return count + (result >= 0);
}

/* Decode all records in a heap block that ends where they end. */
static void
decode(const struct ex_formats *f, int count, const uint8_t *data, size_t size)
{
	uint8_t *block = malloc(size + 1);
	struct ex_record r;
	size_t at;

	expect(block != NULL);
	memcpy(block, data, size);
	for (at = 0; at < size; at += r.size) {
		int result = ex_record_decode(f, block + at, size - at, &r);

		expect(r.attr >= -1 && r.attr < count);
		if (r.size == 0)
			break;
		expect(r.bytes == block + at && r.size <= size - at);
		if (result == 1)
			expect_record(&r);
	}
	free(block);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ex_formats *f = ex_formats_new();
	struct input_event event;
	unsigned n;
	int count = 0;

	expect(f != NULL);
	if (size > 0) {
		n = *data++ % (EVENTS_MAX + 1);
		size--;
		for (; n > 0 && size >= sizeof(event); n--) {
			memcpy(&event, data, sizeof(event));
			data += sizeof(event);
			size -= sizeof(event);
			count = add_event(f, count, &event);
		}
	}
	decode(f, count, data, size);
	ex_formats_free(f);
	return 0;
}
