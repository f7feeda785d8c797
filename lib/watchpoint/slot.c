/*
 * slot: splitting a region into naturally aligned powers of two.
 *
 * Taking at each step the largest piece that both the address's alignment and
 * the rest of the region allow gives the fewest pieces.
 */
#include "slot.h"

#include <linux/hw_breakpoint.h>

#include "slot_cpu.h"

const struct wp_slot_caps wp_slot_usual = {.slots = 4, .range = 8};

static uint64_t
largest_piece(uint64_t addr, uint64_t len, uint64_t range)
{
	uint64_t piece = 1;

	while (piece * 2 <= len && piece * 2 <= range &&
	    addr % (piece * 2) == 0)
		piece *= 2;
	return piece;
}

/* How many pieces a region takes; the first WP_SLOTS_MAX of them in out. */
static unsigned
split(const struct wp_region *region, uint64_t range, uint32_t type,
    struct wp_slot out[WP_SLOTS_MAX])
{
	uint64_t addr = region->addr, left = region->len;
	unsigned n = 0;

	while (left > 0) {
		uint64_t piece = largest_piece(addr, left, range);

		if (n == WP_SLOTS_MAX)	/* by now addr is aligned for the rest */
			return n + (unsigned)(left / range < UINT16_MAX ?
			    left / range : UINT16_MAX) +
			    (unsigned)__builtin_popcountll(left % range);
		out[n++] = (struct wp_slot){addr, piece, type};
		addr += piece;
		left -= piece;
	}
	return n;
}

int
wp_slot_plan(const struct wp_region *region, const struct wp_slot_caps *caps,
    struct wp_slot out[WP_SLOTS_MAX], struct wp_cause *cause)
{
	unsigned n;

	if (region->access == WP_EXEC) {
		out[0] = (struct wp_slot){region->addr, wp_cpu_exec_len(),
		    HW_BREAKPOINT_X};
		return 1;
	}
	if (region->len == 0 || region->addr + (region->len - 1) < region->addr)
		return -ERANGE;
	n = split(region, caps->range, wp_cpu_data_type(region->access), out);
	if (n > caps->slots || n > WP_SLOTS_MAX)
		return wp_cause_set(cause, WP_CAUSE_LENGTH,
		    (unsigned long long)region->len,
		    (unsigned long long)region->addr, n, caps->slots,
		    (unsigned)(caps->slots * caps->range));
	return (int)n;
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
