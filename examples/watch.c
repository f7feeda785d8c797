/* watch: one line more, and each write to a variable is told. */
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
