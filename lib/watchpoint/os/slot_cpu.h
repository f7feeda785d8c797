/*
 * slot_cpu: what differs by processor about slots.  One of slot_x86_64.c and
 * slot_aarch64.c implements it.
 */
#ifndef WP_SLOT_CPU_H
#define WP_SLOT_CPU_H

#include <stdint.h>

#include "os/slot.h"

/* bp_type for a data access. */
uint32_t wp_cpu_data_type(enum wp_access);

/* bp_len of an execution breakpoint. */
uint64_t wp_cpu_exec_len(void);

#endif
