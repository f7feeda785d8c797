/*
 * known_stack: a stack that was unwound, by the words that its unwinding read:
 * a hit at the same place with the same words needs only a copy of the part of
 * the stack that contains these words.
 *
 * A word that the unwinding took for a program counter must be equal.  One from
 * which it computed an address in the stack must be as far from the stack
 * pointer as it was.  Then every address that it read has moved together with
 * the stack pointer, and another thread's stack gives the same callers.
 */
#ifndef WP_KNOWN_STACK_H
#define WP_KNOWN_STACK_H

#include <stdint.h>
#include <sys/types.h>

/* The greatest number of words; the distance from the stack pointer within
   which they lie, in bytes, a power of two; and what the stack pointers of
   threads with the same stack differ by, a multiple of this: each stack begins
   with a page. */
enum {
	WP_KNOWN_WORDS = 96, WP_KNOWN_REACH = 4096, WP_KNOWN_PAGE = 4096,
};

/* In a place: the word is an address in the stack. */
enum { WP_KNOWN_RELATIVE = 1 };

/* Where to find the value that the instruction before the pc stored into all
   bytes of the watch. */
enum wp_known_source {
	WP_KNOWN_NOWHERE,	/* it is not known */
	WP_KNOWN_CONSTANT,	/* in the instruction */
	WP_KNOWN_REGISTER,	/* in a register, which has it still */
};

struct wp_known_value {
	uint32_t source;	/* enum wp_known_source */
	uint32_t reg;		/* that register: PERF_REG_X86_* */
	uint64_t constant;
	uint32_t nbases;	/* registers that its address is made of: */
	uint32_t base[2];	/* PERF_REG_X86_*; it is the watch's while
				   they */
	uint64_t holds[2];	/* have these values */
};

struct wp_known_stack {
	uint64_t time;		/* ns, of the hit; */
	uint64_t pc, sp;	/* its registers */
	uint64_t fp;		/* its frame pointer; by_fp 1: what words
				   these are depends on it; 0: not */
	pid_t pid;
	uint32_t by_fp;
	uint32_t by_sp;		/* 1: its unwinding depends on sp in another way
				   than described above; 0: it does not */
	uint32_t n;		/* words, at least one: */
	uint64_t word[WP_KNOWN_WORDS];
	uint16_t place[WP_KNOWN_WORDS];	/* bytes above sp, multiples of 8, and
					   perhaps WP_KNOWN_RELATIVE */
	uint32_t watch;		/* from 1: hits of it need not be delivered,
				   only counted (bpf/stack_counter.h); 0: they
				   do */
	uint32_t stack;		/* then: the backtrace's number, by the process
				   that counts */
	struct wp_known_value value;	/* of these hits */
};

#endif
