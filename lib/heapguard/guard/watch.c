/*
 * watch: the bytes that another run found damaged.  See watch.h.
 *
 * A watch takes a debug register, of which there are few: new blocks take those
 * of old ones, but for the very one that was damaged, as far as its number says
 * so.  Moves are bounded, since each takes microseconds for each thread.
 *
 * What is done here calls the watch library, which may allocate: then nothing
 * is done.  Nor is while the process forks, because that library has its lock
 * then.
 */
#include "guard/watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guard/callers.h"
#include "guard/programs.h"
#include "watchpoint.h"

enum {
	SLOTS = 4,
	MOVES = 1000,		/* a second, at most */
	HITS = 8,		/* of a watch: then it has said who it was */
};

/* Blocks that are watched. */
static struct slot {
	_Atomic uint32_t entry;		/* 0: none */
	struct wp_watch *watch;
	uint64_t age;			/* when it was taken */
	bool exact;			/* by its number in the program */
} slot[SLOTS];

static struct {
	struct hg_wanted wanted[HG_WANTED_MAX];	/* n of them, of this program */
	uint32_t n;
	bool any_number;
	__typeof__(&wp_open) open;
	__typeof__(&wp_close) close;
	__typeof__(&wp_disable) disable;
	__typeof__(&wp_cause) cause;
	uint64_t ages, second;
	unsigned moves;			/* in this second */
	_Atomic bool forks;
	bool prepared;			/* forks is kept */
} self;

static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

#define FIND(name)							\
	((__typeof__(&wp_##name))(uintptr_t)dlsym(RTLD_NEXT, "wp_" #name))

static bool
is_sound(const struct hg_wanted *w)
{
	return (w->len == 1 || w->len == 2 || w->len == 4 || w->len == 8) &&
	    w->offset >= -16 && w->offset < INT64_C(1) << 48;
}

void
hg_watch_begin(void)
{
	const struct hg_evidence *e = hg_state.evidence;
	const uint32_t n = e->nwanted < HG_WANTED_MAX ? e->nwanted :
	    HG_WANTED_MAX;

	if (n == 0)
		return;
	self.open = FIND(open);
	self.close = FIND(close);
	self.disable = FIND(disable);
	self.cause = FIND(cause);
	if (self.open == NULL || self.close == NULL || self.disable == NULL ||
	    self.cause == NULL)
		return;
	self.any_number = e->any_number != 0;
	for (uint32_t i = 0; i < n; i++)
		if (is_sound(&e->wanted[i]) &&
		    hg_program_is(&e->wanted[i].image, self.any_number))
			self.wanted[self.n++] = e->wanted[i];
}

bool
hg_watch_wants(uint64_t callers)
{
	for (uint32_t i = 0; i < self.n; i++)
		if (self.wanted[i].identity.callers == callers)
			return true;
	return false;
}

/* --- entering --- */

/* Who has the lock may wait for another process: the processor is left to
   that. */
static bool
enter(void)
{
	const struct timespec nap = {.tv_nsec = 100000};

	if (inside || atomic_load(&self.forks))
		return false;
	inside = true;
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		(void)syscall(SYS_nanosleep, &nap, NULL);
	return true;
}

static void
leave(void)
{
	atomic_flag_clear_explicit(&lock, memory_order_release);
	inside = false;
}

static void
before_fork(void)
{
	atomic_store(&self.forks, true);
}

static void
after_fork(void)
{
	atomic_store(&self.forks, false);
}

void
hg_watch_forked(void)
{
	atomic_flag_clear(&lock);
	inside = false;
}

/* Behind the watch library's handlers: those that come before a fork are called
   in the other order. */
static void
prepare(void)
{
	if (!self.prepared)
		self.prepared = pthread_atfork(before_fork, after_fork,
		    after_fork) == 0;
}

/* --- slots --- */

static void
take_back(struct slot *s)
{
	self.close(s->watch);
	s->watch = NULL;
	atomic_store(&s->entry, 0);
}

/* One that is free, or the oldest that gives way.  NULL: none does. */
static struct slot *
choose(bool exact)
{
	struct slot *oldest = NULL;

	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *s = &slot[i];

		if (atomic_load(&s->entry) == 0)
			return s;
		if ((!s->exact || exact) && (oldest == NULL ||
		    s->exact < oldest->exact || (s->exact == oldest->exact &&
		    s->age < oldest->age)))
			oldest = s;
	}
	return oldest;
}

static bool
is_too_fast(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if ((uint64_t)now.tv_sec != self.second)
		self.moves = 0;
	self.second = (uint64_t)now.tv_sec;
	return self.moves++ >= MOVES;
}

static void
refuse(void)
{
	struct hg_evidence *e = hg_state.evidence;

	(void)atomic_fetch_add(&e->refusals, 1);
	(void)strncpy(e->cause, self.cause(), sizeof(e->cause) - 1);
}

/* Others may have debug registers, too: then one of ours is given up. */
static int
open_watch(struct slot *s, const struct wp_attr *attr, bool exact)
{
	int err = self.open(attr, &s->watch);

	if (err == -ENOSPC) {
		struct slot *other = NULL;

		for (unsigned i = 0; i < SLOTS; i++)
			if (atomic_load(&slot[i].entry) != 0 && (exact ||
			    !slot[i].exact))
				other = &slot[i];
		if (other != NULL) {
			take_back(other);
			err = self.open(attr, &s->watch);
		}
	}
	return err;
}

static void
watch(const struct hg_entry *e, uint64_t block, const struct hg_wanted *w)
{
	const bool exact = e->number == w->identity.number;
	const struct wp_attr attr = {
		.size = sizeof(attr), .len = w->len, .label = w->label,
		.addr = (void *)(uintptr_t)(block + (uint64_t)w->offset),
		.action = WP_PRINT, .flags = WP_FORK, .limit = HITS,
	};
	struct slot *s = choose(exact);

	if (s == NULL || (!exact && is_too_fast()))
		return;
	if (atomic_load(&s->entry) != 0)
		take_back(s);
	if (open_watch(s, &attr, exact) < 0) {
		refuse();
		return;
	}
	prepare();
	s->age = ++self.ages;
	s->exact = exact;
	atomic_store(&s->entry, hg_ledger_number(e));
	(void)atomic_fetch_add(&hg_state.evidence->watched, 1);
}

/* --- blocks --- */

static bool
is_wanted(const struct hg_entry *e, const struct hg_wanted *w)
{
	return w->identity.callers == hg_callers_hash(e->alloc) &&
	    w->identity.size == e->size && (self.any_number ||
	    w->identity.number == e->number ||
	    w->identity.in_thread == e->in_thread);
}

/* The same bytes of a block are watched once: for the one whose number it has,
   if there is one, so that nobody is named for what another did. */
static bool
is_another(const struct hg_entry *e, const struct hg_wanted *w)
{
	const bool exact = e->number == w->identity.number;

	for (uint32_t i = 0; i < self.n; i++) {
		const struct hg_wanted *other = &self.wanted[i];
		const bool is_exact = e->number == other->identity.number;

		if (other != w && other->offset == w->offset &&
		    other->freed == w->freed && is_wanted(e, other) &&
		    (is_exact != exact ? is_exact : other < w))
			return true;
	}
	return false;
}

static void
watch_all(struct hg_entry *e, uint64_t block, bool freed)
{
	const int saved = errno;

	for (uint32_t i = 0; i < self.n; i++) {
		const struct hg_wanted *w = &self.wanted[i];

		if (!is_wanted(e, w))
			continue;
		e->flags |= HG_WANTED;
		if ((w->freed != 0) != freed || is_another(e, w))
			continue;
		(void)atomic_fetch_add(&hg_state.evidence->seen, 1);
		if (enter()) {
			watch(e, block, w);
			leave();
		}
	}
	errno = saved;
}

void
hg_watch_allocated(struct hg_entry *e, uint64_t block)
{
	watch_all(e, block, false);
}

void
hg_watch_freed(struct hg_entry *e, uint64_t block)
{
	watch_all(e, block, true);
}

static bool
is_watched(uint32_t number)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (atomic_load(&slot[i].entry) == number)
			return true;
	return false;
}

/* Where the library may not be entered, its watch is left for later: what it
   sees meanwhile is not wanted. */
static void
disable(uint32_t number)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (atomic_load(&slot[i].entry) == number)
			(void)self.disable(slot[i].watch);
}

void
hg_watch_end(const struct hg_entry *e)
{
	const uint32_t number = hg_ledger_number(e);
	const int saved = errno;

	if (!is_watched(number))
		return;
	if (enter()) {
		for (unsigned i = 0; i < SLOTS; i++)
			if (atomic_load(&slot[i].entry) == number)
				take_back(&slot[i]);
		leave();
	} else {
		disable(number);
	}
	errno = saved;
}
