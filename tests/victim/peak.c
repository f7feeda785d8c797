/* peak: runs a command, and writes into a file how much memory one of its
   processes had at most, in KiB. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct rusage usage;
	int status = 1;
	FILE *f;

	if (argc < 3)
		return 1;
	if (fork() == 0) {
		(void)execvp(argv[2], argv + 2);
		_exit(127);
	}
	(void)wait(&status);
	if (getrusage(RUSAGE_CHILDREN, &usage) != 0 ||
	    (f = fopen(argv[1], "w")) == NULL)
		return 1;
	(void)fprintf(f, "%ld\n", usage.ru_maxrss);
	(void)fclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
