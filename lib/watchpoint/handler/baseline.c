/*
 * baseline: the bytes of a watch before it is hit, for the old value of that
 * hit.
 *
 * Overview.  A hit finds what the previous hit left, if no other access came
 * between them.  Before the first hit, and after what changes bytes or the
 * watch itself (wp_enable, wp_move, permitted accesses), they are read here,
 * and passed to the helper with a number.  A hit's cell says the last number
 * that it found.
 *
 *	wp_baseline_drop	a new number
 *	...		the watch is enabled, moved
 *	wp_baseline_take	its bytes
 *
 * Where a watch sees reads nothing is read, since that would be a hit of it.
 * The helper finds out whether another thread accessed the bytes in the
 * meantime, before or after they were read, by the counts that come with both
 * (hit_order.c).  With one thread there is no other to be counted.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include "handler/capture.h"
#include "os/clock.h"
#include "handler/trap_run.h"
#include "os/libc.h"

/* Whether reading the bytes raises no hit of any watch. */
static bool
may_look(const struct wp_watch *w)
{
	return w->region.access == WP_WRITE &&
	    w->region.len <= WP_BASELINE_MAX &&
	    atomic_load(&wp_state.nreads) == 0;
}

/* wp_move in another thread may change the length at any time, so it is read
   once. */
static bool
peek(uint8_t to[WP_BASELINE_MAX], const struct wp_watch *w)
{
	const uint64_t len = *(const volatile uint64_t *)&w->region.len;

	return len <= WP_BASELINE_MAX && wp_peek(to, w->region.addr, len) ==
	    len;
}

bool
wp_look_at(const struct wp_watch *w, uint8_t to[WP_BASELINE_MAX])
{
	return may_look(w) && peek(to, w);
}

/* In a process with one thread, memory that was readable a moment ago still
   is. */
static bool
read_bytes(struct wp_baseline *to, const struct wp_watch *w, bool readable)
{
	if (!readable || !to->alone)
		return peek(to->byte, w);
	wp_copy(to->byte, (const void *)(uintptr_t)w->region.addr,
	    w->region.len);
	return true;
}

/* The bytes are read before the count, so that an access which is not in the
   count came after them. */
static bool
look(struct wp_baseline *to, const struct wp_watch *w, bool readable)
{
	to->time = wp_clock_ns();
	to->alone = wp_libc_alone();
	to->nth = atomic_load(&w->hits);
	to->suppressed = atomic_load(&w->suppressed);
	atomic_signal_fence(memory_order_seq_cst);
	if (!read_bytes(to, w, readable))
		return false;
	atomic_signal_fence(memory_order_seq_cst);
	return to->alone || wp_count_all(w, &to->counted);
}

void
wp_baseline_drop(struct wp_watch *w)
{
	(void)atomic_fetch_add(&w->settled, 1);
}

void
wp_baseline_take(struct wp_watch *w, bool readable)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	const uint32_t number = atomic_load(&w->settled);
	struct wp_baseline *to;

	if (channel == NULL || !may_look(w) ||
	    atomic_exchange(&w->settling, true))
		return;
	to = &wp_watch_words(w, channel)->settled;
	atomic_store(&to->number, 0);
	if (look(to, w, readable))
		atomic_store(&to->number, number);
	atomic_store(&w->settling, false);
}

void
wp_baseline_permitted(const volatile void *addr, size_t len)
{
	const uint64_t from = (uintptr_t)addr;
	struct wp_watch_walk walk = {.left = atomic_load(&wp_state.nopen)};
	struct wp_watch *w;

	while ((w = wp_watch_next(&walk)) != NULL) {
		if ((w->attr.flags & WP_STRAY) != 0 &&
		    w->region.addr < from + len &&
		    from < w->region.addr + w->region.len) {
			wp_baseline_drop(w);
			wp_baseline_take(w, false);
		}
		wp_watch_leave(w);
	}
}
