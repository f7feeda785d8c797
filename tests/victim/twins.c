/*
 * twins: a victim with a static variable that has the name of a library's.
 *
 * Says "pid PID optopt ADDRESS"; ends at the end of stdin.
 */
#include <stdio.h>

int getpid(void);	/* without <unistd.h>, which declares the library's */

static volatile long optopt;

int
main(void)
{
	optopt = 2;
	printf("pid %d optopt %p\n", getpid(), (void *)&optopt);
	fflush(stdout);
	(void)getchar();
	return (int)optopt - 2;
}
