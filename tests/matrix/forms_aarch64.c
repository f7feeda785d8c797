/*
 * forms_aarch64: the ways in which 64-bit Arm stores, once each, at the word
 * `area[2]`, after a character on standard input.
 */
#include <stdio.h>

/* with room on both sides */
long area[8] __attribute__((aligned(64)));

#define OWN __attribute__((noinline))

/* Each is given the word's address, and an index of it. */
static OWN void
store_all(long *at, long one)
{
	__asm__ volatile(
	    "movi v0.16b, #0xcc\n"
	    "mov x9, #0x1111111111111111\n str x9, [%0]\n"
	    "mov w9, #0x22222222\n str w9, [%0]\n"
	    "mov w9, #0x3333\n strh w9, [%0]\n"
	    "mov w9, #0x44\n strb w9, [%0]\n"
	    "mov x9, #0x5555555555555555\n add x10, %0, #8\n"
	    "stur x9, [x10, #-8]\n"
	    "mov x9, #0x6666666666666666\n mov x10, %0\n str x9, [x10], #8\n"
	    "mov x9, #0x7777777777777777\n sub x10, %0, #8\n"
	    "str x9, [x10, #8]!\n"
	    "mov x9, #0x1\n mov x11, #0x8888888888888888\n sub x10, %0, #8\n"
	    "stp x9, x11, [x10]\n"
	    "mov x9, #0x9999999999999999\n sub x10, %0, #8\n"
	    "str x9, [x10, %w1, uxtw #3]\n"
	    "mov x9, #0xaaaaaaaaaaaaaaaa\n sub x10, %0, #8\n"
	    "str x9, [x10, %1, lsl #3]\n"
	    "str q0, [%0]\n"
	    "st1 {v0.16b}, [%0]\n"
	    "mov x9, #0xbbbbbbbbbbbbbbbb\n stlr x9, [%0]\n"
	    "str xzr, [%0]\n"
	    : : "r"(at), "r"(one) : "x9", "x10", "x11", "v0", "memory");
}

int
main(void)
{
	(void)getchar();
	store_all(&area[2], 1);
	return 7;
}
