/*
 * reference: a reference in a program that has no name which C++ has mangled.
 * Prints "pid PID heap ADDRESS", and ends at the next line on stdin.
 */
#include <cstdio>
#include <unistd.h>

long object[3];
long &reference = object[1];
extern long *const pointer;
long *const pointer = &object[2];

int
main()
{
	char line[16];

	printf("pid %d heap %p\n", (int)getpid(), (void *)object);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) == nullptr ? 1 : 7;
}
