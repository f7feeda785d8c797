/*
 * signs: variables of several types, each of which takes the same values: 20
 * times -5, -4, ... 4, by store(), which settle() calls for the even ones and
 * main() for the others.
 *
 * Says "pid PID balance ADDRESS", waits for a line on stdin, does that, says
 * "done 200", and ends, with status 7, at the next line.
 */
#include <stdio.h>
#include <unistd.h>

#include "line.h"

#define OWN __attribute__((noinline))

enum state { IDLE, BUSY, BROKEN = 4 };

volatile signed char tiny;
volatile int balance;
volatile unsigned total;
volatile long wide;
volatile float ratio;
volatile double level;
volatile enum state state;

OWN static void
store(int value)
{
	tiny = (signed char)value;
	balance = value;
	total = (unsigned)value;
	wide = value;
	ratio = (float)value / 4;
	level = value / 2.0;
	state = value < 0 ? IDLE : (enum state)value;
	__asm__ volatile("");
}

OWN static void
settle(int value)
{
	store(value);
	__asm__ volatile("");
}

int
main(void)
{
	printf("pid %d balance %p\n", (int)getpid(), (void *)&balance);
	fflush(stdout);
	(void)await_line();
	for (int i = 0; i < 200; i++) {
		if (i % 2 == 1)		/* -4, -2, 0, ... */
			settle(i % 10 - 5);
		else
			store(i % 10 - 5);
	}
	printf("done 200\n");
	fflush(stdout);
	(void)await_line();
	return 7;
}
