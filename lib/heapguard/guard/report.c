/* report: findings, from this process into the evidence.  See report.h. */
#include "guard/report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guard/callers.h"
#include "guard/programs.h"
#include "guard/sample.h"
#include "guard/watch.h"

enum { WAIT = 1000 };	/* for other threads, ms */

/* System calls are made by syscall(2), which is no cancellation point: a thread
   that is cancelled here would never release what others wait for. */

/* --- mappings --- */

/* Parse a line of /proc/self/maps.  False: it is not code of a file. */
static bool
parse_map(char *line, struct hg_map *map)
{
	char *at = line, *path = strchr(line, '/');
	uint64_t end;

	*map = (struct hg_map){.start = strtoull(at, &at, 16)};
	end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
	if (end <= map->start || path == NULL || strlen(at) < 6 ||
	    at[3] != 'x' || strlen(path) >= sizeof(map->path))
		return false;
	map->len = end - map->start;
	map->pgoff = strtoull(at + 5, &at, 16);
	map->maj = (uint32_t)strtoul(at, &at, 16);
	map->min = *at == ':' ? (uint32_t)strtoul(at + 1, &at, 16) : 0;
	map->ino = strtoull(at, &at, 10);
	memcpy(map->path, path, strlen(path) + 1);
	return true;
}

static bool
is_used(const struct hg_finding *f, const struct hg_map *map)
{
	for (unsigned s = 0; s < HG_STACKS; s++)
		for (uint32_t i = 0; i < f->stack[s].n; i++)
			if (f->stack[s].pc[i] - 1 - map->start < map->len)
				return true;
	return false;
}

static void
take_line(struct hg_finding *f, char *line)
{
	struct hg_map map;

	if (f->nmaps < HG_MAPS_MAX && parse_map(line, &map) &&
	    is_used(f, &map))
		f->map[f->nmaps++] = map;
}

/* This allocates no memory, and uses little of the stack, which may be a signal
   handler's.  A descriptor is open for a moment. */
static void
take_maps(struct hg_finding *f)
{
	static char text[4096];		/* only one finding is made at a time */
	size_t len = 0;
	ssize_t n;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
	    O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && (n = syscall(SYS_read, fd, text + len,
	    sizeof(text) - 1 - len)) > 0) {
		char *line = text, *end;

		len += (size_t)n;
		text[len] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			take_line(f, line);
		}
		len -= (size_t)(line - text);
		memmove(text, line, len);
		if (len == sizeof(text) - 1)
			len = 0;
	}
	if (fd >= 0)
		(void)syscall(SYS_close, fd);
}

/* --- findings --- */

static bool
is_same(const struct hg_finding *a, const struct hg_finding *b)
{
	return a->kind == b->kind && a->offset == b->offset &&
	    a->size == b->size && a->nbytes == b->nbytes &&
	    memcmp(&a->identity, &b->identity, sizeof(a->identity)) == 0 &&
	    memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0 &&
	    (a->kind < HG_DOUBLE_FREE || memcmp(
	    &a->stack[HG_STACK_NOTICED], &b->stack[HG_STACK_NOTICED],
	    sizeof(a->stack[0])) == 0);
}

static bool
is_same_stack(const struct hg_stack *a, const struct hg_stack *b)
{
	return a->n == b->n && memcmp(a->pc, b->pc,
	    a->n * sizeof(a->pc[0])) == 0;
}

/* Whether another block of the same callers was damaged in the same way. */
static bool
is_like(const struct hg_finding *a, const struct hg_finding *b)
{
	if (a->kind != b->kind || a->image.path != b->image.path ||
	    a->identity.callers != b->identity.callers)
		return false;
	if (a->kind >= HG_DOUBLE_FREE)
		return is_same_stack(&a->stack[HG_STACK_NOTICED],
		    &b->stack[HG_STACK_NOTICED]);
	return (a->offset == b->offset || a->offset - (int64_t)a->size ==
	    b->offset - (int64_t)b->size) &&
	    (a->watched != 0) == (b->watched != 0);
}

/* A frequent bug must leave room for rare ones.  The number of findings that
   are alike is limited to the room that is left, and to an eighth of it if the
   blocks have the same size, too.  Findings about a watched block are always
   kept. */
static bool
are_enough(const struct hg_evidence *e, const struct hg_finding *f,
    uint32_t used, uint32_t alike, uint32_t same_size)
{
	if (e->sample != 0)
		return alike >= HG_ALIKE_MAX;
	return f->watched == 0 && alike > 0 &&
	    (used + alike >= HG_FINDINGS_MAX ||
	    (same_size > 0 && used + 8 * same_size >= HG_FINDINGS_MAX));
}

/* One finding of each kind of which there are enough.  A program that damages
   millions of blocks compares a new finding only with these. */
static uint32_t crowd[16], ncrowd;

static bool
is_crowded(const struct hg_evidence *e, const struct hg_finding *f)
{
	for (uint32_t i = 0; i < ncrowd && i < sizeof(crowd) /
	    sizeof(crowd[0]); i++)
		if (is_like(&e->finding[crowd[i]], f) && (e->sample != 0 ||
		    e->finding[crowd[i]].size == f->size))
			return true;
	return false;
}

/* A forked child finds again what its parent has found, and a server makes the
   same mistake again and again. */
static bool
is_known(struct hg_evidence *e, const struct hg_finding *f)
{
	const uint32_t n = atomic_load(&e->nfindings);
	uint32_t alike = 0, same_size = 0, one = 0;

	for (uint32_t i = 0; i < n && i < HG_FINDINGS_MAX; i++) {
		if (atomic_load(&e->finding[i].ready) == 0)
			continue;
		if (is_same(&e->finding[i], f))
			return true;
		if (!is_like(&e->finding[i], f))
			continue;
		alike++;
		if (e->finding[i].size == f->size)
			same_size++;
		else if (same_size > 0)
			continue;
		one = i;
	}
	if (!are_enough(e, f, n, alike, same_size))
		return false;
	crowd[ncrowd++ % (sizeof(crowd) / sizeof(crowd[0]))] = one;
	(void)atomic_fetch_add(&e->repeated, 1);
	return true;
}

static void
publish(struct hg_finding *f)
{
	struct hg_evidence *e = hg_state.evidence;
	uint32_t i;

	if (is_crowded(e, f)) {
		(void)atomic_fetch_add(&e->repeated, 1);
		return;
	}
	if (is_known(e, f))
		return;
	i = atomic_fetch_add(&e->nfindings, 1);
	if (i >= HG_FINDINGS_MAX)
		return;
	f->pid = (int32_t)syscall(SYS_getpid);
	f->tid = (int32_t)syscall(SYS_gettid);
	hg_program_name(f->program);
	take_maps(f);
	e->finding[i] = *f;
	atomic_store(&e->finding[i].ready, 1);
}

static void
describe(struct hg_finding *f, const struct hg_entry *e, uint64_t block)
{
	f->addr = block;
	if (e == NULL)
		return;
	f->size = hg_entry_size(e);
	f->allocated_by = e->family;
	f->identity = (struct hg_identity){
		.callers = hg_callers_hash(e->alloc), .size = hg_entry_size(e),
		.number = e->number, .in_thread = hg_ledger_in_thread(e),
	};
	f->watched = hg_watch_id(e);
	hg_callers_stack(e->alloc, &f->stack[HG_STACK_ALLOC]);
	if (atomic_load(&e->state) == HG_FREED)	/* `free' is set before */
		hg_callers_stack(e->free, &f->stack[HG_STACK_FREE]);
}

/* Describe the block in front: an underflow may be an overflow of that block
   which skipped its canary. */
static void
describe_other(struct hg_finding *f, uint64_t block)
{
	const struct hg_entry *e = hg_ledger_before(block);
	const uint64_t at = e == NULL ? 0 : atomic_load(&e->block);

	if (at == 0 || block - at > hg_entry_size(e) + 512)
		return;
	f->other_size = hg_entry_size(e);
	f->other_gap = block - at - hg_entry_size(e);
	hg_callers_stack(e->alloc, &f->stack[HG_STACK_OTHER]);
}

/* The finding that is being made, which is too large for a thread's stack.  If
   the handler of a crash has interrupted the thread that makes it, the
   handler's own finding is lost, and counted. */
static struct hg_finding scratch;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Atomic bool is_stuck;	/* the lock is not released */

static void
nap(void)
{
	const int saved = errno;

	(void)syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 1000000},
	    NULL);
	errno = saved;
}

/* Findings for which there is no room are only counted, because describing one
   takes a search of the whole ledger. */
static bool
is_full(void)
{
	struct hg_evidence *e = hg_state.evidence;

	if (atomic_load(&e->nfindings) < HG_FINDINGS_MAX)
		return false;
	(void)atomic_fetch_add(&e->nfindings, 1);
	return true;
}

static struct hg_finding *
begin(enum hg_kind kind, const struct hg_record *from)
{
	if (is_full())
		return NULL;
	for (int ms = 0; atomic_flag_test_and_set(&lock); ms++) {
		if (ms == WAIT || is_stuck) {
			is_stuck = true;
			(void)atomic_fetch_add(&hg_state.evidence->unswept, 1);
			return NULL;
		}
		nap();
	}
	memset(&scratch, 0, sizeof(scratch));
	scratch.kind = kind;
	scratch.image = hg_state.image;
	if (from != NULL)
		hg_callers_walk(hg_frame_of(from),
		    &scratch.stack[HG_STACK_NOTICED]);
	return &scratch;
}

static void
end(struct hg_finding *f)
{
	const int saved = errno;

	publish(f);
	if (f->kind <= HG_USE_AFTER_FREE)
		hg_sample_damaged(f);
	errno = saved;
	atomic_flag_clear(&lock);
}

void
hg_report_forked(void)
{
	is_stuck = false;
	atomic_flag_clear(&lock);
	is_stuck = false;
}

void
hg_report_block(struct hg_entry *e, uint64_t block, enum hg_when when,
    const struct hg_record *from)
{
	struct hg_finding *f;
	struct hg_damage d;

	if ((e->flags & HG_REPORTED) != 0 || hg_state.evidence == NULL ||
	    !hg_block_damage(e, block, &d))
		return;
	e->flags |= HG_REPORTED;
	if ((f = begin(d.kind, from)) == NULL)
		return;
	f->when = when;
	describe(f, e, block);
	f->offset = d.offset;
	f->nbytes = d.len < HG_BYTES_MAX ? (uint32_t)d.len : HG_BYTES_MAX;
	memcpy(f->bytes, (void *)(uintptr_t)(block + (uint64_t)d.offset),
	    f->nbytes);
	if (d.kind == HG_UNDERFLOW && !is_crowded(hg_state.evidence, f))
		describe_other(f, block);
	end(f);
}

void
hg_report_free(enum hg_kind kind, struct hg_entry *e, uint64_t block,
    enum hg_family family, const struct hg_record *from)
{
	struct hg_finding *f;

	if (hg_state.evidence == NULL || (f = begin(kind, from)) == NULL)
		return;
	f->freed_by = family;
	if (kind == HG_INVALID_FREE && (e = hg_ledger_around(block)) != NULL)
		f->offset = (int64_t)(block - atomic_load(&e->block));
	describe(f, e, block);
	f->addr = block;
	end(f);
}

/* --- all blocks --- */

/* Wait until no other thread is giving a block back.  False: one still is. */
static bool
is_quiet(void)
{
	for (int ms = 0; ms < WAIT; ms++) {
		const struct hg_thread *self = hg_thread();
		bool busy = false;

		for (struct hg_thread *t = atomic_load(&hg_state.threads);
		    t != NULL; t = t->next)
			busy |= t != self && atomic_load(&t->busy);
		if (!busy)
			return true;
		nap();
	}
	return false;
}

static void
sweep(enum hg_when when)
{
	const uint32_t n = hg_ledger_used();

	for (uint32_t i = 1; i < n; i++) {
		struct hg_entry *e = hg_ledger_at(i);
		const uint64_t block = atomic_load(&e->block);
		const uint32_t state = atomic_load(&e->state);

		if (block != 0 && (state == HG_LIVE || state == HG_FREED) &&
		    !hg_block_is_whole(e, block))
			hg_report_block(e, block, when, NULL);
	}
}

static void
barrier(void)
{
	if (syscall(SYS_membarrier,
	    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0 ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0,
	    0) != 0)
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

/* Begin to check all blocks, as the only thread that does.  False: another one
   does not finish, or this very thread crashed during its sweep. */
static bool
begin_sweep(void)
{
	const pid_t self = (pid_t)syscall(SYS_gettid);

	for (int ms = 0; ms < WAIT; ms++) {
		pid_t other = 0;

		if (atomic_compare_exchange_strong(&hg_state.sweeper, &other,
		    self))
			return true;
		if (other == self)
			return false;
		nap();
	}
	return false;
}

/* Signals are blocked during a sweep, because a handler that frees a block
   would wait for the sweep that it has interrupted.  Those of crashes cannot
   be. */
static uint64_t
set_mask(int how, uint64_t mask)
{
	uint64_t old = 0;

	(void)syscall(SYS_rt_sigprocmask, how, &mask, &old, sizeof(mask));
	return old;
}

#define BIT(signal) ((uint64_t)1 << ((signal) - 1))
static const uint64_t all_but_crashes = ~(BIT(SIGSEGV) | BIT(SIGBUS) |
    BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGABRT));

/* A thread sets `busy' and then reads `sweeper' without a memory barrier of its
   own.  The barrier here makes sure that either it sees the sweeper or the
   sweeper sees that it is busy. */
void
hg_report_sweep(enum hg_when when)
{
	const bool wanted = hg_state.evidence != NULL && hg_state.on;
	uint64_t mask;
	bool done = false;

	if (!wanted)
		return;
	mask = set_mask(SIG_BLOCK, all_but_crashes);
	if (begin_sweep()) {
		if (atomic_load(&hg_state.nthreads) > 1)
			barrier();
		if ((done = is_quiet()))
			sweep(when);
		atomic_store(&hg_state.sweeper, 0);
	}
	if (!done)
		(void)atomic_fetch_add(&hg_state.evidence->unswept, 1);
	(void)set_mask(SIG_SETMASK, mask);
}
