/*
 * async_count_take: reads what an event that signals one thread has counted, in
 * the signal handler.  See async_count.h.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <stdatomic.h>

#include "handler/async_count.h"
#include "os/attr.h"
#include "os/perf.h"

/* The words of a record, as wp_attr_fires asks for them: the header, the ABI of
   the registers, then the registers. */
enum { SP = 2, PC, WORDS };

static uint64_t
word_at(const struct wp_async_count *fired, uint64_t at)
{
	const uint64_t *data = (const void *)((const char *)fired->ring +
	    fired->size);	/* the data follows one page of metadata */

	return data[at % fired->size / sizeof(*data)];
}

/* Whether the record's thread was at another place; *size is set to the
   record's size. */
static bool
is_elsewhere(const struct wp_async_count *fired, uint64_t at, struct wp_at now,
    uint64_t *size)
{
	const uint64_t header = word_at(fired, at);

	*size = header >> 48;
	return (uint32_t)header == PERF_RECORD_SAMPLE &&
	    *size == WORDS * sizeof(uint64_t) &&
	    (word_at(fired, at + PC * sizeof(uint64_t)) != now.pc ||
	    word_at(fired, at + SP * sizeof(uint64_t)) != now.sp);
}

/* Returns whether there were any records. */
static bool
take_records(struct wp_async_count *fired, struct wp_at now, bool *late)
{
	uint64_t head = atomic_load_explicit(
	    (_Atomic __u64 *)&fired->ring->data_head, memory_order_acquire);
	uint64_t at = fired->ring->data_tail, size;

	if (at == head)
		return false;
	for (; head - at - 1 < fired->size; at += size)
		if (is_elsewhere(fired, at, now, &size) || size == 0) {
			*late = true;
			break;
		}
	atomic_store_explicit((_Atomic __u64 *)&fired->ring->data_tail, head,
	    memory_order_release);
	return true;
}

uint64_t
wp_async_count_take(struct wp_async_count *fired, int fd, struct wp_at now,
    bool *late)
{
	struct wp_perf_count count;
	uint64_t n;

	if (fired->ring == NULL || !take_records(fired, now, late) ||
	    wp_perf_read(fd, WP_INSIDE_FORMAT, &count) < 0 ||
	    count.value <= fired->taken)
		return 0;
	n = count.value - fired->taken;
	fired->taken = count.value;
	return n;
}
