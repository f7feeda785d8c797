/*
 * ticket: what a BPF program adds to the sample of a hit, as its
 * PERF_SAMPLE_RAW: a number that puts the hits of a slot in order, and the
 * bytes that it read there.
 *
 * Numbers go up by one from hit to hit, over all processors, from 1 on; a hit
 * of which there is no sample has one, too.  No other number was taken while
 * the bytes were read: so the numbers have the order in which the bytes were
 * read.  A sample that was given none has four zero bytes there, as the kernel
 * writes them.
 *
 * A mark says that the kernel has counted as many hits as numbers were taken.
 * It is a record as of PERF_RECORD_READ, of the slot's event: its value is how
 * many numbers are known to have been taken by then, with their samples in
 * front of it or lost; and in place of the time that the event has run is a
 * number such that each access which takes a later one than the value was made
 * after that number was taken, and that all accesses before it were seen.
 */
#ifndef WP_TICKET_H
#define WP_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "os/perf_event.h"

#define WP_TICKET_MAGIC 0x544b4357u	/* "WCKT" */
#define WP_TICKET_VERSION 1

struct wp_ticket {
	uint32_t magic;
	uint64_t number;	/* from 1 */
	uint64_t bytes;		/* as read, the first the lowest */
	uint16_t version;
	uint16_t len;		/* how many bytes were read; 0: none could
				   be */
	int32_t call;		/* -1: it is no system call's */
} __attribute__((packed));
_Static_assert((sizeof(uint32_t) + sizeof(struct wp_ticket)) % 8 == 0,
    "raw bytes, behind their size, are whole words");

/* Take it out of a sample's raw bytes.  False: there is none. */
static inline bool
wp_ticket_get(const void *raw, uint32_t len, struct wp_ticket *ticket)
{
	if (raw == NULL || len < sizeof(*ticket))
		return false;
	memcpy(ticket, raw, sizeof(*ticket));
	return ticket->magic == WP_TICKET_MAGIC &&
	    ticket->version == WP_TICKET_VERSION && ticket->number > 0 &&
	    ticket->len <= sizeof(ticket->bytes);
}

/* How the numbers of a slot are taken, in memory that user space shares: a line
   of the processor's cache for all, then one for each ring's programs. */
enum { WP_TICKET_LINE = 64 };

#endif
