/* ledger: every guarded block.  See ledger.h. */
#include "guard/ledger.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
	MOST = 1 << 26, FEWEST = 1 << 16,
	FRESH = 32,		/* new entries that are taken at a time */
};

struct hg_ledger hg_ledger = {.used = 1};
static uint32_t size;

/* Numbers of entries that threads gave back, under a lock that is never held
   for long. */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static uint32_t *spare, nspare;

/* Where RLIMIT_AS is set, at most an eighth of it is taken: the rest is for the
   program. */
int
hg_ledger_begin(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	(void)getrlimit(RLIMIT_AS, &limit);
	for (size = MOST; size >= FEWEST; size /= 2) {
		const size_t each = sizeof(struct hg_entry) +
		    sizeof(*hg_ledger.in_thread) + sizeof(*spare);

		if (size * each > limit.rlim_cur / 8)
			continue;
		void *at = mmap(NULL, size * each, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (at != MAP_FAILED) {
			hg_ledger.all = at;
			hg_ledger.in_thread = (uint32_t *)
			    &hg_ledger.all[size];
			spare = &hg_ledger.in_thread[size];
			return 0;
		}
	}
	size = 0;
	return -ENOMEM;
}

uint32_t
hg_ledger_used(void)
{
	return atomic_load(&hg_ledger.used);
}

/* Take the lock.  False: it is not released; this may be a signal handler that
   has interrupted its holder. */
static bool
enter(void)
{
	for (int i = 0; i < 10000; i++) {
		if (!atomic_flag_test_and_set_explicit(&lock,
		    memory_order_acquire))
			return true;
		(void)sched_yield();
	}
	return false;
}

static void
leave(void)
{
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

/* If another thread held the lock at the fork, the spare entries may be
   inconsistent, so they are given up. */
void
hg_ledger_forked(void)
{
	if (atomic_flag_test_and_set(&lock))
		nspare = 0;
	leave();
}

void
hg_ledger_refill(struct hg_thread *t)
{
	uint32_t next;

	if (enter()) {
		while (nspare > 0 && t->nspare < HG_SPARE / 2)
			t->spare[t->nspare++] = spare[--nspare];
		leave();
	}
	if (t->nspare > 0)
		return;
	next = atomic_load(&hg_ledger.used);
	do {
		if (next + FRESH > size)
			return;
	} while (!atomic_compare_exchange_weak(&hg_ledger.used, &next,
	    next + FRESH));
	while (t->nspare < FRESH) {
		t->spare[t->nspare] = next + FRESH - 1 - t->nspare;
		t->nspare++;
	}
}

void
hg_ledger_drain(struct hg_thread *t)
{
	if (!enter()) {
		t->nspare /= 2;		/* the others are lost */
		return;
	}
	while (t->nspare > HG_SPARE / 2)
		spare[nspare++] = t->spare[--t->nspare];
	leave();
}

struct hg_entry *
hg_ledger_search(uint64_t block)
{
	const uint32_t n = hg_ledger_used();

	for (uint32_t i = 1; i < n; i++)
		if (atomic_load_explicit(&hg_ledger.all[i].block,
		    memory_order_relaxed) == block)
			return &hg_ledger.all[i];
	return NULL;
}

struct hg_entry *
hg_ledger_before(uint64_t address)
{
	const uint32_t n = hg_ledger_used();
	struct hg_entry *best = NULL;
	uint64_t at, last = 0;

	for (uint32_t i = 1; i < n; i++) {
		at = atomic_load_explicit(&hg_ledger.all[i].block,
		    memory_order_relaxed);
		if (at < address && at > last) {
			last = at;
			best = &hg_ledger.all[i];
		}
	}
	return best;
}

struct hg_entry *
hg_ledger_around(uint64_t address)
{
	struct hg_entry *e = hg_ledger_before(address);
	const uint64_t at = e == NULL ? 0 : atomic_load(&e->block);

	return at != 0 && address - at < hg_entry_size(e) ? e : NULL;
}
