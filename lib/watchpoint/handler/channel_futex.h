/*
 * channel_futex: futex(2) between processes.  Async-signal-safe; errno is left
 * as it was.
 */
#ifndef WP_CHANNEL_FUTEX_H
#define WP_CHANNEL_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The time to sleep before checking that the other side still runs, ms. */
enum { WP_FUTEX_PATIENCE = 100 };

/* Sleep while *word is value, until woken, at most ms.  0 or -errno. */
static inline int
wp_futex_wait(const _Atomic uint32_t *word, uint32_t value, int ms)
{
	const struct timespec limit = {ms / 1000, ms % 1000 * 1000000L};
	int saved = errno, err = 0;

	if (syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0) != 0)
		err = -errno;
	errno = saved;
	return err;
}

/* Wake all threads that sleep there. */
static inline void
wp_futex_wake(const _Atomic uint32_t *word)
{
	int saved = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

#endif
