/*
 * watch: add one line, and each write to a variable is reported:
 *
 *	#1   write  balance (4 bytes at 0x56073e15d2d0)  -> 70
 *	     watch[7872/7872] cpu 0  +0.000363s
 *	     pay+0x10  mov %eax, 0x11a51(%rip)   watch.c:20
 *	     0  pay   watch.c:20
 *	     1  main  watch.c:27
 *	     ...
 *	65 left
 */
#include <stdio.h>
#include <watchpoint.h>

static int balance = 100;

static void
pay(int amount)
{
	balance -= amount;
}

int
main(void)
{
	WP_WATCH(balance);
	pay(30);
	WP_UNWATCH(balance);
	pay(5);
	printf("%d left\n", balance);
	return 0;
}
