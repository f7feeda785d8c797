/*
 * sig_data: the data in the signal of a hit: the copy of this library, the
 * watch, the generation of its entry, the slots.  The kernel's signals have it
 * from the event; those that the helper passes on, from the helper.
 */
#ifndef WP_SIG_DATA_H
#define WP_SIG_DATA_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/slot.h"

/* The signal of the ptrace delivery; and what the handler sends itself for the
   tracer to see.  The async delivery's is wp_state.event_signal. */
#define WP_SIGNAL (SIGRTMAX - 1)

/* What that one can be: signals that do no harm to a program, or that none
   uses, best first; 0 at the end. */
#define WP_EVENT_SIGNALS {SIGURG, SIGWINCH, SIGIO, SIGPWR, SIGSTKFLT, 0}

/*
 * sig_data of our events, and of the SIGTRAPs that the helper passes on: the
 * watch that it is for, and which use of the watch's entry.
 *
 *	63 56 55                24 23       16 15           0
 *	[ "W" | serial            | slot      | index        ]
 *	       55  48 47        24
 *	      [ copy | use        ]
 *
 * From ptrace(2), when one instruction hit several slots of a watch, slot is
 * 0x80 and a bit for each of them, 1 << slot.  When it hit several watches,
 * slot is 0xff and index and the low half of serial hold four bytes: 1 + index
 * of each, or 0; watch indexes of that delivery are below 255.
 */
#define WP_SIG_MAGIC	0x57u
#define WP_SIG_USES	0xffffffu	/* of a serial: which use; the rest:
					   which copy (inside/copies.h) */
#define WP_SIG_SLOTS	0x80u
#define WP_SIG_MANY	0xffu
/* In a slot's place: no hit, but wp_helper_rearm. */
#define WP_SIG_REARM	0xfeu

static inline uint64_t
wp_sig_data(uint32_t serial, unsigned slot, unsigned index)
{
	return (uint64_t)WP_SIG_MAGIC << 56 | (uint64_t)serial << 24 |
	    (uint64_t)(slot & 0xff) << 16 | (index & 0xffff);
}

/* Whether it is ours, of that copy; and whether it is WP_SIG_REARM, of any. */
static inline bool
wp_sig_is_of(uint64_t data, uint8_t copy)
{
	return data >> 48 == (WP_SIG_MAGIC << 8 | copy);
}

static inline bool
wp_sig_is_rearm(uint64_t data)
{
	return (data & ~((uint64_t)UINT8_MAX << 48 | 1)) ==
	    wp_sig_data(0, WP_SIG_REARM, 0);
}

/* Of that: whether the thread goes back to where it was. */
static inline bool
wp_sig_is_back(uint64_t data)
{
	return (data & 1) != 0;
}

/* The slots that a slot's place names, a bit for each; 0: not known. */
static inline uint32_t
wp_sig_slots(unsigned slot)
{
	return slot < WP_SLOTS_MAX ? 1u << slot :
	    (slot & 0xf0) == WP_SIG_SLOTS ? slot & 0xf : 0;
}

/* With the data of several watches that events have counted: the slots, and how
   many accesses to each; more than there is room for are lost. */
static inline uint64_t
wp_sig_times(unsigned slots, uint64_t times, unsigned i)
{
	return ((slots & 0xf) << 12 | (times < 0xfff ? times : 0xfff)) <<
	    16 * i;
}

/* One of them has this serial. */
static inline uint64_t
wp_sig_many(uint32_t serial, const uint8_t watch[4])
{
	return wp_sig_data((serial & ~WP_SIG_USES) |
	    (uint32_t)(watch[2] | watch[3] << 8), WP_SIG_MANY,
	    (unsigned)(watch[0] | watch[1] << 8));
}

/* The i-th of them, below 4: 1 + index, or 0. */
static inline unsigned
wp_sig_many_get(uint64_t data, unsigned i)
{
	return data >> (i < 2 ? 8 * i : 24 + 8 * (i - 2)) & 0xff;
}

#endif
