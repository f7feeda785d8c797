/*
 * value_sample: the data that a stop at a hit adds to its record: the watch's
 * bytes, as PERF_SAMPLE_RAW of the kernel's own sample of that access.
 *
 * A sample that could be given none has four zero bytes there instead, as the
 * kernel writes them.  Of several samples that a thread made before it stopped
 * (a copy by the kernel makes one for each piece), the last one of each watch
 * has the value.
 *
 * A crowd is all accesses to a watch between two moments at which the counts of
 * all threads, and so the bytes, were known.  It has a number.  A value says to
 * which crowd its access belongs, and which one has just ended, with as many
 * samples: who has them all knows that there was nothing else.
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
	/* Between old and new, this thread's access (or all of one system call)
	   is the only one there was, to any byte of the watch. */
	WP_STOP_EXACT = 1,
	/* Nobody wrote between the access and the reading: new is what it left.
	   EXACT says so, too. */
	WP_STOP_LEFT = 2,
	/* old is what the bytes were when the crowd that has ended began. */
	WP_STOP_BEGAN = 4,
	/* EXACT: old was read while the thread was stopped before the access,
	   so it matters to nobody what was written earlier. */
	WP_STOP_BEFORE = 8,
};

struct wp_stop_value {
	uint32_t magic;
	uint16_t version;
	uint16_t flags;		/* enum wp_stop_flags */
	uint64_t addr;		/* the watch: its first byte */
	uint32_t len;		/* how many bytes there are in old and new; 0:
				   other threads are known to have been there,
				   and may have written after the access */
	int32_t call;		/* an access of the kernel: the number of the
				   system call; < 0: not known */
	int64_t result;		/* call >= 0: what the call gives */
	uint64_t crowd;		/* that the access belongs to; 0: to none, or
				   not known */
	uint64_t since;		/* crowd: it was made after this, ns */
	uint64_t ended;		/* the crowd that has ended; 0: none */
	uint32_t samples;	/* crowd: of this access; or of several that are
				   one */
	uint32_t all;		/* ended: of all of its accesses; 0: there may
				   be more that have none */
	uint8_t old[WP_STOP_BYTES];	/* before; only if EXACT or BEGAN */
	uint8_t new[WP_STOP_BYTES];	/* as read while the thread was stopped
					   behind its access: if not LEFT,
					   others may have written, too; when
					   the crowd ended, if one did */
};
_Static_assert(sizeof(struct wp_stop_value) == 128, "as in recordings");

/* Take it out of a sample's raw bytes.  False: there is none. */
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
