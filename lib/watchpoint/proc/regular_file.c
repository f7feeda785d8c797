/* regular_file: opens files whose names others have chosen. */
#include "proc/regular_file.h"

#include <fcntl.h>

#include "proc/proc.h"

int
wp_open_regular(const char *path)
{
	return wp_proc_open_same(AT_FDCWD, path, 0, 0, 0);
}
