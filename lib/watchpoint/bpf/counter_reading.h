/*
 * counter_reading: the counters that a BPF program has read at a hit.  It
 * follows the ticket in the sample's raw bytes.
 */
#ifndef WP_COUNTER_READING_H
#define WP_COUNTER_READING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bpf/ticket.h"

/* Of one counter. */
struct wp_counter_reading {
	uint64_t counter;	/* enum wp_counter */
	uint64_t count;		/* since its thread's last hit; or: */
};
#define WP_READING_NONE UINT64_MAX	/* not known, or it is the first */

/* The ith of a sample's raw bytes.  False: there are no more, or it is not
   known. */
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
