/*
 * relay: a victim that hands over to another program.
 *
 *	relay WRITES [PROGRAM [ARG...]]
 *
 * The counter is written once before main, and then so many times; then the
 * process executes the program.  Without one it ends with status 7.  If WRITES
 * is negative, a child executes it, whose status becomes that of the process.
 */
#include <stdlib.h>
#include <sys/wait.h>
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
	const int writes = atoi(argv[1]);
	int status = 0;

	for (int i = abs(writes); i > 0; i--)
		bump();
	if (writes < 0 && fork() > 0)
		return waitpid(-1, &status, 0) > 0 ? WEXITSTATUS(status) : 1;
	if (argc > 2)
		(void)execvp(argv[2], argv + 2);
	return 7;
}
