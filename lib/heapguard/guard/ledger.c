/* ledger: every guarded block.  See ledger.h. */
#include "guard/ledger.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MOST = 1 << 26, FEWEST = 1 << 16 };

static struct hg_entry *all;	/* entries; the first is nobody's */
static uint32_t size;
static _Atomic uint32_t used = 1;

/* Entries that threads gave back, chained by their numbers; under a lock that
   nobody holds for long. */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static uint32_t spare;

/* Less where addresses are limited: most of them are the program's. */
int
hg_ledger_begin(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	(void)getrlimit(RLIMIT_AS, &limit);
	for (size = MOST; size >= FEWEST; size /= 2) {
		if (size * sizeof(*all) > limit.rlim_cur / 8)
			continue;
		void *at = mmap(NULL, size * sizeof(*all),
		    PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (at != MAP_FAILED) {
			all = at;
			return 0;
		}
	}
	size = 0;
	return -ENOMEM;
}

struct hg_entry *
hg_ledger_at(uint32_t number)
{
	return number == 0 || number >= atomic_load_explicit(&used,
	    memory_order_relaxed) ? NULL : &all[number];
}

uint32_t
hg_ledger_number(const struct hg_entry *entry)
{
	return (uint32_t)(entry - all);
}

uint32_t
hg_ledger_used(void)
{
	return atomic_load(&used);
}

/* False: it is not let go; this may be a handler that has interrupted who has
   it. */
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

/* What another thread was doing to the chain is not known. */
void
hg_ledger_forked(void)
{
	if (atomic_flag_test_and_set(&lock))
		spare = 0;
	leave();
}

static void
refill(struct hg_thread *t)
{
	const uint32_t half = sizeof(t->spare) / sizeof(t->spare[0]) / 2;
	uint32_t next;

	if (enter()) {
		while (spare != 0 && t->nspare < half) {
			t->spare[t->nspare++] = spare;
			spare = all[spare].number;
		}
		leave();
	}
	if (t->nspare > 0)
		return;
	next = atomic_load(&used);
	do {
		if (next + half > size)
			return;
	} while (!atomic_compare_exchange_weak(&used, &next, next + half));
	while (t->nspare < half) {
		t->spare[t->nspare] = next + half - 1 - t->nspare;
		t->nspare++;
	}
}

uint32_t
hg_ledger_take(struct hg_thread *t)
{
	if (t->nspare == 0)
		refill(t);
	return t->nspare == 0 ? 0 : t->spare[--t->nspare];
}

void
hg_ledger_give(struct hg_thread *t, uint32_t number)
{
	const uint32_t room = sizeof(t->spare) / sizeof(t->spare[0]);

	if (t->nspare == room && !enter()) {
		t->nspare /= 2;		/* these are lost */
	} else if (t->nspare == room) {
		while (t->nspare > room / 2) {
			const uint32_t one = t->spare[--t->nspare];

			all[one].number = spare;
			spare = one;
		}
		leave();
	}
	t->spare[t->nspare++] = number;
}

struct hg_entry *
hg_ledger_search(uint64_t block)
{
	const uint32_t n = hg_ledger_used();

	for (uint32_t i = 1; i < n; i++)
		if (atomic_load_explicit(&all[i].block,
		    memory_order_relaxed) == block)
			return &all[i];
	return NULL;
}

struct hg_entry *
hg_ledger_before(uint64_t address)
{
	const uint32_t n = hg_ledger_used();
	struct hg_entry *best = NULL;
	uint64_t at, last = 0;

	for (uint32_t i = 1; i < n; i++) {
		at = atomic_load_explicit(&all[i].block, memory_order_relaxed);
		if (at < address && at > last) {
			last = at;
			best = &all[i];
		}
	}
	return best;
}
