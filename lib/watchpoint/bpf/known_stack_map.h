/*
 * known_stack_map: known stacks.  A hit with a known stack needs only a short
 * copy of it.
 *
 * To find the callers of a hit, unwinding reads few words of the stack.  Which
 * words these are is known once a hit with the same program counter and the
 * same words was unwound (os/known_stack.h).  From then on the program at the
 * hit copies the stack only as far as these words lie:
 *
 *	process, pc, sp in its page
 *		  - hash ->  entry: [ words ][ words ] ...  (ways)
 *	                                       |
 *	stack at the hit   -------------- all agree? -> sample with a short copy
 *	                                       `-> else: sample with a whole one
 *
 * A short copy, like a whole one, is taken at its own hit.  So the callers
 * found in it are right, whatever the entries contain and whatever was mapped
 * since; the comparison only shows that the short copy is long enough.
 *
 * The entries are in memory that programs share with user space, where one
 * thread writes them.  If it wrote them by bpf(2), programs would not run for a
 * moment (docs/kernel.md), and hits would be lost.  The version of an entry
 * shows whether a program read it while it was being changed.
 */
#ifndef WP_KNOWN_STACK_MAP_H
#define WP_KNOWN_STACK_MAP_H

#include <stdbool.h>

#include "os/known_stack.h"

/* The number of entries, and of stacks in each. */
enum { WP_KNOWN_BITS = 10, WP_KNOWN_ENTRIES = 1 << WP_KNOWN_BITS,
	WP_KNOWN_WAYS = 4 };

/* Short copies are as long as this, or twice, four times ... as long. */
enum { WP_KNOWN_SHORTEST = 256 };

struct wp_known_way {
	uint64_t fp, fp_bits;	/* the bits of the frame pointer's distance from
				   sp that must be equal, and their mask; if fp
				   has bits outside the mask, the way is
				   empty */
	uint64_t sp, sp_bits;	/* the same of the stack pointer */
	uint64_t n;		/* words to compare; the rest is 0: */
	uint64_t word[WP_KNOWN_WORDS];	/* relative ones: their distance from
					   sp */
	uint16_t place[WP_KNOWN_WORDS];	/* as in struct wp_known_stack */
	uint64_t number;	/* the number by which hits of this stack are
				   counted (stack_counter.h); 0: they are not */
	uint64_t slot;		/* the slot whose hits are counted */
	struct wp_known_value value;	/* the value at these hits */
};

struct wp_known_entry {
	uint64_t version;	/* grows by two with each change; odd: it is
				   being changed */
	uint64_t pc, sp;	/* of these stacks: the program counter, and the
				   stack pointer's place in its page */
	uint64_t pid;		/* their process; 0: the entry is empty */
	uint64_t reach;		/* a short copy's size, bytes: all words lie
				   within as many above sp */
	struct wp_known_way way[WP_KNOWN_WAYS];	/* newest first */
};

/* The index of a stack's entry is the highest bits of wp_known_mix() times
   this. */
#define WP_KNOWN_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* Of the stack pointer, its place in its page. */
static inline uint64_t
wp_known_mix(uint64_t pc, uint64_t sp, uint64_t pid)
{
	return (sp << 24 ^ pc) + pid;
}

/* With trials of short copies, follows the ticket in a sample's raw bytes: how
   long the short copy would be.  The sample has a whole one. */
struct wp_known_trial {
	uint64_t size;
};

struct wp_known {
	int map;		/* the map of the entries; < 0: there is none */
	int scratch;		/* an array of WP_KNOWN_SCRATCH bytes for each
				   ring, in which its programs put what they
				   compare */
	struct wp_known_entry *entry;
};

/* A scratch area holds the stack and, behind it, the registers by
   PERF_REG_X86_*; their number is a power of two. */
enum { WP_KNOWN_REGISTERS = 32,
	WP_KNOWN_SCRATCH = WP_KNOWN_REACH + WP_KNOWN_REGISTERS * 8 };

/* Make both maps, for the programs of this many rings.  0 or -errno: there are
   none. */
int wp_known_open(struct wp_known *, unsigned rings);
void wp_known_close(struct wp_known *);

/* Whether a stack is valid; to be checked for each one that another process
   sent. */
bool wp_known_is_valid(const struct wp_known_stack *);

/* Add a valid stack.  It replaces the oldest one of its entry, or the stacks of
   another program counter or place in it.  Hits of this slot
   are counted by number; 0: they are not.  False: they are not counted by this
   number, because it is 0 or the stack is counted already. */
bool wp_known_add(const struct wp_known *, const struct wp_known_stack *,
    uint64_t number, uint64_t slot);

/* Forget the stacks of a process; 0: all stacks. */
void wp_known_forget(const struct wp_known *, pid_t);

#endif
