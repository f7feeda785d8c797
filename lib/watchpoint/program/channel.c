/*
 * channel: the memory that a watched program shares with its helper.  What the
 * program's signal handler calls is in channel_post.c.
 */
#include "handler/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/attr.h"
#include "handler/channel_futex.h"
#include "os/clock.h"
#include "os/libc.h"

enum {
	LISTEN_NS = 50000,	/* ns of polling before the helper sleeps */
	NAP_NS = 1000000,	/* ns between attempts to get a place, at
				   first; then longer, as thousands of
				   processes may try */
	NAP_MAX_NS = 64 * NAP_NS,
};

#ifndef MFD_NOEXEC_SEAL			/* since Linux 6.3 */
#define MFD_NOEXEC_SEAL 8U
#endif

_Static_assert((WP_CELLS & (WP_CELLS - 1)) == 0, "tickets wrap with the cells");
_Static_assert(WP_CELLS > 2, "turns t + 2 and t + WP_CELLS differ");
/* so that 32-bit programs have the same */
_Static_assert(sizeof(struct wp_cell_watch) == 104 &&
    sizeof(struct wp_slot) == 24 && sizeof(struct wp_cell) == 24576 &&
    sizeof(struct wp_request) == 11712 && sizeof(struct wp_baseline) == 72 &&
    sizeof(struct wp_channel_watch) == 288 && sizeof(struct wp_making) == 32,
    "what is shared has one layout");
_Static_assert(WP_RECORD_MAX <= UINT16_MAX, "a record's size has 16 bits");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2 &&
    ATOMIC_SHORT_LOCK_FREE == 2, "atomics work between processes");

/* Some systems forbid executable memfds; others do not know the flag that
   declares this one not executable. */
static int
memory_file(void)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("watchpoint", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("watchpoint", flags);
	return fd < 0 ? -errno : fd;
}

/* Growing a file beyond the limit of file sizes raises a signal that would kill
   the program. */
static int
make_large(int fd, off_t size)
{
	sigset_t limit, old, pending;
	int err = 0;

	(void)sigemptyset(&limit);
	(void)sigaddset(&limit, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &limit, &old);
	(void)sigpending(&pending);
	if (ftruncate(fd, size) != 0)
		err = -errno;
	if (err == -EFBIG && sigismember(&pending, SIGXFSZ) == 0)
		(void)sigtimedwait(&limit, NULL, &(struct timespec){0});
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static struct wp_channel *
map(int fd)
{
	return mmap(NULL, sizeof(struct wp_channel), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
}

int
wp_channel_make(uint32_t stack)
{
	struct wp_channel *channel = MAP_FAILED;
	int fd = memory_file(), err = 0;

	if (fd < 0)
		return fd;
	/* the seals prevent that a process dies of SIGBUS because another
	   shrinks it */
	if ((err = make_large(fd, sizeof(*channel))) == 0 &&
	    (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 ||
	    (channel = map(fd)) == MAP_FAILED))
		err = -errno;
	if (err < 0) {
		(void)close(fd);
		return err;
	}
	channel->magic = WP_CHANNEL_MAGIC;
	channel->version = WP_CHANNEL_VERSION;
	channel->size = sizeof(*channel);
	channel->stack = (stack < WP_STACK_MAX ? stack : WP_STACK_MAX) & ~7u;
	for (uint32_t i = 0; i < WP_CELLS; i++)
		channel->cell[i].turn = i;
	wp_channel_unmap(channel);
	return fd;
}

int
wp_channel_map(int fd, struct wp_channel **out)
{
	struct wp_channel *channel;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &st) != 0 ||
	    st.st_size != sizeof(*channel))
		return -EPROTO;
	if ((channel = map(fd)) == MAP_FAILED)
		return -errno;
	if (channel->magic != WP_CHANNEL_MAGIC ||
	    channel->version != WP_CHANNEL_VERSION ||
	    channel->size != sizeof(*channel)) {
		wp_channel_unmap(channel);
		return -EPROTO;
	}
	*out = channel;
	return 0;
}

void
wp_channel_unmap(struct wp_channel *channel)
{
	(void)munmap(channel, sizeof(*channel));
}

/* Each record has the size of its own stack copy. */
void
wp_channel_attr(struct perf_event_attr *attr)
{
	wp_attr_watch(attr, &(struct wp_slot){0},
	    &(struct wp_options){.stack = WP_STACK_MAX}, false);
}

/* Complete a ticket that was taken before execve(2), if it was.  Its cell is
   passed to the helper, emptied if it was not filled completely, and then given
   back. */
static void
finish(struct wp_channel *channel, uint32_t ticket, bool taken)
{
	struct wp_cell *cell = &channel->cell[ticket % WP_CELLS];

	if (atomic_load(&cell->turn) == ticket - WP_CELLS + 2)
		wp_channel_give(cell, ticket - WP_CELLS);
	if (!taken)
		return;
	if (atomic_load(&cell->turn) == ticket) {
		cell->flags = 0;
		cell->nalso = 0;
		cell->watch = (struct wp_cell_watch){0};
		cell->record.header = (struct perf_event_header){0};
		wp_channel_post(channel, cell, ticket);
	}
	(void)wp_channel_wait(channel, cell, ticket);
	if (atomic_load(&cell->turn) == ticket + 2)
		wp_channel_give(cell, ticket);
}

/* After execve(2) the threads that were using the channel no longer exist. */
static void
clear_away(struct wp_channel *channel)
{
	const uint32_t first = atomic_load(&channel->served);
	uint32_t taken = atomic_load(&channel->ticket) - first;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		atomic_store(&channel->watch[i].serial, 0);
		atomic_store(&channel->watch[i].settled.number, 0);
	}
	atomic_store(&channel->request.state, 0);
	atomic_store(&channel->unlocks, atomic_load(&channel->locks));
	/* later tickets had no cell yet */
	if (taken > WP_CELLS) {
		taken = WP_CELLS;
		atomic_store(&channel->ticket, first + taken);
	}
	for (uint32_t i = 0; i < WP_CELLS; i++)
		finish(channel, first + i, i < taken);
}

int
wp_channel_join(struct wp_channel *channel)
{
	pid_t nobody = 0, self = getpid();

	if (!atomic_compare_exchange_strong(&channel->program, &nobody, self) &&
	    nobody != self)
		return -EBUSY;
	channel->narrow = WP_NARROW;
	if (nobody == 0)
		return 0;
	clear_away(channel);
	return 0;
}

/* The helper sets `helper' before `ready'. */
int
wp_channel_await(struct wp_channel *channel, int ms)
{
	while (atomic_load(&channel->ready) == 0) {
		int nap = ms < WP_FUTEX_PATIENCE ? ms : WP_FUTEX_PATIENCE;

		if (ms <= 0)
			return -ETIMEDOUT;
		if (wp_futex_wait(&channel->ready, 0, nap) == -ETIMEDOUT)
			ms -= nap;
	}
	return (atomic_load(&channel->helper) & FUTEX_OWNER_DIED) != 0 ?
	    -EPIPE : 0;
}

/* Wait for a free place in the root.  Returns NULL if its helper has ended. */
static struct wp_adoption *
find_place(struct wp_channel *root)
{
	uint64_t nap = NAP_NS;

	for (; wp_channel_has_helper(root); wp_clock_sleep(nap)) {
		for (unsigned i = 0; i < WP_ADOPTIONS_MAX; i++) {
			pid_t nobody = 0;

			if (atomic_compare_exchange_strong(
			    &root->adoption[i].pid, &nobody, getpid()))
				return &root->adoption[i];
		}
		nap = nap < NAP_MAX_NS ? 2 * nap : nap;
	}
	return NULL;
}

int
wp_channel_be_adopted(struct wp_channel *root, int fd, pid_t parent)
{
	struct wp_adoption *a = find_place(root);
	int result;

	if (a == NULL)
		return -EPIPE;
	a->parent = parent;
	a->fd = fd;
	atomic_store(&a->state, 1);
	wp_channel_ring(root);
	while (atomic_load(&a->state) == 1 && wp_channel_has_helper(root))
		(void)wp_futex_wait(&a->state, 1, WP_FUTEX_PATIENCE);
	result = atomic_load(&a->state) == 2 ? a->result : -EPIPE;
	atomic_store(&a->state, 0);
	atomic_store(&a->pid, 0);
	return result;
}

int
wp_channel_ask(struct wp_channel *channel)
{
	struct wp_request *request = &channel->request;

	if (!wp_channel_alive(channel))
		return -EPIPE;
	atomic_store(&request->state, 1);
	wp_channel_ring(channel);
	while (atomic_load(&request->state) == 1) {
		if (!wp_channel_alive(channel))
			return -EPIPE;
		(void)wp_futex_wait(&request->state, 1, WP_FUTEX_PATIENCE);
	}
	atomic_store(&request->state, 0);
	return request->result;
}

/*
 * The robust list has one entry, which lies outside of the channel; the kernel
 * finds the futex word by its offset from that.  It replaces libc's list of
 * this thread's robust mutexes, of which the helper has none.
 */
void
wp_channel_serve(struct wp_channel *channel)
{
	/* otherwise the library would need a function of the dynamic loader */
	static _Thread_local struct robust_list entry
	    __attribute__((tls_model("initial-exec")));
	static _Thread_local struct robust_list_head head
	    __attribute__((tls_model("initial-exec")));

	entry.next = &head.list;
	head.list.next = &entry;
	head.futex_offset = (char *)&channel->helper - (char *)&entry;
	head.list_op_pending = NULL;
	atomic_store(&channel->helper, (uint32_t)wp_libc_tid());
	(void)syscall(SYS_set_robust_list, &head, sizeof(head));
	wp_channel_serve_too(channel);
}

void
wp_channel_serve_too(struct wp_channel *channel)
{
	channel->helper_pid = getpid();
	atomic_store(&channel->helper, (uint32_t)wp_libc_tid());
	atomic_store(&channel->ready, 1);
	wp_futex_wake(&channel->ready);
}

/* The kernel does not find the word if the channel is unmapped before the
   thread ends. */
void
wp_channel_leave(struct wp_channel *channel)
{
	(void)atomic_fetch_or(&channel->helper, FUTEX_OWNER_DIED);
}

struct wp_adoption *
wp_channel_adoption(struct wp_channel *root)
{
	for (unsigned i = 0; i < WP_ADOPTIONS_MAX; i++) {
		struct wp_adoption *a = &root->adoption[i];
		const pid_t pid = atomic_load(&a->pid);

		if (pid == 0)
			continue;
		if (kill(pid, 0) != 0 && errno == ESRCH) {
			atomic_store(&a->state, 0);
			atomic_store(&a->pid, 0);
		} else if (atomic_load(&a->state) == 1)
			return a;
	}
	return NULL;
}

void
wp_channel_adopted(struct wp_adoption *a, int result)
{
	a->result = result;
	atomic_store(&a->state, 2);
	wp_futex_wake(&a->state);
}

struct wp_cell *
wp_channel_next(struct wp_channel *channel)
{
	uint32_t ticket = atomic_load(&channel->served);
	struct wp_cell *cell = &channel->cell[ticket % WP_CELLS];

	return atomic_load(&cell->turn) == ticket + 1 ? cell : NULL;
}

void
wp_channel_done(struct wp_channel *channel, struct wp_cell *cell)
{
	uint32_t ticket = atomic_fetch_add(&channel->served, 1);
	bool reply = (cell->flags & WP_CELL_REPLY) != 0;

	atomic_store(&cell->turn, ticket + (reply ? 2 : WP_CELLS));
	wp_futex_wake(&cell->turn);
}

bool
wp_channel_skip(struct wp_channel *channel)
{
	for (unsigned i = 0; i < WP_CELLS; i++) {
		if (wp_channel_next(channel) != NULL)
			return true;
		(void)atomic_fetch_add(&channel->served, 1);
	}
	return false;
}

bool
wp_channel_asked(const struct wp_channel *channel)
{
	return atomic_load(&channel->request.state) == 1;
}

void
wp_channel_answer(struct wp_channel *channel, int result)
{
	channel->request.result = result;
	atomic_store(&channel->request.state, 2);
	wp_futex_wake(&channel->request.state);
}

/* Hits come in bursts, and to wake the helper costs the thread that was hit
   more than the rest of its hit.  So poll for a while, unless the program needs
   the processor. */
static bool
rings_at_once(const struct wp_channel *channel, uint32_t heard)
{
	static long processors;
	uint64_t begin = wp_clock_ns();

	if (processors == 0)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	while (processors > 1 && wp_clock_ns() - begin < LISTEN_NS)
		if (atomic_load(&channel->bell) != heard)
			return true;
	return false;
}

void
wp_channel_sleep(struct wp_channel *channel, uint32_t *heard, int ms)
{
	uint32_t bell;

	if (ms > 0 && rings_at_once(channel, *heard)) {
		*heard = atomic_load(&channel->bell);
		return;
	}
	atomic_store(&channel->asleep, 1);
	bell = atomic_load(&channel->bell);
	if (bell == *heard)
		(void)wp_futex_wait(&channel->bell, bell, ms);
	atomic_store(&channel->asleep, 0);
	*heard = atomic_load(&channel->bell);
}
