/*
 * narrow_arm: a 32-bit program of Arm, without a library.  It counts the bytes
 * of its stdin, and ends with status 7.
 */
volatile int counter;

static int
call(int number, int a, void *b, int c)
{
	register int r7 __asm__("r7") = number;
	register int r0 __asm__("r0") = a;
	register void *r1 __asm__("r1") = b;
	register int r2 __asm__("r2") = c;

	__asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) :
	    "memory");
	return r0;
}

void
_start(void)
{
	enum { EXIT = 1, READ = 3 };
	char byte;

	while (call(READ, 0, &byte, 1) == 1)
		counter++;
	(void)call(EXIT, 7, 0, 0);
}
