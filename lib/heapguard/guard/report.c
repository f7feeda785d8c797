/* report: findings, from this process into the evidence.  See report.h. */
#include "guard/report.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guard/callers.h"

enum { WAIT = 200 };	/* ms for other threads */

/* --- mappings --- */

/* A line of /proc/self/maps.  False: it has no code of a file. */
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

/* No memory is allocated; a descriptor is there for a moment. */
static void
take_maps(struct hg_finding *f)
{
	char text[4096];
	size_t len = 0;
	ssize_t n;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
	    O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && (n = read(fd, text + len,
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

/* Children of a fork find what their parent did. */
static bool
is_known(struct hg_evidence *e, const struct hg_finding *f)
{
	const uint32_t n = atomic_load(&e->nfindings);

	for (uint32_t i = 0; i < n && i < HG_FINDINGS_MAX; i++)
		if (atomic_load(&e->finding[i].ready) != 0 &&
		    is_same(&e->finding[i], f))
			return true;
	return false;
}

static void
name_program(char path[HG_PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, HG_PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
}

static void
publish(struct hg_finding *f)
{
	struct hg_evidence *e = hg_state.evidence;
	uint32_t i;

	if (is_known(e, f))
		return;
	i = atomic_fetch_add(&e->nfindings, 1);
	if (i >= HG_FINDINGS_MAX)
		return;
	f->pid = (int32_t)syscall(SYS_getpid);
	f->tid = (int32_t)syscall(SYS_gettid);
	name_program(f->program);
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
	f->size = e->size;
	f->allocated_by = e->family;
	f->identity = (struct hg_identity){
		.callers = hg_callers_hash(e->alloc), .size = e->size,
		.number = e->number,
	};
	hg_callers_stack(e->alloc, &f->stack[HG_STACK_ALLOC]);
	if (atomic_load(&e->state) != HG_LIVE)
		hg_callers_stack(e->free, &f->stack[HG_STACK_FREE]);
}

/* An underflow may be an overflow of what lies in front that left its canary
   alone. */
static void
describe_other(struct hg_finding *f, uint64_t block)
{
	const struct hg_entry *e = hg_ledger_before(block);
	const uint64_t at = e == NULL ? 0 : atomic_load(&e->block);

	if (at == 0 || block - at > e->size + 512)
		return;
	f->other_size = e->size;
	f->other_gap = block - at - e->size;
	hg_callers_stack(e->alloc, &f->stack[HG_STACK_OTHER]);
}

/* The block that an address lies in; NULL: none. */
static struct hg_entry *
around(uint64_t address)
{
	struct hg_entry *e = hg_ledger_before(address);
	const uint64_t at = e == NULL ? 0 : atomic_load(&e->block);

	return at != 0 && address - at < e->size ? e : NULL;
}

/* It is too large for a thread's stack, and one at a time is made.  The handler
   of a crash may have interrupted who makes one: then this one is missing. */
static struct hg_finding scratch;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void
nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static struct hg_finding *
begin(enum hg_kind kind, const struct hg_frame *from)
{
	for (int ms = 0; atomic_flag_test_and_set(&lock); ms++) {
		if (ms == WAIT) {
			(void)atomic_fetch_add(&hg_state.evidence->unswept, 1);
			return NULL;
		}
		nap();
	}
	memset(&scratch, 0, sizeof(scratch));
	scratch.kind = kind;
	if (from != NULL)
		hg_callers_walk(from, &scratch.stack[HG_STACK_NOTICED]);
	return &scratch;
}

static void
end(struct hg_finding *f)
{
	const int saved = errno;

	publish(f);
	errno = saved;
	atomic_flag_clear(&lock);
}

void
hg_report_forked(void)
{
	atomic_flag_clear(&lock);
}

void
hg_report_block(struct hg_entry *e, uint64_t block, enum hg_when when,
    const struct hg_frame *from)
{
	struct hg_finding *f;
	struct hg_damage d;

	if ((e->flags & HG_TOLD) != 0 || hg_state.evidence == NULL ||
	    !hg_block_damage(e, block, &d) || (f = begin(d.kind, from)) == NULL)
		return;
	e->flags |= HG_TOLD;
	f->when = when;
	describe(f, e, block);
	f->offset = d.offset;
	f->nbytes = d.len < HG_BYTES_MAX ? (uint32_t)d.len : HG_BYTES_MAX;
	memcpy(f->bytes, (void *)(uintptr_t)(block + (uint64_t)d.offset),
	    f->nbytes);
	if (d.kind == HG_UNDERFLOW)
		describe_other(f, block);
	end(f);
}

void
hg_report_free(enum hg_kind kind, struct hg_entry *e, uint64_t block,
    enum hg_family family, const struct hg_frame *from)
{
	struct hg_finding *f;

	if (hg_state.evidence == NULL || (f = begin(kind, from)) == NULL)
		return;
	f->freed_by = family;
	if (kind == HG_INVALID_FREE && (e = around(block)) != NULL)
		f->offset = (int64_t)(block - atomic_load(&e->block));
	describe(f, e, block);
	f->addr = block;
	end(f);
}

/* --- all blocks --- */

/* Wait until no other thread is giving a block back.  False: one is, still. */
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

/* Threads look whether they are to wait before they say that they are busy; the
   barrier has all of them see one of both. */
void
hg_report_sweep(enum hg_when when)
{
	if (hg_state.evidence == NULL || !hg_state.on ||
	    atomic_exchange(&hg_state.sweeping, true))
		return;
	if (atomic_load(&hg_state.nthreads) > 1)
		barrier();
	if (is_quiet())
		sweep(when);
	else
		(void)atomic_fetch_add(&hg_state.evidence->unswept, 1);
	atomic_store(&hg_state.sweeping, false);
}

/* --- programs --- */

static struct hg_program *
claim(struct hg_evidence *e, pid_t pid, int balance, const char *path)
{
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		struct hg_program *p = &e->program[i];
		int32_t nobody = 0;

		if (!atomic_compare_exchange_strong(&p->pid, &nobody,
		    (int32_t)pid))
			continue;
		p->balance = balance;
		strncpy(p->path, path, sizeof(p->path) - 1);
		p->path[sizeof(p->path) - 1] = '\0';
		return p;
	}
	atomic_store(&e->overflowed, 1);
	return NULL;
}

/* If the other half is there, both are done with. */
static bool
settle(struct hg_evidence *e, pid_t pid, int balance)
{
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		struct hg_program *p = &e->program[i];

		if (atomic_load(&p->pid) != pid || p->balance != balance)
			continue;
		p->balance = 0;
		atomic_store(&p->pid, 0);
		return true;
	}
	return false;
}

struct hg_program *
hg_report_exec(const char *path)
{
	struct hg_evidence *e = hg_state.evidence;

	return e == NULL ? NULL : claim(e, (pid_t)syscall(SYS_getpid), 1,
	    path == NULL ? "" : path);
}

void
hg_report_spawned(pid_t pid, const char *path)
{
	struct hg_evidence *e = hg_state.evidence;

	if (e != NULL && !settle(e, pid, -1))
		(void)claim(e, pid, 1, path == NULL ? "" : path);
}

void
hg_report_exec_failed(struct hg_program *p)
{
	if (p == NULL)
		return;
	p->balance = 0;
	atomic_store(&p->pid, 0);
}

void
hg_report_hello(enum hg_hello how)
{
	struct hg_evidence *e = hg_state.evidence;
	const pid_t pid = (pid_t)syscall(SYS_getpid);

	if (e == NULL)
		return;
	if (!settle(e, pid, 1))
		(void)claim(e, pid, -1, "");
	if (how == HG_GUARDED) {
		(void)atomic_fetch_add(&e->hellos, 1);
		return;
	}
	name_program(e->refused_path);
	atomic_store(&e->refusal, how);
	(void)atomic_fetch_add(&e->refused, 1);
}
