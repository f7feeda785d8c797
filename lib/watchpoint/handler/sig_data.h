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

/* The signals to choose from, which do no harm to a program or which no program
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

/* Whether the data says that the thread returns to where it was. */
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

/* In the data of several counted watches, the part of watch i: its slots, and
   the number of accesses to each, which is limited to what fits. */
static inline uint64_t
wp_sig_times(unsigned slots, uint64_t times, unsigned i)
{
	return ((slots & 0xf) << 12 | (times < 0xfff ? times : 0xfff)) <<
	    16 * i;
}

/* The data of up to four watches, one of which has this serial. */
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

/*
 * A 32-bit program gets the lower halves of addr and data alone, so its data is
 * made to fit:
 *
 *	  31   30 28 27  20 19 13 12  8 7     0
 *	[ late | 7  | copy | use | slot | index ]
 *
 * Of several watches, addr has the four bytes, and how often each was accessed
 * is not told.  slot is a slot or WP_SIG_NARROW_MANY, below 16; or it is 16 and
 * a bit for each slot.  late is the helper's: what it passes on has no flags
 * there.
 */
#define WP_SIG_NARROW_LATE	0x80000000u
enum {
	WP_SIG_NARROW_MAGIC = 7,
	WP_SIG_NARROW_SLOTS = 0x10,
	WP_SIG_NARROW_MANY = 0xf,
	WP_SIG_NARROW_USES = 0x7f,	/* what fits of a serial */
};

static inline uint32_t
wp_sig_narrow_slot(unsigned slot)
{
	return slot == WP_SIG_MANY ? WP_SIG_NARROW_MANY :
	    (slot & 0xf) | ((slot & WP_SIG_SLOTS) != 0 ?
	    WP_SIG_NARROW_SLOTS : 0u);
}

static inline uint32_t
wp_sig_narrow(uint64_t data)
{
	return (uint32_t)WP_SIG_NARROW_MAGIC << 28 |
	    (uint32_t)(data >> 48 & 0xff) << 20 |
	    (uint32_t)(data >> 24 & WP_SIG_NARROW_USES) << 13 |
	    wp_sig_narrow_slot(data >> 16 & 0xff) << 8 | (data & 0xff);
}

/* The addr that goes with it; times: of one watch. */
static inline uint32_t
wp_sig_narrow_addr(uint64_t data, uint64_t times)
{
	uint32_t many = 0;

	if ((data >> 16 & 0xff) != WP_SIG_MANY)
		return (uint32_t)(times < UINT32_MAX ? times : UINT32_MAX);
	for (unsigned i = 0; i < 4; i++)
		many |= (uint32_t)wp_sig_many_get(data, i) << 8 * i;
	return many;
}

/* The data that was made to fit; 0: it is none.  Of the serial's use it has the
   bits of WP_SIG_NARROW_USES. */
static inline uint64_t
wp_sig_wide(uint32_t data, uint32_t addr)
{
	const unsigned at = data >> 8 & 0x1f;
	const uint32_t copy = (data >> 20 & 0xff) << 24;
	const uint8_t many[4] = {
		(uint8_t)addr, (uint8_t)(addr >> 8), (uint8_t)(addr >> 16),
		(uint8_t)(addr >> 24),
	};

	if ((data >> 28 & 7) != WP_SIG_NARROW_MAGIC)
		return 0;
	if (at == WP_SIG_NARROW_MANY)
		return wp_sig_many(copy, many);
	return wp_sig_data(copy | (data >> 13 & WP_SIG_NARROW_USES),
	    (at & WP_SIG_NARROW_SLOTS) != 0 ? WP_SIG_SLOTS | (at & 0xf) : at,
	    data & 0xff);
}

#endif
