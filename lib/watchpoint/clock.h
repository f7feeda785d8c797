/* clock: the time that all records have, and that all waiting is measured in:
   CLOCK_MONOTONIC.  Async-signal-safe. */
#ifndef WP_CLOCK_H
#define WP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
wp_clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline long
wp_clock_ms(void)
{
	return (long)(wp_clock_ns() / 1000000);
}

#endif
