/*
 * known_stack_map: known stacks, of which a hit needs only a short copy.
 *
 * To find the callers of a hit, unwinding looks at few words of the stack.
 * Which these are is known once a hit with the same place in the program, the
 * same stack pointer and the same values in these words was unwound
 * (os/known_stack.h).  Then a program copies the stack only as far as they lie:
 *
 *	process, pc, sp  - hash ->  entry: [ words ][ words ] ...  (ways)
 *	                                       |
 *	stack at the hit   -------------- all equal? -> sample with a short copy
 *	                                       `-> else: sample with a whole one
 *
 * A short copy is of that hit, as a whole one is.  So what is found by it is
 * true, whatever the entries say and whatever has been mapped since; the
 * comparison shows only that it is enough.
 *
 * Entries are in memory that programs share with user space, where one thread
 * writes: with bpf(2), programs would not run for a moment (docs/kernel.md),
 * and hits be lost.  An entry's version says whether a program saw it whole.
 */
#ifndef WP_KNOWN_STACK_MAP_H
#define WP_KNOWN_STACK_MAP_H

#include <stdbool.h>

#include "os/known_stack.h"

/* Entries; and stacks that one has. */
enum { WP_KNOWN_BITS = 10, WP_KNOWN_ENTRIES = 1 << WP_KNOWN_BITS,
	WP_KNOWN_WAYS = 4 };

struct wp_known_way {
	uint64_t fp, fp_bits;	/* those of the frame pointer that count; if fp
				   has others, there is no stack here */
	uint64_t word[WP_KNOWN_WORDS];	/* all: the last are as the first */
	uint16_t place[WP_KNOWN_WORDS];
	uint64_t number;	/* by which hits are counted
				   (stack_counter.h), */
	uint64_t slot;		/* those of this one; number 0: none are */
	struct wp_known_value value;	/* of these */
};

struct wp_known_entry {
	uint64_t version;	/* grows with each change, by two; odd: it is
				   being changed */
	uint64_t pc, sp;	/* of these stacks */
	uint64_t pid;		/* and their process; 0: there are none */
	uint64_t reach;		/* bytes above sp that all words lie in */
	struct wp_known_way way[WP_KNOWN_WAYS];	/* newest first */
};

/* Which entry is for such stacks: the highest bits of the product of this and
   wp_known_mix(). */
#define WP_KNOWN_FACTOR UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t
wp_known_mix(uint64_t pc, uint64_t sp, uint64_t pid)
{
	return (sp << 24 ^ pc) + pid;
}

/* What a sample's raw bytes have behind the ticket where short copies are
   tried: how long one would be; the copy is whole. */
struct wp_known_trial {
	uint64_t size;
};

struct wp_known {
	int map;		/* of the entries; < 0: there are none */
	int scratch;		/* an array of WP_KNOWN_SCRATCH bytes for each
				   ring, where its programs put what they
				   compare */
	struct wp_known_entry *entry;
};

/* The stack, and behind it the registers by PERF_REG_X86_*: a power of two of
   them. */
enum { WP_KNOWN_REGISTERS = 32,
	WP_KNOWN_SCRATCH = WP_KNOWN_REACH + WP_KNOWN_REGISTERS * 8 };

/* Both, for programs of so many rings.  0 or -errno: there are none. */
int wp_known_open(struct wp_known *, unsigned rings);
void wp_known_close(struct wp_known *);

/* Whether a stack makes sense; to be asked of those that others made. */
bool wp_known_is_valid(const struct wp_known_stack *);

/* Add one that is valid, in place of the oldest with its place and pointer, or
   of those that have its entry.  Hits of this slot are counted by number; 0:
   none are.  False: they are not, since it was there, as was asked for then. */
bool wp_known_add(const struct wp_known *, const struct wp_known_stack *,
    uint64_t number, uint64_t slot);

/* Forget those of a process; 0: of all. */
void wp_known_forget(const struct wp_known *, pid_t);

#endif
