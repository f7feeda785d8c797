/*
 * watch: watches the bytes that another run found damaged.  See watch.h.
 *
 * A watch takes a debug register, of which there are few, so new blocks take
 * over the registers of old ones, except the register of the very block that
 * was damaged, as far as its number identifies it.  The rate of moves is
 * limited, because each takes microseconds for each thread.
 *
 * The functions here call libwatchpoint, which may allocate: allocations that
 * it makes are ignored.  So are those during a fork, because that library holds
 * its lock then.
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
#include "guard/report.h"
#include "guard/sample.h"
#include "watchpoint.h"

enum {
	SLOTS = 4,
	MOVES = 1000,		/* at most, per second */
	HITS = 8,		/* of a watch: enough to know the writer */
	PART = 20,		/* in a sampled run, moves may take 1/PART of
				   the time */
};
#define SECOND UINT64_C(1000000000)	/* ns; so long a sampled block keeps its
					   watch from equal ones */
#define AT_ONCE (SECOND / 10)	/* moves may take this much more at once */

/* Blocks that are watched. */
static struct slot {
	_Atomic uint32_t entry;		/* 0: none */
	struct wp_watch *watch;
	uint64_t age;			/* orders watches by their beginning */
	uint64_t since;			/* the time of that, ns */
	enum hg_level level;
	uint32_t rank;
	_Atomic uint32_t id;
	_Atomic uint64_t addr;		/* what is watched, */
	_Atomic uint32_t len;		/* and how many bytes */
} slot[SLOTS];

static struct {
	struct hg_wanted wanted[HG_WANTED_MAX];	/* n of them, of this program */
	uint32_t n;
	bool any_number;
	bool user_only;			/* the kernel is not watched */
	bool ready;			/* libwatchpoint is loaded */
	__typeof__(&wp_open) open;
	__typeof__(&wp_close) close;
	__typeof__(&wp_disable) disable;
	__typeof__(&wp_cause) cause;
	uint64_t ages;			/* the age of the newest watch */
	uint64_t second;		/* the time in seconds, */
	unsigned moves;			/* and the moves in that second */
	uint64_t entered;		/* processor time at enter(), ns */
	uint64_t spent;			/* by moves, ns */
	_Atomic bool forks;
	bool prepared;			/* handlers keep `forks' up to date */
} self;

static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

#define FIND(name)							\
	((__typeof__(&wp_##name))(uintptr_t)dlsym(RTLD_DEFAULT, "wp_" #name))

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
	const uint32_t given = atomic_load(&e->nwanted),
	    n = given < HG_WANTED_MAX ? given : HG_WANTED_MAX;

	if (n == 0 && e->sample == 0)
		return;
	self.user_only = e->user_only != 0;
	self.open = FIND(open);
	self.close = FIND(close);
	self.disable = FIND(disable);
	self.cause = FIND(cause);
	self.ready = self.open != NULL && self.close != NULL &&
	    self.disable != NULL && self.cause != NULL;
	if (!self.ready || e->sample != 0)
		return;
	self.any_number = e->any_number != 0;
	for (uint32_t i = 0; i < n; i++)
		if (is_sound(&e->wanted[i]) &&
		    hg_program_is(&e->wanted[i].image, self.any_number))
			self.wanted[self.n++] = e->wanted[i];
}

static bool
is_sampled(void)
{
	return hg_state.evidence != NULL && hg_state.evidence->sample != 0;
}

uint32_t
hg_watch_wants(uint64_t callers)
{
	if (is_sampled())
		return self.ready;
	for (uint32_t i = 0; i < self.n; i++)
		if (self.wanted[i].identity.callers == callers)
			return 1;
	return 0;
}

/* --- entering --- */

static uint64_t
clock_of(clockid_t id)
{
	struct timespec at;

	(void)clock_gettime(id, &at);
	return (uint64_t)at.tv_sec * SECOND + (uint64_t)at.tv_nsec;
}

/* Take the lock.  Its holder may wait for another process, so this thread
   sleeps meanwhile. */
static bool
enter(void)
{
	const struct timespec nap = {.tv_nsec = 100000};

	if (inside || atomic_load(&self.forks))
		return false;
	inside = true;
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		(void)syscall(SYS_nanosleep, &nap, NULL);
	self.entered = clock_of(CLOCK_THREAD_CPUTIME_ID);
	return true;
}

static void
leave(void)
{
	self.spent += clock_of(CLOCK_THREAD_CPUTIME_ID) - self.entered;
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

/* Register the handlers after libwatchpoint's, because those that run before a
   fork are called in reverse order. */
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

static bool
gives_way(const struct slot *s, const struct hg_place *p, uint64_t time)
{
	if (s->level != p->level)
		return s->level < p->level;
	return p->level != HG_SAMPLED || s->rank >= p->rank ||
	    time - s->since >= SECOND;
}

static bool
is_before(const struct slot *s, const struct slot *other)
{
	return other == NULL || s->level < other->level ||
	    (s->level == other->level && s->age < other->age);
}

/* A free slot, or the oldest that gives way.  NULL: none does. */
static struct slot *
choose(const struct hg_place *p, uint64_t time)
{
	struct slot *oldest = NULL;

	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *s = &slot[i];

		if (atomic_load(&s->entry) == 0)
			return s;
		if (gives_way(s, p, time) && is_before(s, oldest))
			oldest = s;
	}
	return oldest;
}

static bool
is_too_fast(uint64_t time)
{
	if (time / SECOND != self.second)
		self.moves = 0;
	self.second = time / SECOND;
	return self.moves++ >= MOVES;
}

/* Unused time is not saved up for later. */
static bool
is_too_dear(uint64_t time)
{
	const uint64_t may = time / PART;

	if (self.spent + AT_ONCE < may)
		self.spent = may - AT_ONCE;
	return self.spent > may;
}

static void
refuse(void)
{
	struct hg_evidence *e = hg_state.evidence;

	(void)atomic_fetch_add(&e->refusals, 1);
	(void)strncpy(e->cause, self.cause(), sizeof(e->cause) - 1);
}

/* Others may hold debug registers, too.  If none is free, another watch of ours
   is closed. */
static int
open_watch(struct slot *s, const struct wp_attr *attr,
    const struct hg_place *p, uint64_t time)
{
	int err = self.open(attr, &s->watch);

	if (err == -ENOSPC) {
		struct slot *other = NULL;

		for (unsigned i = 0; i < SLOTS; i++)
			if (&slot[i] != s && slot[i].watch != NULL &&
			    gives_way(&slot[i], p, time))
				other = &slot[i];
		if (other != NULL) {
			take_back(other);
			err = self.open(attr, &s->watch);
		}
	}
	return err;
}

/* Check the block before the program continues, because the program may end
   before the block is freed. */
static void
on_hit(const struct wp_hit *hit, void *arg)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const uint32_t number = atomic_load(&slot[i].entry);
		struct hg_entry *e = hg_ledger_at(number);
		const uint64_t block = e == NULL ? 0 : atomic_load(&e->block);

		if (block != 0 && atomic_load(&slot[i].id) ==
		    (uint32_t)(uintptr_t)arg)
			hg_report_block(e, block, HG_AT_WRITE, NULL);
	}
	(void)hit;
}

void
hg_watch_written(const void *p, int64_t bytes, const struct hg_record *from)
{
	if (!self.user_only || bytes <= 0)
		return;
	for (unsigned i = 0; i < SLOTS; i++) {
		struct hg_entry *e = hg_ledger_at(atomic_load(&slot[i].entry));
		const uint64_t block = e == NULL ? 0 : atomic_load(&e->block);
		const uint64_t at = atomic_load(&slot[i].addr);

		if (block != 0 && at < (uintptr_t)p + (uint64_t)bytes &&
		    (uintptr_t)p < at + atomic_load(&slot[i].len))
			hg_report_block(e, block, HG_AT_WRITE, from);
	}
}

static int
watch(const struct hg_entry *e, uint64_t block, const struct hg_place *p)
{
	struct wp_attr attr = {
		.size = sizeof(attr), .len = p->len, .label = p->label,
		.addr = (void *)(uintptr_t)(block + (uint64_t)p->offset),
		.action = WP_PRINT, .flags = WP_FORK, .limit = HITS,
	};
	const uint64_t time = clock_of(CLOCK_MONOTONIC);
	struct slot *s = choose(p, time);
	int err;

	if (s == NULL)
		return -EBUSY;
	if (p->level != HG_EXACT && (is_too_fast(time) ||
	    (p->id != 0 && is_too_dear(time))))
		return -EAGAIN;
	if (p->id != 0) {
		attr.action |= WP_CALL;
		attr.handler = on_hit;
		attr.arg = (void *)(uintptr_t)p->id;
	}
	if (atomic_load(&s->entry) != 0)
		take_back(s);
	/* set before the first hit, which reads them */
	atomic_store(&s->id, p->id);
	atomic_store(&s->addr, (uintptr_t)attr.addr);
	atomic_store(&s->len, p->len);
	atomic_store(&s->entry, hg_ledger_number(e));
	if ((err = open_watch(s, &attr, p, time)) < 0) {
		atomic_store(&s->entry, 0);
		refuse();
		return err;
	}
	prepare();
	s->age = ++self.ages;
	s->since = time;
	s->level = p->level;
	s->rank = p->rank;
	return 0;
}

int
hg_watch_set(const struct hg_entry *e, uint64_t block,
    const struct hg_place *p)
{
	int err;

	if (!enter())
		return -EBUSY;
	err = watch(e, block, p);
	leave();
	return err;
}

uint32_t
hg_watch_id(const struct hg_entry *e)
{
	const uint32_t number = hg_ledger_number(e);

	for (unsigned i = 0; i < SLOTS; i++)
		if (atomic_load(&slot[i].entry) == number)
			return atomic_load(&slot[i].id);
	return 0;
}

/* --- blocks --- */

static bool
is_wanted(const struct hg_entry *e, const struct hg_wanted *w)
{
	return w->identity.callers == hg_callers_hash(e->alloc) &&
	    w->identity.size == hg_entry_size(e) && (self.any_number ||
	    w->identity.number == e->number ||
	    w->identity.in_thread == hg_ledger_in_thread(e));
}

/* Whether the same bytes of the block are already wanted for another damaged
   block.  They are watched only once, for the one with the block's number if
   there is one. */
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
watch_wanted(const struct hg_entry *e, uint64_t block,
    const struct hg_wanted *w)
{
	const struct hg_place place = {
		.offset = w->offset, .len = w->len, .label = w->label,
		.level = e->number == w->identity.number ? HG_EXACT : HG_ALIKE,
	};

	(void)atomic_fetch_add(&hg_state.evidence->blocks, 1);
	if (hg_watch_set(e, block, &place) == 0)
		(void)atomic_fetch_add(&hg_state.evidence->watched, 1);
}

static void
watch_all(struct hg_entry *e, uint64_t block, bool freed)
{
	for (uint32_t i = 0; i < self.n; i++) {
		const struct hg_wanted *w = &self.wanted[i];

		if (!is_wanted(e, w))
			continue;
		e->flags |= HG_WANTED;
		if ((w->freed != 0) == freed && !is_another(e, w))
			watch_wanted(e, block, w);
	}
}

void
hg_watch_allocated(struct hg_entry *e, uint64_t block)
{
	const int saved = errno;

	if (inside) {
		hg_sample_leave_out(e->alloc);
	} else if (is_sampled()) {
		hg_sample_allocated(e, block);
	} else {
		hg_callers_set_due(e->alloc, e->number);
		watch_all(e, block, false);
	}
	errno = saved;
}

void
hg_watch_freed(struct hg_entry *e, uint64_t block)
{
	const int saved = errno;

	if (is_sampled())
		hg_sample_freed(e, block);
	else
		watch_all(e, block, true);
	errno = saved;
}

static bool
is_watched(uint32_t number)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (atomic_load(&slot[i].entry) == number)
			return true;
	return false;
}

/* Where libwatchpoint must not be entered, the watch is disabled, and closed
   later. */
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
