/* slot_x86_64: watches on reads alone do not exist; execution takes 8. */
#include <linux/hw_breakpoint.h>

#include "os/slot_cpu.h"

const struct wp_slot_caps wp_slot_usual = {.slots = 4, .range = 8};

uint32_t
wp_cpu_data_type(enum wp_access access)
{
	return access == WP_WRITE ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW;
}

uint64_t
wp_cpu_exec_len(void)
{
	return sizeof(uint64_t);	/* the kernel's long */
}

/* 47 bits, less the guard page (TASK_SIZE_MAX).  With 5-level paging, programs
   still get addresses below that unless they ask for others by mmap hints. */
uint64_t
wp_slot_user_end(void)
{
	return (1ull << 47) - 4096;
}

bool
wp_slot_canonical(uint64_t addr)
{
	return addr < (1ull << 56) || addr >= UINT64_MAX - ((1ull << 56) - 1);
}
