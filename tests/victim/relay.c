/*
 * relay: a victim that hands over to another program.
 *
 *	relay WRITES [PROGRAM [ARG...]]
 *
 * The counter is written once before main, and then so many times; then the
 * process executes the program.  Without one it ends with status 7.
 */
#include <stdlib.h>
#include <unistd.h>

volatile long counter;

__attribute__((constructor)) static void
prepare(void)
{
	counter++;
}

static __attribute__((noinline)) void
bump(void)
{
	counter++;
}

int
main(int argc, char **argv)
{
	for (int i = atoi(argv[1]); i > 0; i--)
		bump();
	if (argc > 2)
		(void)execvp(argv[2], argv + 2);
	return 7;
}
