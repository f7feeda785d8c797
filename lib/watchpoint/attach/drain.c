/*
 * drain: moves records from the rings into memory.
 *
 * Overview: a list of blocks.  The thread appends at its end, the user takes
 * from its beginning, and neither waits for the other: how far a block is
 * filled, and which one follows, are stored after the bytes that this makes
 * readable.
 *
 *	first                                    last
 *	[~~~~~~~|======] -> [=========] -> [=====|     ]
 *	        at                               used
 *
 * A block that has been read is used again.  The user may look at records
 * before taking them, in the same order: `seen' is then ahead of `first'.
 *
 * It also makes marks of tickets (ticket_marks.h), which follow all records
 * that were made before them.
 *
 * The thread has priority over everything that waits for a processor, because a
 * ring fills within milliseconds.  It only copies what watched programs have
 * caused, and is woken often, so each turn is short.
 */
#include "attach/drain.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attach/ticket_marks.h"
#include "ring/ring.h"
#include "os/clock.h"

enum {
	BLOCK = 1 << 20,	/* bytes */
	SPARE = 16,		/* unused blocks that are kept */
	LOOK_MS = 20,	/* ms between looks at the rings when nothing happens */
	BUSY = BLOCK / 4,	/* if a look finds this many bytes, the next
				   one follows soon, because BPF programs
				   wake nobody when they write: */
	BUSY_MS = 2,
	FULL_MS = 1,		/* ms between looks when there is no room */
	NICE = -10,	/* of the thread, if real-time priority is refused */
	ON_ITS_WAY = 1000000,	/* ns until a record is certain to be in its
				   ring */
	LINE = 64,		/* bytes in a cache line */
	HEAD_LINES = 8,		/* lines of a record: registers and the top
				   of the stack */
};

struct block {
	_Atomic(struct block *) next;	/* the next newer one, or NULL */
	_Atomic size_t used;		/* bytes */
	_Alignas(8) uint8_t bytes[];
};

#define BLOCK_ROOM (BLOCK - sizeof(struct block))
_Static_assert(BLOCK_ROOM > UINT16_MAX, "any record fits into a block");

struct wp_drain {
	struct wp_rings *rings;
	pthread_t thread;
	bool running;
	/* used by the user: */
	struct block *first;
	size_t at;			/* of the next record in first */
	struct block *seen;		/* the block of the next record that
					   wp_drain_look returns, */
	size_t seen_at;			/* and its place */
	/* used by the thread: */
	struct block *last;
	const struct perf_event_header *held;	/* a record that found no
						   room, or NULL */
	/* used by both: */
	_Atomic uint64_t ready;		/* ns */
	atomic_bool stopping;
	int filled;			/* eventfd: there are records */
	int wanted;			/* eventfd: the thread has to stop */
	pthread_mutex_t marking;	/* protects the next two */
	struct wp_ticket_marks *marks;		/* NULL if none are made */
	bool marked;			/* the last marks have been put */
	pthread_mutex_t lock;		/* protects the following members */
	struct block *spare;		/* list of nspare blocks */
	unsigned nspare;
	size_t blocks, most;		/* how many there are, and may be */
};

/* MAP_POPULATE, because filling it page by page would take longer. */
static struct block *
block_new(void)
{
	void *bytes = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

static void
block_free(struct block *block)
{
	(void)munmap(block, BLOCK);
}

static struct block *
take_spare(struct wp_drain *drain, bool *may_have_more)
{
	struct block *block;

	(void)pthread_mutex_lock(&drain->lock);
	if ((block = drain->spare) != NULL) {
		drain->spare = atomic_load(&block->next);
		drain->nspare--;
	}
	*may_have_more = block == NULL && drain->blocks < drain->most;
	drain->blocks += *may_have_more;
	(void)pthread_mutex_unlock(&drain->lock);
	return block;
}

/* Returns an empty block, or NULL if there is none now. */
static struct block *
block_take(struct wp_drain *drain)
{
	bool more;
	struct block *block = take_spare(drain, &more);

	if (more && (block = block_new()) == NULL) {
		(void)pthread_mutex_lock(&drain->lock);
		drain->blocks--;
		(void)pthread_mutex_unlock(&drain->lock);
	}
	if (block == NULL)
		return NULL;
	atomic_store(&block->next, NULL);
	atomic_store(&block->used, 0);
	return block;
}

static void
block_give(struct wp_drain *drain, struct block *block)
{
	bool keep;

	(void)pthread_mutex_lock(&drain->lock);
	if ((keep = drain->nspare < SPARE)) {
		atomic_store(&block->next, drain->spare);
		drain->spare = block;
		drain->nspare++;
	} else
		drain->blocks--;
	(void)pthread_mutex_unlock(&drain->lock);
	if (!keep)
		block_free(block);
}

/* Append a record.  Returns false if there is no room. */
static bool
put(struct wp_drain *drain, const struct perf_event_header *header)
{
	struct block *last = drain->last;
	size_t used = atomic_load_explicit(&last->used, memory_order_relaxed);

	if (BLOCK_ROOM - used < header->size) {
		if ((last = block_take(drain)) == NULL)
			return false;
		atomic_store_explicit(&drain->last->next, last,
		    memory_order_release);
		drain->last = last;
		used = 0;
	}
	memcpy(last->bytes + used, header, header->size);
	atomic_store_explicit(&last->used, used + header->size,
	    memory_order_release);
	return true;
}

static void
say(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

/* Take everything from the rings except records that may still arrive out of
   order.  *taken is set to the number of bytes.  Returns false if there is no
   room. */
static bool
take(struct wp_drain *drain, size_t *taken)
{
	const uint64_t horizon = wp_clock_ns() - ON_ITS_WAY;

	*taken = 0;

	while (!atomic_load(&drain->stopping)) {
		if (drain->held == NULL)
			drain->held = wp_rings_next(drain->rings, horizon);
		if (drain->held == NULL || !put(drain, drain->held))
			break;
		*taken += drain->held->size;
		drain->held = NULL;
	}
	if (drain->held == NULL && !atomic_load(&drain->stopping))
		atomic_store(&drain->ready, horizon);
	if (*taken > 0)
		say(drain->filled);
	return drain->held == NULL;
}

/* Append the marks that belong after the records taken so far, and make new
   ones.  Returns whether a mark waits for its place. */
static bool
take_marks(struct wp_drain *drain)
{
	const uint64_t ready = atomic_load(&drain->ready);
	const struct perf_event_header *header;
	struct wp_ticket_marks *marks;
	bool put_any = false, waits = false;

	(void)pthread_mutex_lock(&drain->marking);
	marks = drain->marks;
	while (marks != NULL &&
	    (header = wp_ticket_marks_next(marks, ready)) != NULL &&
	    put(drain, header)) {
		wp_ticket_marks_take(marks);
		put_any = true;
	}
	if (marks != NULL) {
		wp_ticket_marks_look(marks, false);
		waits = wp_ticket_marks_wait(marks);
	}
	(void)pthread_mutex_unlock(&drain->marking);
	if (put_any)
		say(drain->filled);
	return waits;
}

/* Get real-time priority, or a better nice value, so that the thread does not
   wait for its turn.  Not if there is a limit for real-time CPU time, which
   would end the process. */
static void
come_first(void)
{
	const struct sched_param lowest = {.sched_priority = 1};
	struct rlimit time;

	if (getrlimit(RLIMIT_RTTIME, &time) == 0 &&
	    time.rlim_cur == RLIM_INFINITY &&
	    pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0)
		return;
	(void)setpriority(PRIO_PROCESS, 0, NICE);	/* applies to this
							   thread only */
}

static void *
drain_thread(void *arg)
{
	struct wp_drain *drain = arg;
	const unsigned n = wp_rings_count(drain->rings);
	const bool bpf = wp_rings_bpf(drain->rings, 0) >= 0;
	struct pollfd p[1 + n];

	come_first();
	p[0] = (struct pollfd){.fd = drain->wanted, .events = POLLIN};
	for (unsigned i = 0; i < n; i++)
		p[1 + i] = (struct pollfd){
			.fd = wp_rings_fd(drain->rings, i), .events = POLLIN,
		};
	while (!atomic_load(&drain->stopping)) {
		size_t taken;
		const bool room = take(drain, &taken);
		const bool soon = room && take_marks(drain);

		(void)poll(p, room ? 1 + n : 1, !room ? FULL_MS :
		    soon || (bpf && taken > BUSY) ? BUSY_MS : LOOK_MS);
	}
	return NULL;
}

/* Signals are for the user's threads, except those that this thread may raise
   itself. */
static int
make_thread(struct wp_drain *drain)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	sigset_t others, before;
	int err;

	(void)sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)sigdelset(&others, own[i]);
	(void)pthread_sigmask(SIG_BLOCK, &others, &before);
	err = pthread_create(&drain->thread, NULL, drain_thread, drain);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	drain->running = err == 0;
	return -err;
}

/* One spare block is made at once, so that the thread can always get to the
   next block, however little memory there is then. */
static int
make_blocks(struct wp_drain *drain)
{
	struct block *spare;

	drain->first = drain->seen = drain->last = block_take(drain);
	if (drain->first == NULL || (spare = block_take(drain)) == NULL)
		return -ENOMEM;
	block_give(drain, spare);
	return 0;
}

int
wp_drain_start(struct wp_drain **out, struct wp_rings *rings, size_t memory,
    struct wp_cause *cause)
{
	struct wp_drain *drain = calloc(1, sizeof(*drain));
	int err;

	if (drain == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	drain->rings = rings;
	drain->most = (memory < WP_DRAIN_MIN ? WP_DRAIN_MIN : memory) / BLOCK;
	(void)pthread_mutex_init(&drain->lock, NULL);
	(void)pthread_mutex_init(&drain->marking, NULL);
	drain->filled = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	drain->wanted = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = drain->filled < 0 || drain->wanted < 0 ? -errno :
	    make_blocks(drain);
	if (err == 0)
		err = make_thread(drain);
	if (err == 0) {
		*out = drain;
		return 0;
	}
	wp_drain_free(drain);
	return err == -ENOMEM ? wp_cause_set(cause, WP_CAUSE_NO_MEMORY) :
	    wp_cause_errno(cause, "making the thread that empties the rings",
	    -err);
}

void
wp_drain_marks(struct wp_drain *drain, struct wp_target *target)
{
	struct wp_ticket_marks *marks = target == NULL ? NULL :
	    wp_ticket_marks_new(target);

	(void)pthread_mutex_lock(&drain->marking);
	wp_ticket_marks_free(drain->marks);
	drain->marks = marks;
	(void)pthread_mutex_unlock(&drain->marking);
}

int
wp_drain_fd(const struct wp_drain *drain)
{
	return drain->filled;
}

uint64_t
wp_drain_ready(struct wp_drain *drain)
{
	uint64_t n;

	(void)!read(drain->filled, &n, sizeof(n));
	return atomic_load(&drain->ready);
}

/* Whether the block has a record at this place.  If not, *next is the block
   that follows, or NULL if there is none yet. */
static bool
has_more(const struct block *block, size_t at, struct block **next)
{
	*next = NULL;
	if (at != atomic_load_explicit(&block->used, memory_order_acquire))
		return true;
	*next = atomic_load_explicit(&block->next, memory_order_acquire);
	/* the block was complete before the next one was linked */
	return *next != NULL && at != atomic_load_explicit(&block->used,
	    memory_order_relaxed);
}

/* Whether there is a record; moves to the next block if necessary. */
static bool
has_next(struct wp_drain *drain)
{
	struct block *next;

	while (!has_more(drain->first, drain->at, &next)) {
		if (next == NULL)
			return false;
		if (drain->seen == drain->first) {
			drain->seen = next;
			drain->seen_at = 0;
		}
		block_give(drain, drain->first);
		drain->first = next;
		drain->at = 0;
	}
	return true;
}

/* The same for records that have not been seen. */
static bool
has_unseen(struct wp_drain *drain)
{
	struct block *next;

	while (!has_more(drain->seen, drain->seen_at, &next)) {
		if (next == NULL)
			return false;
		drain->seen = next;
		drain->seen_at = 0;
	}
	return true;
}

/* The last marks, after those that are still unfinished. */
static const struct perf_event_header *
left_marks(struct wp_drain *drain)
{
	struct wp_ticket_marks *marks = drain->marks;
	const struct perf_event_header *header;

	if (marks == NULL)
		return NULL;
	header = wp_ticket_marks_next(marks, UINT64_MAX);
	if (header == NULL && !drain->marked) {
		drain->marked = true;
		wp_ticket_marks_look(marks, true);
		header = wp_ticket_marks_next(marks, UINT64_MAX);
	}
	if (header != NULL)
		wp_ticket_marks_take(marks);
	return header;
}

/* The thread may have ended before it took all that it had seen, so the rings
   are read again. */
static const struct perf_event_header *
left_in_rings(struct wp_drain *drain)
{
	const struct perf_event_header *header = drain->held;

	drain->held = NULL;
	for (int looks = 0; header == NULL && looks < 2; looks++)
		header = wp_rings_next(drain->rings, UINT64_MAX);
	return header != NULL ? header : left_marks(drain);
}

/* Prefetch the next record, if it is there and as large as this one: its first
   lines and its end, as they are in the cache of the processor that the thread
   ran on.  (gcc removes calls of functions that do nothing else.) */
__attribute__((always_inline)) static inline void
prefetch_next(const struct wp_drain *drain, size_t size)
{
	const uint8_t *next = drain->first->bytes + drain->at;

	if (size < HEAD_LINES * LINE || BLOCK_ROOM - drain->at < size)
		return;
	for (size_t i = 0; i < HEAD_LINES; i++)
		__builtin_prefetch(next + i * LINE);
	__builtin_prefetch(next + size - 1);
}

const struct perf_event_header *
wp_drain_next(struct wp_drain *drain)
{
	const struct perf_event_header *header;

	if (!has_next(drain))
		return drain->running ? NULL : left_in_rings(drain);
	header = (const void *)(drain->first->bytes + drain->at);
	drain->at += header->size;
	prefetch_next(drain, header->size);
	return header;
}

/* After the thread has ended, what it left in the rings is returned in the same
   order. */
const struct perf_event_header *
wp_drain_look(struct wp_drain *drain)
{
	const struct perf_event_header *header;

	while (!has_unseen(drain)) {
		if (drain->running || (header = left_in_rings(drain)) == NULL)
			return NULL;
		if (!put(drain, header)) {
			drain->held = header;
			return NULL;
		}
	}
	header = (const void *)(drain->seen->bytes + drain->seen_at);
	drain->seen_at += header->size;
	return header;
}

void
wp_drain_stop(struct wp_drain *drain)
{
	if (drain == NULL || !drain->running)
		return;
	atomic_store(&drain->stopping, true);
	say(drain->wanted);
	(void)pthread_join(drain->thread, NULL);
	drain->running = false;
}

static void
free_list(struct block *block)
{
	while (block != NULL) {
		struct block *next = atomic_load(&block->next);

		block_free(block);
		block = next;
	}
}

void
wp_drain_free(struct wp_drain *drain)
{
	if (drain == NULL)
		return;
	wp_drain_stop(drain);
	free_list(drain->first);
	free_list(drain->spare);
	if (drain->filled >= 0)
		(void)close(drain->filled);
	if (drain->wanted >= 0)
		(void)close(drain->wanted);
	(void)pthread_mutex_destroy(&drain->lock);
	(void)pthread_mutex_destroy(&drain->marking);
	wp_ticket_marks_free(drain->marks);
	free(drain);
}
