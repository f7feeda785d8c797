/*
 * ticket: what a BPF program adds to the sample of a hit, as its
 * PERF_SAMPLE_RAW: a number that puts the hits of a slot in order, and the
 * bytes that the program read at the slot's address.
 *
 * Numbers go up by one from hit to hit, over all processors, from 1 on; a hit
 * without a sample takes one, too.  While a program reads the bytes, no other
 * number is taken, so the order of the numbers is the order in which the bytes
 * were read.  A sample without a number has four zero bytes there, as the
 * kernel writes them.
 *
 * A mark says that the kernel has counted as many hits as numbers were taken.
 * It has the layout of PERF_RECORD_READ, of the slot's event.  Its value is a
 * number, the samples of all numbers up to which come before the mark or are
 * lost.  In place of the time that the event has run it has another number: all
 * accesses before that one was taken were seen, and each access whose number is
 * above the value was made after it.
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
	uint64_t bytes;		/* as read; the first one is the lowest */
	uint16_t version;
	uint16_t len;		/* how many bytes were read; 0: they could not
				   be read */
	int32_t call;		/* the system call that made the access; -1:
				   none did */
} __attribute__((packed));
_Static_assert((sizeof(uint32_t) + sizeof(struct wp_ticket)) % 8 == 0,
    "raw bytes, behind their size, are whole words");

/* Get the ticket of a sample from its raw bytes.  False: it has none. */
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

/* The memory shared with user space from which the numbers of a slot are taken:
   a cache line for all, then one for the programs of each ring. */
enum { WP_TICKET_LINE = 64 };

#endif
