/*
 * scope: implements the macros: variables that are watched by name, and blocks
 * of code in which a variable is watched, frozen or permitted.
 *
 * Overview.  Blocks that freeze, or watch, the same bytes, nested or in several
 * threads, share one watch: it is opened by the first to enter and closed by
 * the last to leave.  Permits are a list in each thread, which the signal
 * handler reads.
 *
 * A block is left in order by the macro.  When longjmp(3) jumps out of it, or
 * the thread ends in it, the C library runs the cleanup routines that lie on
 * the part of the stack that goes away, those of pthread_cleanup_push(3) as it
 * was before compilers knew exceptions; a guarded scope is on that list.
 * Unwinding may do both, so leaving twice is leaving once.
 *
 * Lock order: the lock here, then wp_watches_lock.
 */
#include "os/clock.h"
#include "arming/helper.h"
#include "inside/heap.h"
#include "inside/scope.h"
#include "program/scope_lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTSIDE, INSIDE, LEFT };		/* wp_scope.state */
enum {
	PLACES = 64,	/* places in the source that have been reported */
	TEXT_MAX = 1024,		/* bytes of a line about a failure */
	PATIENCE_MS = 100,	/* ms for a signal that has not arrived yet */
};

/* A use of one of the macros. */
struct source_place {
	const char *name;		/* the macro's argument */
	const char *file;
	int line;
};

/* The macro of a watch.  Uses of the same macro for the same bytes share
   one. */
enum kind { WATCHED, FROZEN, SCOPED };

/* A watch of one of the macros. */
struct held {
	struct wp_watch *watch;		/* NULL if the entry is free */
	const volatile void *addr;
	size_t len;
	pid_t pid;			/* the process that opened it: a
					   child inherits the entry, but its
					   watch is not open there */
	enum kind kind;
	unsigned scopes;	/* blocks that share it; 0 for WP_WATCH */
	uint32_t gaps;			/* wp_helper_gaps when it was opened */
	struct source_place place;		/* of the use that opened it */
};

static struct {		/* protected by wp_scope_lock */
	struct held held[WP_WATCHES_MAX];
	struct {
		const char *file;
		int line;
	} reported[PLACES];	/* places whose failures have been reported */
	unsigned nreported;
	char missed[TEXT_MAX];		/* the text of wp_stray_missed_text */
} table;

/* The entry of these bytes, or NULL.  Called with the lock held. */
static struct held *
held_find(const volatile void *addr, size_t len, enum kind kind)
{
	pid_t pid = getpid();

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		struct held *h = &table.held[i];

		if (h->watch != NULL && h->addr == addr && h->len == len &&
		    h->kind == kind && h->pid == pid)
			return h;
	}
	return NULL;
}

/* Open a watch in a free entry; there are as many entries as watches.  Returns
   0 or -errno.  Called with the lock held. */
static int
held_open(struct held **out, const volatile void *addr, size_t len,
    const struct source_place *place, enum kind kind)
{
	struct wp_attr attr = {
		.size = sizeof(attr), .addr = addr, .len = len,
		.label = place->name, .flags = kind == FROZEN ? WP_STRAY : 0,
	};
	struct held *h = table.held;
	struct wp_watch *watch;
	int err = wp_open(&attr, &watch);

	if (err < 0)
		return err;
	while (h->watch != NULL)
		h++;
	*h = (struct held){
		.watch = watch, .addr = addr, .len = len, .pid = getpid(),
		.gaps = wp_helper_gaps(), .place = *place, .kind = kind,
	};
	*out = h;
	return 0;
}

static void
held_close(struct held *h)
{
	wp_close(h->watch);
	h->watch = NULL;
}

/* Whether this is the first failure at this place.  Called with the lock
   held. */
static bool
first_time(const char *file, int line)
{
	for (unsigned i = 0; i < table.nreported; i++)
		if (table.reported[i].file == file &&
		    table.reported[i].line == line)
			return false;
	if (table.nreported == PLACES)
		return false;
	table.reported[table.nreported].file = file;
	table.reported[table.nreported].line = line;
	table.nreported++;
	return true;
}

/* Format "config.c:31: WP_FREEZE(config) is not in force: ...", and report it
   if it is the first at its place.  Called with the lock held. */
static void
put_line(char line[TEXT_MAX], const struct source_place *place,
    const char *macro, const char *what, const char *why)
{
	(void)snprintf(line, TEXT_MAX, "%s:%d: %s(%s) %s%s\n", place->file,
	    place->line, macro, place->name, what, why);
	if (first_time(place->file, place->line))
		wp_fallback_line(line);
}

/* A freeze may have been violated n times without a report.  Called with the
   lock held. */
static void
miss(uint64_t n, const struct source_place *place, const char *what,
    const char *why)
{
	atomic_fetch_add(&wp_state.missed, n);
	put_line(table.missed, place, "WP_FREEZE", what, why);
}

void
wp_scope_failed(const char *macro, const char *name, const char *file, int line,
    const char *what)
{
	const struct source_place place = {name, file, line};
	char text[TEXT_MAX];

	put_line(text, &place, macro, what, wp_cause());
}

int
wp_watch_variable(const volatile void *addr, size_t len, const char *name,
    const char *file, int line)
{
	const struct source_place place = {name, file, line};
	struct wp_scope_before before;
	struct held *h;
	int err = 0;

	wp_scope_lock(&before);
	if (held_find(addr, len, WATCHED) == NULL)
		err = held_open(&h, addr, len, &place, WATCHED);
	if (err < 0)
		wp_scope_failed("WP_WATCH", name, file, line,
		    "is not in force: ");
	wp_scope_unlock(&before);
	return err;
}

int
wp_unwatch_variable(const volatile void *addr, size_t len)
{
	struct wp_scope_before before;
	struct held *h;
	bool was;

	wp_scope_lock(&before);
	h = held_find(addr, len, WATCHED);
	if (h != NULL)
		held_close(h);
	was = h != NULL || wp_heap_unwatch(addr, len);
	wp_scope_unlock(&before);
	return was ? 0 : -ENOENT;
}

size_t
wp_scope_one(void)
{
	return 1;
}

/*
 * glibc's list of cleanup routines, from the time before they were part of
 * stack unwinding.  Its functions are no longer declared in headers.
 */
#ifdef __GLIBC__

void wp_libc_push(struct _pthread_cleanup_buffer *, void (*)(void *), void *)
    __asm__("_pthread_cleanup_push");
void wp_libc_pop(struct _pthread_cleanup_buffer *, int)
    __asm__("_pthread_cleanup_pop");

_Static_assert(sizeof(struct _pthread_cleanup_buffer) <=
    sizeof(((struct wp_scope *)0)->cleanup), "a scope has room for it");

static void scope_leave(struct wp_scope *);

static void
unwound(void *scope)
{
	scope_leave(scope);
}

static void
nothing(void *arg)
{
	(void)arg;
}

static void
list_put(struct wp_scope *scope)
{
	wp_libc_push((void *)scope->cleanup, unwound, scope);
}

/* Remove the scope from the list if it is there.  With coroutines it need not
   be the innermost one. */
static void
list_take(struct wp_scope *scope)
{
	struct _pthread_cleanup_buffer top, *at = &top;
	struct _pthread_cleanup_buffer *own = (void *)scope->cleanup;

	wp_libc_push(&top, nothing, NULL);
	while (at->__prev != NULL && at->__prev != own)
		at = at->__prev;
	if (at->__prev == own)
		at->__prev = own->__prev;
	wp_libc_pop(&top, 0);
}

#else

static void
list_put(struct wp_scope *scope)
{
	(void)scope;
}

static void
list_take(struct wp_scope *scope)
{
	(void)scope;
}

#endif

struct wp_scope *
wp_scope_guard(struct wp_scope *scope)
{
	*scope = (struct wp_scope){.state = OUTSIDE};
	list_put(scope);
	return scope;
}

/* Share or open a watch of these bytes.  Returns 0 or -errno.  Called with the
   lock held. */
static int
enter(struct wp_scope *scope, const volatile void *addr, size_t len,
    const struct source_place *place, enum kind kind)
{
	struct held *h = held_find(addr, len, kind);
	int err = h == NULL ? held_open(&h, addr, len, place, kind) : 0;

	if (err == 0) {
		h->scopes++;
		scope->freeze = h;
	}
	scope->addr = addr;
	scope->len = len;
	scope->state = err == 0 ? INSIDE : LEFT;
	return err;
}

struct wp_scope *
wp_scope_freeze(struct wp_scope *scope, const volatile void *addr, size_t len,
    const char *name, const char *file, int line)
{
	const struct source_place place = {name, file, line};
	struct wp_scope_before before;

	wp_scope_lock(&before);
	if (enter(scope, addr, len, &place, FROZEN) < 0)
		miss(1, &place, "is not in force: ", wp_cause());
	else if (((struct held *)scope->freeze)->watch->inexact)
		miss(1, &place, "may not cover every thread", "");
	wp_scope_unlock(&before);
	return scope;
}

struct wp_scope *
wp_scope_watch(struct wp_scope *scope, const volatile void *addr, size_t len,
    const char *name, const char *file, int line)
{
	const struct source_place place = {name, file, line};
	struct wp_scope_before before;

	wp_scope_lock(&before);
	if (enter(scope, addr, len, &place, SCOPED) < 0)
		wp_scope_failed("WP_SCOPE", name, file, line,
		    "is not in force: ");
	wp_scope_unlock(&before);
	return scope;
}

/* This thread's signal handler may read the list at any moment. */
struct wp_scope *
wp_scope_permit(struct wp_scope *scope, const volatile void *addr, size_t len)
{
	struct wp_scope **permits = wp_permits();

	scope->addr = addr;
	scope->len = len;
	scope->outer = *permits;
	scope->state = INSIDE;
	atomic_signal_fence(memory_order_seq_cst);
	*permits = scope;
	atomic_signal_fence(memory_order_seq_cst);
	return scope;
}

/* Whether the scope is a local variable of our caller, whose frame is given. */
static __attribute__((noinline)) bool
is_local(const struct wp_scope *scope, const void *frame)
{
	return (uintptr_t)scope > (uintptr_t)__builtin_frame_address(0) &&
	    (uintptr_t)scope < (uintptr_t)frame;
}

struct wp_scope *
wp_scope_guard_in(struct wp_scope *scope, const void *frame)
{
	if (is_local(scope, frame))
		return wp_scope_guard(scope);
	*scope = (struct wp_scope){.state = OUTSIDE};
	return scope;
}

struct wp_scope *
wp_scope_permit_in(struct wp_scope *scope, const volatile void *addr,
    size_t len, const void *frame, const char *name, const char *file, int line)
{
	const struct source_place place = {name, file, line};
	struct wp_scope_before before;
	char text[TEXT_MAX];

	if (is_local(scope, frame))
		return wp_scope_permit(scope, addr, len);
	wp_scope_lock(&before);
	put_line(text, &place, "WP_PERMIT", "is not in force: ",
	    "it is part of a coroutine or of another object, and other code "
	    "would have it too; use wp::permitted");
	wp_scope_unlock(&before);
	scope->state = LEFT;
	return scope;
}

static void
permit_leave(struct wp_scope *scope)
{
	struct wp_scope **at = wp_permits();

	atomic_signal_fence(memory_order_seq_cst);
	while (*at != NULL && *at != scope)
		at = &(*at)->outer;
	if (*at == scope)
		*at = scope->outer;
	atomic_signal_fence(memory_order_seq_cst);
	scope->state = LEFT;
	if (wp_has_permitted())
		wp_baseline_permitted(scope->addr, scope->len);
}

/* Count the accesses whose signal does not arrive within PATIENCE_MS.  After
   that the watch is closed, and a late signal would belong to none. */
static uint64_t
unseen(const struct wp_watch *w)
{
	uint64_t count;

	for (unsigned i = 0; ; i++) {
		uint64_t seen = wp_accounted(w);

		if (wp_count(w, &count) < 0 || count <= seen)
			return 0;
		if (i == PATIENCE_MS)
			return count - seen;
		wp_clock_sleep(1000000);
	}
}

/* The last block has been left.  Called with the lock held. */
static void
freeze_end(struct held *h)
{
	uint64_t count, n = unseen(h->watch);

	if (wp_count(h->watch, &count) < 0)
		miss(1, &h->place, "ended early: ", wp_cause());
	if (n > 0)
		miss(n, &h->place, "was written to, but the signal did "
		    "not come: is SIGTRAP blocked, or handled by the "
		    "program?", "");
	if (atomic_load(&h->watch->disarmed))
		miss(1, &h->place, "was not watched to the end by a "
		    "thread, whose event could not be armed again", "");
	held_close(h);	/* this makes the helper check its tracer, if that
			   had armed it */
	if (wp_helper_gaps() != h->gaps)
		miss(1, &h->place, "was not watched for a while: the "
		    "process that traces this one was killed", "");
}

/* The same for WP_SCOPE, where no access is stray. */
static void
watch_end(struct held *h)
{
	char text[TEXT_MAX];

	if (unseen(h->watch) > 0)
		put_line(text, &h->place, "WP_SCOPE", "was written to, but the "
		    "signal did not come: is SIGTRAP blocked, or handled by "
		    "the program?", "");
	held_close(h);
}

static void
held_leave(struct wp_scope *scope)
{
	struct held *h = scope->freeze;
	struct wp_scope_before before;

	wp_scope_lock(&before);
	if (scope->state == INSIDE && --h->scopes == 0) {
		if (h->kind == FROZEN)
			freeze_end(h);
		else
			watch_end(h);
	}
	scope->state = LEFT;
	wp_scope_unlock(&before);
}

static void
scope_leave(struct wp_scope *scope)
{
	if (scope->state != INSIDE)
		return;
	if (scope->freeze != NULL)
		held_leave(scope);
	else
		permit_leave(scope);
}

struct wp_scope *
wp_scope_leave(struct wp_scope *scope)
{
	scope_leave(scope);
	list_take(scope);
	return NULL;
}

void
wp_scope_cleanup(struct wp_scope **scope)
{
	if (*scope != NULL)
		(void)wp_scope_leave(*scope);
}

uint64_t
wp_stray_missed(void)
{
	return atomic_load(&wp_state.missed);
}

const char *
wp_stray_missed_text(void)
{
	return wp_stray_missed() > 0 ? table.missed : "";
}

void
wp_stray_abort(const char *file, int line)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "%s:%d: stray accesses: %llu; may "
	    "have been missed: %llu\n", file, line,
	    (unsigned long long)wp_stray_count(),
	    (unsigned long long)wp_stray_missed());
	wp_fallback_line(text);
	if (wp_stray_missed() > 0)
		wp_fallback_line(table.missed);
	abort();
}
