/* slot_aarch64: reads alone can be watched, and any bytes of eight (a register
   selects them one by one); execution takes 4 bytes. */
#include <linux/hw_breakpoint.h>

#include "os/slot_cpu.h"

const struct wp_slot_caps wp_slot_usual = {
	.slots = 4, .range = 8, .bytes = true,
};

uint32_t
wp_cpu_data_type(enum wp_access access)
{
	switch (access) {
	case WP_WRITE:
		return HW_BREAKPOINT_W;
	case WP_READ:
		return HW_BREAKPOINT_R;
	default:
		return HW_BREAKPOINT_RW;
	}
}

uint64_t
wp_cpu_exec_len(void)
{
	return 4;
}

uint64_t
wp_slot_user_end(void)
{
	return 1ull << 48;
}

bool
wp_slot_canonical(uint64_t addr)
{
	return addr < (1ull << 52) || addr >= UINT64_MAX - ((1ull << 52) - 1);
}
