/* stop_queue: records that wait for the stops of their threads. */
#include "stop/stop_queue.h"

#include <stdlib.h>

#include "os/array.h"
#include "os/attr.h"

enum {
	RAW_EMPTY = 8,		/* empty raw data, as the kernel writes it: a
				   size of 4, and 4 zeros */
	RAW_SIZE = sizeof(struct wp_stop_value) + 4,
};

/* A number of size bytes, at most 8. */
static uint64_t
get(const struct perf_event_header *header, size_t at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const uint8_t *)header + at, size);
	return value;
}

/* Make room for one more record at the end. */
static int
room(struct wp_stop_queue *q)
{
	if (q->end == q->cap && q->first >= q->cap / 2 && q->first > 0) {
		memmove(q->record, q->record + q->first,
		    (q->end - q->first) * sizeof(*q->record));
		q->end -= q->first;
		q->first = 0;
	}
	return wp_array_room(&q->record, q->end, &q->cap, sizeof(*q->record));
}

/* The offset of a sample's raw data.  0 if it is not where it should be, or if
   the record would become too long with a value. */
static size_t
raw_offset(const struct perf_event_header *header, bool callchain)
{
	size_t at = sizeof(struct wp_sample);

	if (callchain && at + 8 <= header->size) {
		uint64_t n = get(header, at, 8);

		at += 8 + (n < header->size ? 8 * n : header->size);
	}
	return at + RAW_EMPTY <= header->size && get(header, at, 4) == 4 &&
	    header->size + RAW_SIZE + 4 - RAW_EMPTY <= UINT16_MAX ? at : 0;
}

/* The pc in the user registers, which follow the raw data. */
static uint64_t
user_pc(const struct perf_event_header *header, size_t raw)
{
	const size_t abi = raw + RAW_EMPTY;
	const size_t at = abi + 8 + 8 * (size_t)wp_attr_user_pc();

	return raw != 0 && at + 8 <= header->size && get(header, abi, 8) != 0 ?
	    get(header, at, 8) : 0;
}

/* Copy a record, with room for a value if it has raw data; *value is set to the
   offset of that. */
static struct perf_event_header *
copy(const struct perf_event_header *from, size_t raw, uint32_t *value)
{
	const size_t more = raw == 0 ? 0 : RAW_SIZE + 4 - RAW_EMPTY;
	const uint32_t size = RAW_SIZE;
	uint8_t *to = malloc(from->size + more);
	struct perf_event_header *header = (void *)to;

	if (to == NULL || raw == 0)
		return to == NULL ? NULL : memcpy(to, from, from->size);
	memcpy(to, from, raw);
	memcpy(to + raw, &size, sizeof(size));
	memset(to + raw + 4, 0, RAW_SIZE);
	memcpy(to + raw + 4 + RAW_SIZE,
	    (const uint8_t *)from + raw + RAW_EMPTY,
	    from->size - raw - RAW_EMPTY);
	header->size = (uint16_t)(from->size + more);
	*value = (uint32_t)raw + 4;
	return header;
}

/* Move the last record to its place in the order.  Returns where it is. */
static struct wp_stop_record *
sort_in(struct wp_stop_queue *q, struct wp_stop_record new)
{
	size_t i = q->end - 1;

	for (; i > q->first && q->record[i - 1].time > new.time; i--)
		q->record[i] = q->record[i - 1];
	q->record[i] = new;
	return &q->record[i];
}

struct wp_stop_record *
wp_stop_queue_add(struct wp_stop_queue *q,
    const struct perf_event_header *header, bool callchain, uint64_t id)
{
	const bool sample = header->type == PERF_RECORD_SAMPLE;
	const size_t raw = sample ? raw_offset(header, callchain) : 0;
	struct wp_stop_record new = {
		.time = wp_attr_time(header),
		.waits = sample,
	};
	struct wp_sample *its;

	if (room(q) < 0 ||
	    (new.header = copy(header, raw, &new.value)) == NULL)
		return NULL;
	if (sample) {
		new.pc = user_pc(header, raw);
		its = (void *)new.header;
		its->id = id;
		new.tid = (pid_t)its->tid;
		new.ip = its->ip;
		new.cpu = (int)its->cpu;
		new.kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
		    PERF_RECORD_MISC_KERNEL;
	}
	q->end++;
	return sort_in(q, new);
}

/* Take record i out of the queue. */
static struct perf_event_header *
take(struct wp_stop_queue *q, size_t i)
{
	struct perf_event_header *header = q->record[i].header;

	for (; i > q->first; i--)
		q->record[i] = q->record[i - 1];
	if (++q->first == q->end)
		q->first = q->end = 0;
	return header;
}

const struct perf_event_header *
wp_stop_queue_next(struct wp_stop_queue *q, uint64_t horizon, bool in_order)
{
	free(q->given);
	q->given = NULL;
	for (size_t i = q->first; i < q->end; i++) {
		if (q->record[i].time > horizon ||
		    (in_order && q->record[i].waits))
			return NULL;
		if (!q->record[i].waits)
			return q->given = take(q, i);
	}
	return NULL;
}

struct wp_stop_record *
wp_stop_queue_waiting(struct wp_stop_queue *q)
{
	for (size_t i = q->first; i < q->end; i++)
		if (q->record[i].waits)
			return &q->record[i];
	return NULL;
}

void
wp_stop_record_value(struct wp_stop_record *record,
    const struct wp_stop_value *value)
{
	if (record->value != 0)
		memcpy((uint8_t *)record->header + record->value, value,
		    sizeof(*value));
}

void
wp_stop_queue_free(struct wp_stop_queue *q)
{
	for (size_t i = q->first; i < q->end; i++)
		free(q->record[i].header);
	free(q->record);
	free(q->given);
	*q = (struct wp_stop_queue){0};
}
