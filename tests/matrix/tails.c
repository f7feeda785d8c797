/* tails: each word among its arguments names a way to a store to `config`; most
   end in a jump, which leaves nothing on the stack. */
#include <stdio.h>
#include <string.h>

#define ALONE __attribute__((noinline))

long config;
static volatile int choice = 1;
static long from[2] = {5, 6};
volatile size_t length = sizeof(config);

ALONE static void
set(long value)
{
	config = value;
	__asm__ volatile("" ::: "memory");
}

ALONE static void
reload(long value)
{
	choice++;
	set(value + 1);
}

ALONE static void
middle(long value)
{
	choice++;
	reload(value * 2);
}

ALONE static void
left(long value)
{
	choice++;
	set(value + 3);
}

ALONE static void
right(long value)
{
	choice += 2;
	set(value + 4);
}

ALONE static void
either(long value)
{
	if (choice != 0)
		left(value);
	else
		right(value);
}

static void (*volatile pointer)(long) = set;

ALONE static void
anywhere(long value)
{
	choice++;
	pointer(value);
}

/* A jump through a table is none to another function. */
#define CASE(n)								\
	case n:								\
		__asm__ volatile("// " #n);				\
		choice += (n);						\
		break;

ALONE static void
switches(long value)
{
	switch (value % 16) {
	CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
	CASE(9) CASE(10) CASE(11) CASE(12)
	}
	set(value);
}

ALONE static void
calls(long value)
{
	set(value);
	choice = 1;
}

/* To a function of another library, through a stub. */
ALONE static void *
copies(long value)
{
	from[0] = value;
	return memcpy(&config, from, length);
}

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
#define WAY(name)							\
	if (strcmp(argv[i], #name) == 0)				\
		name(i)
		WAY(set);
		WAY(reload);
		WAY(middle);
		WAY(either);
		WAY(anywhere);
		WAY(switches);
		WAY(calls);
		WAY(copies);
	}
	return choice == 0;
}
