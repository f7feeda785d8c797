/*
 * table: the table of watches that this program has on itself, its lock, and
 * what becomes of it in a child made by fork(2).
 */
#include "inside/table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/channel_futex.h"
#include "os/libc.h"
#include "os/perf.h"
#include "inside/delivery.h"
#include "inside/helper.h"
#include "inside/lifeline.h"

enum { ARMED_PAGE = 4096, DESCRIPTOR_HIGH = 3072 };

/* 0 free, 1 locked, 2 locked, and a thread waits; and what the holder had. */
static struct {
	_Atomic uint32_t word;
	uint64_t mask;			/* signals blocked */
	int cancel;			/* cancelability */
	int saved;			/* errno */
	struct wp_channel *counts;	/* the handler that gets it; NULL:
					   nobody */
	pid_t forks;			/* the thread that is in fork(2) */
	struct wp_making_now making;	/* which is known to a holder of
					   counts */
} lock;

/* The system call takes all of them, also those that libc keeps to itself. */
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

	/* that signals are blocked here is no reason for a warning */
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

/*
 * A watch that a child does not have.  It is not opened.
 */

static void
none_close(struct wp_watch *w)
{
	(void)w;
}

static int
none_do(struct wp_watch *w)
{
	(void)w;
	return 0;
}

static int
none_move(struct wp_watch *w, const struct wp_slot *slots,
    struct wp_cause *cause)
{
	(void)w;
	(void)slots;
	(void)cause;
	return 0;
}

static int
none_count(const struct wp_watch *w, uint64_t *count)
{
	(void)w;
	*count = 0;
	return 0;
}

static int
none_signal(void)
{
	return 0;
}

static const struct wp_delivery deliver_none = {
	.name = "none", .signal = none_signal, .close = none_close,
	.enable = none_do, .disable = none_do, .move = none_move,
	.count = none_count,
};

/* Whether a watch follows into a child; not if no hits are wanted any more. */
static bool
follows(const struct wp_watch *w, pid_t parent)
{
	return (lock.counts == NULL || atomic_load(&lock.counts->off) == 0) &&
	    atomic_load(&w->serial) != 0 && (w->attr.flags & WP_FORK) != 0 &&
	    (w->tid == 0 || w->tid == parent);
}

/* The child has the thread that forked alone, under another id.  Its copies are
   closed and nothing else: the events are its parent's. */
static void
watch_forked(struct wp_watch *w, pid_t parent)
{
	const bool followed = follows(w, parent);

	wp_trap_forked();
	/* what the child does not have */
	for (size_t i = 0; i < w->narmed; i++)
		w->armed[i].fired.ring = NULL;
	wp_watch_drop(w, 0);
	atomic_store(&w->users, wp_trap_held() == w);
	if (w->delivery == NULL)
		return;
	if (w->tid == parent)
		w->tid = wp_libc_tid();
	if (followed && wp_watch_reopen(w) == 0)
		return;
	if (followed)
		wp_helper_unfollowed();
	wp_watch_drop(w, 0);
	atomic_store(&w->on, false);
	w->delivery = &deliver_none;
}

static bool
any_follows(pid_t tid)
{
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		if (follows(&wp_state.watch[i], tid))
			return true;
	return false;
}

static void
before_fork(void)
{
	wp_watches_lock();
	lock.forks = wp_libc_tid();
	lock.making = wp_making_begin(lock.counts, any_follows(lock.forks) ?
	    WP_MAKES_WATCHED : WP_MAKES_FORK);
}

static void
after_fork(void)
{
	wp_making_end(lock.making);
	wp_watches_unlock();
}

/* Let the parent's helper know of a child that is not watched. */
static void
count_unfollowed(void)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);

	for (unsigned i = 0; channel != NULL && i < WP_WATCHES_MAX; i++) {
		const struct wp_watch *w = &wp_state.watch[i];

		if (atomic_load(&w->serial) == 0 ||
		    (w->attr.flags & WP_FORK) != 0)
			continue;
		(void)atomic_fetch_add(&channel->children, 1);
		return;
	}
}

static void
forked(void)
{
	const bool kept = wp_state.kept;

	count_unfollowed();
	wp_making_appear(lock.making);
	wp_helper_forked();
	wp_state.kept = false;
	wp_own_events_forked();
	wp_lifeline_forked();
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		watch_forked(&wp_state.watch[i], lock.forks);
	if (kept)
		(void)wp_helper_armed(NULL);
	wp_making_settle(lock.making);
	lock.counts = NULL;	/* it is the parent's */
	wp_helper_part();
	wp_watches_unlock();
}

struct wp_watch *
wp_watches_new(uint32_t *serial)
{
	static bool prepared;

	if (!prepared && pthread_atfork(before_fork, after_fork,
	    forked) != 0)
		return NULL;
	prepared = true;
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		struct wp_watch *w = &wp_state.watch[i];

		if (atomic_load(&w->serial) != 0 || w->delivery != NULL)
			continue;
		do	/* 0 is no use */
			*serial = atomic_fetch_add(&wp_state.serials, 1) + 1;
		while ((*serial & WP_SIG_USES) == 0);
		*serial = (uint32_t)wp_state.copy << 24 |
		    (*serial & WP_SIG_USES);
		return w;
	}
	return NULL;
}

/* Room for one more. */
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
 * High enough to be out of the way of programs that expect the lowest numbers,
 * and of select(2) where the limit allows; not so high that the kernel's table
 * of descriptors, which has room up to the highest, takes much memory.
 */
int
wp_descriptor_high(int fd)
{
	int high = -1;

	/* from the limit on there are none */
	for (int from = DESCRIPTOR_HIGH; high < 0 && from > fd; from /= 2)
		high = fcntl(fd, F_DUPFD_CLOEXEC, from);
	if (high < 0)
		return fd;
	(void)close(fd);
	return high;
}
