/* hit_order: decides which hits of a watch follow each other. */
#include "watch/hit_order.h"

#include <stdbool.h>
#include <string.h>

/* ns for which the difference has to stay the same: longer than a thread can be
   delayed between its access and its report */
enum { STEADY = 1000000000 };

static uint64_t
accounted_by(const struct hit_order_hit *hit)
{
	return hit->counted - hit->suppressed;
}

static bool
has(const struct hit_order_hit *hit, uint32_t flag)
{
	return (hit->flags & flag) != 0;
}

/* Whether, with this hit reported, no other hit is still to be reported. */
static bool
is_settled(struct hit_order_watch *o, const struct hit_order_hit *hit)
{
	const uint64_t excess = accounted_by(hit) - o->reported;

	if (!has(hit, WP_CELL_COUNTED))
		return has(hit, WP_CELL_ALONE);
	if (o->since == 0 || excess != o->excess) {
		o->since = hit->time;
		o->excess = excess;
	}
	if (!has(hit, WP_CELL_ALONE) && !(o->based && excess == o->base) &&
	    (hit->time < o->since || hit->time - o->since < STEADY))
		return false;
	o->base = excess;
	o->based = true;
	return true;
}

/* Whether this hit accounts for all that was counted beyond `seen'. */
static bool
is_only(const struct hit_order_hit *hit, uint64_t seen)
{
	return has(hit, WP_CELL_COUNTED) && accounted_by(hit) - seen ==
	    (hit->times == 0 ? 1 : hit->times);
}

/* A single thread reports its hits in order, but may have missed others while
   it blocked the signal; these show if the hit has its own count. */
static bool
is_next(const struct hit_order_hit *hit, uint64_t nth, uint64_t seen,
    bool known)
{
	return hit->nth == nth + 1 && (!known || hit->times == 0 ||
	    !has(hit, WP_CELL_COUNTED) || is_only(hit, seen));
}

static bool
is_after_hit(const struct hit_order_watch *o, const struct hit_order_hit *hit)
{
	if (!o->any || o->number != hit->watch->settled ||
	    o->suppressed != hit->suppressed)
		return false;
	if (o->alone && has(hit, WP_CELL_ALONE))
		return is_next(hit, o->nth, o->seen, o->based);
	return o->settled && o->based && is_only(hit, o->seen);
}

void
hit_order_look(struct wp_channel_watch *to,
    const struct wp_channel_watch *from)
{
	const uint32_t serial = atomic_load(&from->serial);
	const uint32_t number = atomic_load(&from->settled.number);

	atomic_thread_fence(memory_order_seq_cst);
	memcpy(to, from, sizeof(*to));
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store(&to->serial, atomic_load(&from->serial) == serial ?
	    serial : 0);
	atomic_store(&to->settled.number,
	    atomic_load(&from->settled.number) == number ? number : 0);
}

/* Whether no hit was reported since the baseline was taken. */
static bool
is_after_baseline(const struct hit_order_watch *o,
    const struct hit_order_hit *hit, const struct wp_baseline *at)
{
	const uint64_t seen = o->reported + o->base;

	if (at->suppressed != hit->suppressed)
		return false;
	if (at->alone && has(hit, WP_CELL_ALONE))
		return is_next(hit, at->nth, seen, o->based);
	return o->based && (at->alone ||
	    at->counted - at->suppressed == seen) && is_only(hit, seen);
}

/* Keep what is_after_hit needs when the next hit comes. */
static void
keep(struct hit_order_watch *o, const struct hit_order_hit *hit)
{
	/* it counts as one access if their number is not known */
	o->reported += hit->times == 0 ? 1 : hit->times;
	o->settled = is_settled(o, hit);
	o->any = true;
	o->alone = has(hit, WP_CELL_ALONE);
	o->nth = hit->nth;
	o->time = hit->time;
	o->seen = accounted_by(hit);
	o->suppressed = hit->suppressed;
	o->number = hit->watch->settled;
}

static struct hit_order_watch *
find(struct hit_order *order, const struct hit_order_hit *hit)
{
	const struct wp_cell_watch *watch = hit->watch;
	struct hit_order_watch *o = &order->of[watch->index % WP_WATCHES_MAX];

	if (hit->gaps != order->gaps)
		for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
			order->of[i].any = false;
	order->gaps = hit->gaps;
	if (o->serial != watch->serial)
		*o = (struct hit_order_watch){
			.serial = watch->serial, .based = true,
		};
	return o;
}

enum ordered
hit_order_take(struct hit_order *order, const struct hit_order_hit *hit,
    uint8_t bytes[WP_BASELINE_MAX])
{
	struct hit_order_watch *o = find(order, hit);
	const struct wp_channel_watch *open = hit->open;
	const struct wp_baseline *at = &open->settled;
	enum ordered ordered = ORDER_UNKNOWN;

	if (atomic_load(&open->serial) != hit->watch->serial ||
	    open->exact == 0 || open->kernel == 0 || hit->unseen) {
		o->any = false;
		return ORDER_UNKNOWN;
	}
	if (o->time <= hit->gap)
		o->any = false;
	if (is_after_hit(o, hit))
		ordered = ORDER_AFTER_HIT;
	else if ((!o->any || o->number != hit->watch->settled) &&
	    hit->watch->settled != 0 &&
	    atomic_load(&at->number) == hit->watch->settled &&
	    at->time > hit->gap && is_after_baseline(o, hit, at)) {
		memcpy(bytes, at->byte, sizeof(at->byte));
		ordered = ORDER_AFTER_BASELINE;
	}
	if (hit->times == 0 && (ordered == ORDER_UNKNOWN ||
	    has(hit, WP_CELL_ALONE)))
		o->based = false;
	keep(o, hit);
	return ordered;
}
