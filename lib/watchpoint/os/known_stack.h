/*
 * known_stack: a stack that was unwound, by the words that its unwinding read: of a
 * hit at the same place, with the same stack pointer and the same words, no more
 * of the stack need be copied than has these words.
 */
#ifndef WP_KNOWN_STACK_H
#define WP_KNOWN_STACK_H

#include <stdint.h>
#include <sys/types.h>

/* How many words, at most; and how far above the stack pointer they end, in bytes:
   a power of two. */
enum { WP_KNOWN_WORDS = 32, WP_KNOWN_REACH = 2048 };

struct wp_known_stack {
	uint64_t pc, sp;	/* of the hit */
	uint64_t fp;		/* its frame pointer; by_fp 1: what words
				   these are depends on it; 0: not */
	pid_t pid;
	uint32_t by_fp;
	uint32_t n;		/* words, at least one: */
	uint64_t word[WP_KNOWN_WORDS];
	uint16_t place[WP_KNOWN_WORDS];	/* bytes above sp, multiples of 8 */
};

#endif
