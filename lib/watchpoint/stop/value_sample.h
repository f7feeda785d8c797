/*
 * value_sample: what a stop at a hit adds to the hit's record: the watch's
 * bytes, as PERF_SAMPLE_RAW of the kernel's own sample of that access.
 *
 * A sample without a value has four zero bytes there instead, as the kernel
 * writes them.  If a thread made several samples before it stopped (when the
 * kernel copies memory, it makes one for each piece), the last one of each
 * watch has the value.
 *
 * A crowd is the set of all accesses to a watch between two moments at which
 * the counts of all threads, and so the bytes, were known.  Each crowd has a
 * number.  A value says to which crowd its access belongs, and which crowd has
 * just ended, with how many samples: a reader that has all of them knows that
 * there were no other accesses.
 */
#ifndef WP_VALUE_SAMPLE_H
#define WP_VALUE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WP_STOP_MAGIC 0x50545357u	/* "WSTP" */
#define WP_STOP_VERSION 2
#define WP_STOP_BYTES 32

enum wp_stop_flags {
	/* Between old and new, this thread's access (or those of one system
	   call) was the only one to any byte of the watch. */
	WP_STOP_EXACT = 1,
	/* Nothing was written between the access and the reading: new is what
	   the access left.  EXACT implies this. */
	WP_STOP_LEFT = 2,
	/* old is what the bytes were when the crowd that has ended began. */
	WP_STOP_BEGAN = 4,
	/* With EXACT: old was read while the thread was stopped before the
	   access, so earlier writes do not matter. */
	WP_STOP_BEFORE = 8,
};

struct wp_stop_value {
	uint32_t magic;
	uint16_t version;
	uint16_t flags;		/* enum wp_stop_flags */
	uint64_t addr;		/* the first byte of the watch */
	uint32_t len;		/* number of bytes in old and new; 0: other
				   threads accessed the watch, and may have
				   written after the access */
	int32_t call;		/* for an access of the kernel, the number of
				   the system call; < 0: not known */
	int64_t result;		/* if call >= 0: what the call returned */
	uint64_t crowd;		/* the crowd of the access; 0: none, or not
				   known */
	uint64_t since;		/* if crowd: the access was made after this,
				   ns */
	uint64_t ended;		/* the crowd that has ended; 0: none */
	uint32_t samples;	/* if crowd: number of samples of this access,
				   or of several that are reported as one */
	uint32_t all;		/* if ended: number of samples of that crowd; 0:
				   some accesses may have none */
	uint8_t old[WP_STOP_BYTES];	/* the bytes before; only with EXACT or
					   BEGAN */
	uint8_t new[WP_STOP_BYTES];	/* the bytes when the thread was stopped
					   behind its access (without LEFT,
					   others may have written, too); or
					   when the crowd ended, if one did */
};
_Static_assert(sizeof(struct wp_stop_value) == 128, "as in recordings");

/* Get the value from a sample's raw bytes.  False: there is none. */
static inline bool
wp_stop_value_get(const void *raw, uint32_t len, struct wp_stop_value *value)
{
	if (raw == NULL || len < sizeof(*value))
		return false;
	memcpy(value, raw, sizeof(*value));
	return value->magic == WP_STOP_MAGIC &&
	    value->version == WP_STOP_VERSION && value->len <= WP_STOP_BYTES;
}

#endif
