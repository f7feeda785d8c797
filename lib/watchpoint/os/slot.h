/*
 * slot: how a region of memory is covered by the processor's debug registers.
 *
 * A region may be unaligned and longer than one register holds; it is split
 * into the fewest pieces that cover it exactly, never more than it: naturally
 * aligned powers of two, or any bytes of an aligned word.  See
 * slot_x86_64.c and slot_aarch64.c for what each processor can do.
 *
 * Pure functions: thread- and async-signal-safe.
 */
#ifndef WP_SLOT_H
#define WP_SLOT_H

#include <linux/hw_breakpoint.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/cause.h"
#include "watchpoint.h"

#pragma GCC visibility push(default)

struct wp_region {
	uint64_t addr;		/* first byte */
	uint64_t len;		/* bytes, at least 1; ignored for WP_EXEC */
	enum wp_access access;
	bool insn;		/* for execution: an instruction certainly
				   begins there, so that a uprobe may be used
				   instead of a slot */
};

#define WP_SLOTS_MAX 16		/* more than any processor has */

/* One debug register's worth, as perf_event_open takes it. */
struct wp_slot {
	_Alignas(8)		/* in 32-bit programs, too: handler/channel.h */
	uint64_t addr;		/* bp_addr: of data aligned to len, unless any
				   bytes can be watched */
	uint64_t len;		/* bp_len */
	uint32_t type;		/* bp_type: HW_BREAKPOINT_* */
};

/* The number of watched bytes of a region; for execution 1, that at its
   address. */
static inline uint64_t
wp_region_bytes(enum wp_access access, uint64_t len)
{
	return access == WP_EXEC ? 1 : len;
}

/* The number of bytes that a slot watches, by bp_type and bp_len; for execution
   1, that at its address. */
static inline uint64_t
wp_slot_bytes(uint32_t type, uint64_t len)
{
	return wp_region_bytes(type == HW_BREAKPOINT_X ? WP_EXEC : WP_ACCESS,
	    len);
}

/* What the processor offers. */
struct wp_slot_caps {
	unsigned slots;		/* data watches in a thread at the same time */
	uint64_t range;		/* longest aligned power-of-two region that one
				   slot takes; 8 unless address masks exist */
	bool bytes;		/* a slot takes any bytes of such a region that
				   lie side by side */
};

/* Those of a processor without masks: 4 slots of at most 8 bytes. */
extern const struct wp_slot_caps wp_slot_usual;

/*
 * Split a region.  Result: the number of slots, which are in out (in order of
 * address); or, with a cause, -E2BIG if there are more than caps->slots, or
 * -ERANGE if the region extends beyond the end of the address space.
 */
int wp_slot_plan(const struct wp_region *, const struct wp_slot_caps *caps,
    struct wp_slot out[WP_SLOTS_MAX], struct wp_cause *);

/* Whether a region consists of addresses that a program can have: 0, or -errno
   with a cause. */
int wp_slot_check(const struct wp_region *, struct wp_cause *);

/* Whether all addresses of a region are the kernel's. */
bool wp_slot_in_kernel(const struct wp_region *);

/* The first address that is not a user program's. */
uint64_t wp_slot_user_end(void);

/* Whether addr can be an address at all (canonical, on x86-64). */
bool wp_slot_canonical(uint64_t addr);

#pragma GCC visibility pop

#endif
