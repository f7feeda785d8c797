/*
 * jumps: code that stores where it is to go on, and jumps there: what a trap
 * after the store and one after the jump have in common is the next pc.
 */
#include <stdint.h>

void *place;

void go_on(void *to);
void there(void);

__asm__(".pushsection .text\n"
    "	.globl go_on\n	.type go_on, @function\n"
    "go_on:\n"
    "	.cfi_startproc\n"
    "	leaq place(%rip), %rdx\n"
    "	mov %rdi, (%rdx)\n"
    "	jmp *(%rdx)\n"
    "	.cfi_endproc\n"
    "	.size go_on, . - go_on\n"
    "	.globl there\n	.type there, @function\n"
    "there:\n"
    "	.cfi_startproc\n"
    "	ret\n"
    "	.cfi_endproc\n"
    "	.size there, . - there\n"
    "	.popsection");

int
main(void)
{
	place = (void *)main;
	go_on((void *)(uintptr_t)there);
	return 0;
}
