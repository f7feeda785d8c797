/*
 * heap: watches of heap blocks, which end when the blocks are freed.
 *
 * Overview.  Nothing is put in front of the program's allocator: while there is
 * such a watch, the first instruction of free(3) and of realloc(3) is watched,
 * too, for execution.  A call with another block is no hit (watches.h, is_hit);
 * the one with this block is, and its handler, which runs before free does
 * anything, ends the watch.
 *
 * A block is given up by whoever takes it from its entry, a thread that frees
 * it or one that calls WP_UNWATCH; the entry can be used again when that one
 * has closed its watch.  Handlers take no lock, because closing a watch waits
 * for them: where they find what they need in use, they leave it to its user.
 */
#include "inside/heap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "handler/capture.h"
#include "handler/trap_run.h"
#include "inside/open.h"
#include "inside/scope.h"
#include "program/scope_lock.h"
#include "program/table.h"

enum { LINE = 192 };	/* bytes; the helper takes this much with a label */

/* A watched block. */
struct watched_block {
	_Atomic bool used;
	_Atomic uintptr_t at;  /* the address of the block; 0: it is given up */
	struct wp_watch *watch;
	const volatile void *addr;	/* the part that is watched */
	size_t len;
	char line[LINE];	/* reported after the label when it is freed */
};

static struct watched_block blocks[WP_SLOTS_MAX];

static struct {
	_Atomic unsigned blocks;  /* number of blocks that need the watches */
	_Atomic bool changing;
	struct wp_watch *watch[2];	/* NULL: not open */
	pid_t pid;			/* the process that this belongs to */
} calls;

/* --- blocks --- */

/* Async-signal-safe. */
static uintptr_t
block_of(const ucontext_t *context)
{
	return (uintptr_t)wp_cpu_argument(context);
}

static bool
is_watched(const struct wp_run *run)
{
	const uintptr_t at = block_of(run->context);

	for (size_t i = 0; i < WP_SLOTS_MAX && at != 0 && !run->late; i++)
		if (atomic_load(&blocks[i].at) == at)
			return true;
	return false;
}

/* Returns whether this call gave it up, and no other. */
static bool
give_up(struct watched_block *b, uintptr_t at)
{
	return at != 0 && atomic_compare_exchange_strong(&b->at, &at, 0);
}

static void
finish(struct watched_block *b)
{
	wp_close(b->watch);
	atomic_store(&b->used, false);
	(void)atomic_fetch_sub(&calls.blocks, 1);
}

/* --- calls --- */

static void
close_calls(void)
{
	for (unsigned i = 0; i < 2; i++) {
		wp_close(calls.watch[i]);
		calls.watch[i] = NULL;
	}
}

/* If another thread is changing the watches, it checks again when it is done.
   Async-signal-safe. */
static void
end_idle_calls(void)
{
	bool idle;

	do {
		if (atomic_exchange(&calls.changing, true))
			return;
		idle = atomic_load(&calls.blocks) == 0;
		if (idle)
			close_calls();
		atomic_store(&calls.changing, false);
	} while (!idle && atomic_load(&calls.blocks) == 0);
}

static void
end_block(const struct wp_hit *hit, void *arg)
{
	const uintptr_t at = block_of(hit->context);

	(void)arg;
	for (size_t i = 0; i < WP_SLOTS_MAX; i++) {
		struct watched_block *b = &blocks[i];

		if (!give_up(b, at))
			continue;
		wp_fallback_warning(b->watch, b->line);
		finish(b);
	}
	end_idle_calls();
}

static int
open_call(void (*function)(void), const char *name, struct wp_watch **out)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .access = WP_EXEC, .label = name,
		.addr = (const void *)(uintptr_t)function,
		.action = WP_PRINT | WP_CALL, .handler = end_block,
		.flags = WP_DISABLED,
	};
	int err = wp_open(&attr, out);

	if (err < 0)
		return err;
	(*out)->is_hit = is_watched;
	if ((err = wp_enable(*out)) < 0) {
		wp_close(*out);
		*out = NULL;
	}
	return err;
}

/* Called for each new block. */
static int
open_calls(void)
{
	int err = 0;

	(void)atomic_fetch_add(&calls.blocks, 1);
	while (atomic_exchange(&calls.changing, true))
		(void)sched_yield();
	if (calls.watch[0] == NULL)
		err = open_call((void (*)(void))free, "free",
		    &calls.watch[0]);
	if (err == 0 && calls.watch[1] == NULL)
		err = open_call((void (*)(void))realloc, "realloc",
		    &calls.watch[1]);
	atomic_store(&calls.changing, false);
	return err;
}

/* --- what is no block --- */

/* Whether it is in the calling functions' part of this thread's stack. */
static bool
is_on_stack(uintptr_t at)
{
	pthread_attr_t attr;
	void *lowest = NULL;
	size_t size = 0;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return false;
	(void)pthread_attr_getstack(&attr, &lowest, &size);
	(void)pthread_attr_destroy(&attr);
	return at >= (uintptr_t)__builtin_frame_address(0) &&
	    at - (uintptr_t)lowest < size;
}

/* Refuse what is surely no block, because the watch would never end.  An
   allocator's own object may have a pool of blocks in it. */
static int
check_block(const volatile void *block)
{
	const uintptr_t at = (uintptr_t)block;

	if (at % sizeof(void *) != 0)
		return wp_open_refuse("malloc and new return aligned "
		    "addresses, and this is none: give the block's start");
	if (is_on_stack(at))
		return wp_open_refuse("it is on the stack, and no block of "
		    "malloc or new: use WP_SCOPE");
	if (wp_is_in_other_object(block, (const void *)(uintptr_t)free))
		return wp_open_refuse("it is a variable, and no block of "
		    "malloc or new: use WP_WATCH");
	return 0;
}

/* --- what the macro calls --- */

/* A child of fork(2) starts anew: all of this is its parent's. */
static void
begin(void)
{
	if (calls.pid == getpid())
		return;
	for (size_t i = 0; i < WP_SLOTS_MAX && calls.pid != 0; i++)
		if (atomic_load(&blocks[i].used) &&
		    atomic_exchange(&blocks[i].at, 0) != 0)
			finish(&blocks[i]);
	atomic_store(&calls.changing, false);
	atomic_store(&calls.blocks, 0);
	close_calls();
	calls.pid = getpid();
}

static struct watched_block *
find(const volatile void *addr, size_t len)
{
	for (size_t i = 0; i < WP_SLOTS_MAX; i++)
		if (atomic_load(&blocks[i].at) != 0 &&
		    blocks[i].addr == addr && blocks[i].len == len)
			return &blocks[i];
	return NULL;
}

static struct watched_block *
find_free(void)
{
	for (size_t i = 0; i < WP_SLOTS_MAX; i++)
		if (!atomic_load(&blocks[i].used))
			return &blocks[i];
	return NULL;	/* there are fewer debug registers than this */
}

static int
open_block(const volatile void *at, const volatile void *addr, size_t len,
    const char *name, const char *file, int line)
{
	const struct wp_attr attr = {
		.size = sizeof(attr), .addr = addr, .len = len, .label = name,
	};
	struct watched_block *b = find_free();
	int err = check_block(at);

	if (err == 0)
		err = b == NULL ? -EMFILE : wp_open(&attr, &b->watch);
	if (err < 0)
		return err;
	if ((err = open_calls()) < 0) {
		(void)atomic_fetch_sub(&calls.blocks, 1);
		wp_close(b->watch);
		return err;
	}
	b->addr = addr;
	b->len = len;
	(void)snprintf(b->line, sizeof(b->line), " is no longer watched: its "
	    "block at %p is freed (WP_WATCH_HEAP, %s:%d)",
	    (const void *)(uintptr_t)at, file, line);
	atomic_store(&b->used, true);
	atomic_store(&b->at, (uintptr_t)at);
	return 0;
}

int
wp_watch_heap(const volatile void *block, const volatile void *addr,
    size_t len, const char *name, const char *file, int line)
{
	struct wp_scope_before before;
	int err = 0;

	wp_scope_lock(&before);
	begin();
	if (find(addr, len) == NULL)
		err = open_block(block != NULL ? block : addr, addr, len, name,
		    file, line);
	if (err < 0)
		wp_scope_failed("WP_WATCH_HEAP", name, file, line,
		    err != -ENOSPC ? "is not in force: " : "is not in force "
		    "(it takes a debug register for each of free and realloc, "
		    "too; a part of the block takes fewer): ");
	end_idle_calls();
	wp_scope_unlock(&before);
	return err;
}

bool
wp_heap_unwatch(const volatile void *addr, size_t len)
{
	struct watched_block *b = calls.pid == getpid() ? find(addr, len) :
	    NULL;

	if (b == NULL || !give_up(b, atomic_load(&b->at)))
		return false;
	finish(b);
	end_idle_calls();
	return true;
}
