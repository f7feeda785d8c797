/*
 * counter_reading: the values of counters that a BPF program read at a hit.
 * They follow the ticket in the sample's raw bytes.
 */
#ifndef WP_COUNTER_READING_H
#define WP_COUNTER_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bpf/ticket.h"

/* The reading of one counter. */
struct wp_counter_reading {
	uint64_t counter;	/* enum wp_counter */
	uint64_t count;		/* counted since its thread's last hit; or
				   WP_READING_NONE */
};
#define WP_READING_NONE UINT64_MAX	/* not known, or this is the first
					   hit */

/* The ith reading in a sample's raw bytes.  False: there are no more, or its
   count is not known. */
static inline bool
wp_counter_reading_get(const uint8_t *raw, uint32_t len, unsigned i,
    struct wp_counter_reading *reading)
{
	const size_t at = sizeof(struct wp_ticket) + i * sizeof(*reading);
	struct wp_ticket ticket;

	if (!wp_ticket_get(raw, len, &ticket) || len < at + sizeof(*reading))
		return false;
	memcpy(reading, raw + at, sizeof(*reading));
	return reading->count != WP_READING_NONE;
}

#endif
