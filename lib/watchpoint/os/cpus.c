/* cpus: lists of processors. */
#include "os/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MAX = 4096 };	/* a page, the most that a file in /sys has */

static bool
parse_number(const char **at, unsigned *number)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)**at))
		return false;
	value = strtoul(*at, &end, 10);
	*at = end;
	*number = (unsigned)value;
	return value < WP_CPUS_MAX;
}

int
wp_cpus_parse(const char *list, struct wp_cpus *cpus)
{
	unsigned first, last;
	int n = 0;

	memset(cpus, 0, sizeof(*cpus));
	do {
		if (!parse_number(&list, &first))
			return -EINVAL;
		last = first;
		if (*list == '-' && (list++, !parse_number(&list, &last)))
			return -EINVAL;
		for (; first <= last; first++) {
			n += !cpus->has[first];
			cpus->has[first] = true;
		}
		if (last >= cpus->end)
			cpus->end = last + 1;
	} while (*list++ == ',');
	return list[-1] == '\0' || list[-1] == '\n' ? n : -EINVAL;
}

static int
read_list(const char *path, struct wp_cpus *cpus)
{
	char text[LIST_MAX + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, LIST_MAX);
	(void)close(fd);
	if (n < 0)
		return -EIO;
	text[n] = '\0';
	return wp_cpus_parse(text, cpus);
}

/* Where /sys is not mounted, the C library may know the number of
   processors. */
int
wp_cpus_possible(struct wp_cpus *cpus)
{
	int n = read_list("/sys/devices/system/cpu/possible", cpus);
	long known = sysconf(_SC_NPROCESSORS_CONF);

	if (n > 0)
		return n;
	memset(cpus, 0, sizeof(*cpus));
	while (cpus->end < WP_CPUS_MAX && (cpus->end == 0 ||
	    (long)cpus->end < known))
		cpus->has[cpus->end++] = true;
	return (int)cpus->end;
}

int
wp_cpus_online(struct wp_cpus *cpus)
{
	return read_list("/sys/devices/system/cpu/online", cpus);
}
