/* table: the table of watches that this program has on itself, and its lock. */
#include "program/table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/channel_futex.h"
#include "os/perf.h"

enum { ARMED_PAGE = 4096, DESCRIPTOR_HIGH = 3072 };

/* word: 0 free, 1 locked, 2 locked with a waiting thread.  The other members
   save the state of the holder. */
static struct {
	_Atomic uint32_t word;
	uint64_t mask;			/* its signal mask */
	int cancel;			/* its cancelability */
	int saved;			/* its errno */
	struct wp_channel *counts;	/* the channel in which it counts the
					   lock, or NULL */
} lock;

/* The system call also covers the signals that libc keeps for itself. */
static uint64_t
signal_mask(uint64_t mask)
{
	uint64_t old = 0;

	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old,
	    sizeof(mask));
	return old;
}

void
wp_watches_lock(void)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	uint64_t mask;
	int saved = errno, cancel;
	uint32_t was = 0;

	/* tells the helper that these blocked signals need no warning */
	if (channel != NULL)
		(void)atomic_fetch_add(&channel->locks, 1);
	mask = signal_mask(UINT64_MAX);

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (!atomic_compare_exchange_strong(&lock.word, &was, 1))
		while (atomic_exchange(&lock.word, 2) != 0)
			(void)wp_futex_wait(&lock.word, 2, WP_FUTEX_PATIENCE);
	lock.mask = mask;
	lock.cancel = cancel;
	lock.saved = saved;
	lock.counts = channel;
}

void
wp_watches_unlock(void)
{
	struct wp_channel *channel = lock.counts;
	uint64_t mask = lock.mask;
	int cancel = lock.cancel;

	errno = lock.saved;
	if (atomic_exchange(&lock.word, 0) == 2)
		wp_futex_wake(&lock.word);
	(void)pthread_setcancelstate(cancel, NULL);
	(void)signal_mask(mask);
	if (channel != NULL)
		(void)atomic_fetch_add(&channel->unlocks, 1);
}

struct wp_channel *
wp_watches_counts(void)
{
	return lock.counts;
}

void
wp_watches_part(void)
{
	lock.counts = NULL;
}

struct wp_watch *
wp_watches_new(uint32_t *serial)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		struct wp_watch *w = &wp_state.watch[i];

		if (atomic_load(&w->serial) != 0 || w->delivery != NULL)
			continue;
		do	/* 0 means that a watch is not open */
			*serial = atomic_fetch_add(&wp_state.serials, 1) + 1;
		while ((*serial & WP_SIG_USES) == 0);
		*serial = (uint32_t)wp_state.copy << 24 |
		    (*serial & WP_SIG_USES);
		return w;
	}
	return NULL;
}

/* Make room for one more event. */
static int
armed_room(struct wp_watch *w)
{
	size_t size = w->mapped == 0 ? ARMED_PAGE : w->mapped * 2;
	void *at;

	if ((w->narmed + 1) * sizeof(*w->armed) <= w->mapped)
		return 0;
	at = w->mapped == 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) :
	    mremap(w->armed, w->mapped, size, MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		return -ENOMEM;
	w->armed = at;
	w->mapped = size;
	return 0;
}

int
wp_watch_put(struct wp_watch *w, const struct wp_armed *armed)
{
	int err = armed_room(w);

	if (err == 0)
		w->armed[w->narmed++] = *armed;
	return err;
}

int
wp_watch_add(struct wp_watch *w, int fd, unsigned slot, pid_t tid)
{
	struct wp_armed armed = {
		.fd = fd, .slot = (uint16_t)slot, .tid = tid,
	};

	(void)wp_perf_id(fd, &armed.id);
	return wp_watch_put(w, &armed);
}

void
wp_armed_drop(struct wp_armed *armed)
{
	wp_async_count_close(&armed->fired);
	if (wp_armed_is(armed))
		(void)close(armed->fd);
}

void
wp_watch_drop(struct wp_watch *w, size_t first)
{
	while (w->narmed > first) {
		w->narmed--;
		wp_armed_drop(&w->armed[w->narmed]);
	}
	if (first == 0 && w->mapped > ARMED_PAGE && mremap(w->armed, w->mapped,
	    ARMED_PAGE, 0) != MAP_FAILED)
		w->mapped = ARMED_PAGE;
}

/*
 * High enough not to disturb programs that expect low numbers and, where the
 * limit allows, select(2); not higher, because the kernel allocates its table
 * of descriptors up to the highest one.
 */
int
wp_descriptor_high(int fd)
{
	int high = -1;

	/* fcntl fails from the limit on */
	for (int from = DESCRIPTOR_HIGH; high < 0 && from > fd; from /= 2)
		high = fcntl(fd, F_DUPFD_CLOEXEC, from);
	if (high < 0)
		return fd;
	(void)close(fd);
	return high;
}
