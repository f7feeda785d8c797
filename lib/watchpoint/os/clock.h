/* clock: the clock of all records and of all waiting: CLOCK_MONOTONIC.
   Async-signal-safe. */
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

/* Less than a second; a signal ends it. */
static inline void
wp_clock_sleep(long ns)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* The time of day, ns since 1970, that a time of wp_clock_ns was. */
static inline uint64_t
wp_clock_wall(uint64_t ns)
{
	struct timespec t;
	uint64_t now;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return now - (wp_clock_ns() - ns);
}

#endif
