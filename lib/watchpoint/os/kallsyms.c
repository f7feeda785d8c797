/* kallsyms: reads the kernel's symbols. */
#include "os/kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse a line: "address type name", which may be followed by "\t[module]". */
static int
take_line(char *line, int (*fn)(void *, uint64_t, char, const char *),
    void *arg)
{
	char *rest;
	const uint64_t addr = strtoull(line, &rest, 16);

	if (rest == line || rest[0] != ' ' || rest[1] == '\0' || rest[2] != ' ')
		return 0;
	line = rest + 3;
	line[strcspn(line, "\t\n ")] = '\0';
	return *line == '\0' ? 0 : fn(arg, addr, rest[1], line);
}

int
wp_kallsyms_each(const char *path,
    int (*fn)(void *, uint64_t, char, const char *), void *arg)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	int result = 0;

	if (f == NULL)
		return -errno;
	while (result == 0 && getline(&line, &cap, f) > 0)
		result = take_line(line, fn, arg);
	free(line);
	(void)fclose(f);
	return result;
}
