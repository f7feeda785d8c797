/*
 * start: a victim without a C library, whose very first instruction writes a
 * word at a fixed address.  Ends with status 3.
 */
__attribute__((section(".watched"))) volatile long watched = 1;

void _start(void);

#ifdef __x86_64__
__asm__(
    ".globl _start\n"
    "_start:\n"
    "	movq $42, watched\n"
    "	movl $60, %eax\n"
    "	movl $3, %edi\n"
    "	syscall\n");
#endif
