/*
 * operand: what an instruction is about to touch, on processors that trap an
 * access before it is made.  Such an access may touch several watches, of which
 * the trap reports only one.
 *
 * One of operand_x86_64.c and operand_aarch64.c implements it.  Pure functions:
 * thread- and async-signal-safe.
 */
#ifndef WP_OPERAND_H
#define WP_OPERAND_H

#include <linux/hw_breakpoint.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/slot.h"

struct wp_operand {
	uint64_t addr;		/* the first byte, ... */
	unsigned size;		/* ... and how many; 0: not known */
	bool reads, writes;
};

/* By an instruction's code, and the registers before it, in the order of a
   sample's; pc is among them.  False: it is not known to touch anything. */
bool wp_operand(uint32_t code, const uint64_t *reg, struct wp_operand *);

/* Whether a slot watches for what it does to one of the slot's bytes. */
static inline bool
wp_operand_hits(const struct wp_operand *operand, const struct wp_slot *slot)
{
	return ((operand->reads && (slot->type & HW_BREAKPOINT_R) != 0) ||
	    (operand->writes && (slot->type & HW_BREAKPOINT_W) != 0)) &&
	    operand->addr < slot->addr + slot->len &&
	    slot->addr < operand->addr + operand->size;
}

/* Whether it is one of a pair of which the second stores only if nothing came
   in between.  A trap comes in between, so with a watch on that word a program
   would try for ever. */
bool wp_operand_is_exclusive(uint32_t code);

#endif
