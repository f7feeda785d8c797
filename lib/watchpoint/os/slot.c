/*
 * slot: splits a region into parts for one slot each.
 *
 * Taking at each step the largest piece that both the address's alignment and
 * the rest of the region allow gives the fewest pieces.
 */
#include "os/slot.h"

#include <linux/hw_breakpoint.h>
#include <stdio.h>

#include "os/slot_cpu.h"

static uint64_t
largest_piece(uint64_t addr, uint64_t len, const struct wp_slot_caps *caps)
{
	const uint64_t rest = caps->range - addr % caps->range;
	uint64_t piece = 1;

	if (caps->bytes)
		return len < rest ? len : rest;
	while (piece * 2 <= len && piece * 2 <= caps->range &&
	    addr % (piece * 2) == 0)
		piece *= 2;
	return piece;
}

/* Split a region.  Result: the number of pieces; `out' has the first
   WP_SLOTS_MAX of them. */
static unsigned
split(const struct wp_region *region, const struct wp_slot_caps *caps,
    uint32_t type, struct wp_slot out[WP_SLOTS_MAX])
{
	const uint64_t range = caps->range;
	uint64_t addr = region->addr, left = region->len;
	unsigned n = 0;

	while (left > 0) {
		uint64_t piece = largest_piece(addr, left, caps);

		/* from here on addr is aligned for the rest */
		if (n == WP_SLOTS_MAX)
			return n + (unsigned)(left / range < UINT16_MAX ?
			    left / range : UINT16_MAX) + (caps->bytes ?
			    left % range != 0 :
			    (unsigned)__builtin_popcountll(left % range));
		out[n++] = (struct wp_slot){addr, piece, type};
		addr += piece;
		left -= piece;
	}
	return n;
}

static unsigned
pieces(uint64_t addr, uint64_t len, const struct wp_slot_caps *caps)
{
	const struct wp_region region = {.addr = addr, .len = len};
	struct wp_slot slots[WP_SLOTS_MAX];

	return split(&region, caps, 0, slots);
}

enum { FITTING_MAX = 80 };

/* "24 or 32 bytes": the lengths next to a region's that fit, the longer one
   only if there is one. */
static const char *
fitting(const struct wp_region *region, const struct wp_slot_caps *caps,
    char text[FITTING_MAX])
{
	const unsigned slots = caps->slots < WP_SLOTS_MAX ? caps->slots :
	    WP_SLOTS_MAX;
	const uint64_t most = slots * caps->range;
	uint64_t less = region->len - 1 < most ? region->len - 1 : most;
	uint64_t more = region->len;
	int n;

	while (less > 1 && pieces(region->addr, less, caps) > slots)
		less--;
	while (more <= most && pieces(region->addr, more, caps) > slots)
		more++;
	n = snprintf(text, FITTING_MAX, "%llu", (unsigned long long)less);
	if (more <= most)
		n += snprintf(text + n, FITTING_MAX - (size_t)n, " or %llu",
		    (unsigned long long)more);
	(void)snprintf(text + n, FITTING_MAX - (size_t)n, " byte%s%s",
	    less == 1 && more > most ? "" : "s", less < most && more > most ?
	    ", or more from an aligned address" : "");
	return text;
}

int
wp_slot_plan(const struct wp_region *region, const struct wp_slot_caps *caps,
    struct wp_slot out[WP_SLOTS_MAX], struct wp_cause *cause)
{
	char text[FITTING_MAX];
	unsigned n;

	if (region->access == WP_EXEC) {
		out[0] = (struct wp_slot){region->addr, wp_cpu_exec_len(),
		    HW_BREAKPOINT_X};
		return 1;
	}
	if (region->len == 0 || region->addr + (region->len - 1) < region->addr)
		return -ERANGE;
	n = split(region, caps, wp_cpu_data_type(region->access), out);
	if (n > caps->slots || n > WP_SLOTS_MAX)
		return wp_cause_set(cause, WP_CAUSE_LENGTH,
		    (unsigned long long)region->len,
		    (unsigned long long)region->addr, n, caps->slots,
		    fitting(region, caps, text));
	return (int)n;
}

bool
wp_slot_in_kernel(const struct wp_region *region)
{
	return region->addr > UINT64_MAX / 2 &&
	    wp_slot_canonical(region->addr) &&
	    region->len - 1 <= UINT64_MAX - region->addr;
}

int
wp_slot_check(const struct wp_region *region, struct wp_cause *cause)
{
	uint64_t end = wp_slot_user_end();
	uint64_t last = region->addr +
	    (region->access == WP_EXEC ? 0 : region->len - 1);

	if (!wp_slot_canonical(region->addr) || last < region->addr)
		return wp_cause_set(cause, WP_CAUSE_NON_CANONICAL,
		    (unsigned long long)region->addr, (unsigned long long)end);
	if (region->addr > UINT64_MAX / 2)
		return wp_cause_set(cause, WP_CAUSE_KERNEL_ADDRESS,
		    (unsigned long long)region->addr, (unsigned long long)end);
	if (last >= end)
		return wp_cause_set(cause, WP_CAUSE_NON_CANONICAL,
		    (unsigned long long)(region->addr < end ? end :
		    region->addr), (unsigned long long)end);
	return 0;
}
