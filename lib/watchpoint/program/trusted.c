/* trusted: checks that only root can have installed a program. */
#include "program/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In a directory where every user may write, the sticky bit protects root's
   files. */
static bool
is_trusted(const struct stat *st, bool last)
{
	const mode_t others = st->st_mode &
	    (st->st_gid == 0 ? S_IWOTH : S_IWGRP | S_IWOTH);

	if (st->st_uid != 0)
		return false;
	if (last)
		return S_ISREG(st->st_mode) && others == 0;
	return S_ISDIR(st->st_mode) &&
	    (others == 0 || (st->st_mode & S_ISVTX) != 0);
}

/* Open an entry of a directory, which is closed.  Returns a descriptor or
   -errno. */
static int
enter(int dir, const char *name, bool last)
{
	const int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;
	struct stat st = {.st_mode = 0};

	if (dir >= 0)
		(void)close(dir);
	if (fd >= 0 && fstat(fd, &st) < 0)
		err = -errno;
	if (err == 0 && !is_trusted(&st, last))
		err = -EPERM;
	if (err == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return err;
}

int
wp_trusted_open(const char *path)
{
	int at = *path != '/' ? -EPERM : enter(-1, "/", false);
	char name[NAME_MAX + 1];

	while (at >= 0) {
		size_t len = strcspn(path += strspn(path, "/"), "/");

		if (len > NAME_MAX) {
			(void)close(at);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		path += len;
		at = enter(at, name, *path == '\0');
		if (*path == '\0')
			break;
	}
	return at;
}
