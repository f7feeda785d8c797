/* index_cache: indexes of debug information, kept in the user's cache
   directory. */
#include "util/index_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ONE_MAX (UINT64_C(1) << 28)	/* bytes of an index, */
#define ALL_MAX (UINT64_C(1) << 29)	/* and of all of them */
#define SUFFIX ".index"
#define UNFINISHED ".new"
#define ABANDONED 3600			/* seconds after which an unfinished one
					   is given up */

enum { KEY_MAX = 128, NAME_SIZE = KEY_MAX + 32 };

/* The index that is being written. */
static struct {
	int dir, file;
	uint64_t size;
	char name[NAME_SIZE], final[NAME_SIZE];
} writing = {.dir = -1, .file = -1};

/* --- the directory --- */

static bool
is_ours(int fd, mode_t type)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type &&
	    st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* A descriptor or -errno. */
static int
open_ours(int at, const char *name, int flags, mode_t type)
{
	int fd = openat(at, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY |
	    O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (is_ours(fd, type))
		return fd;
	(void)close(fd);
	return -EPERM;
}

/* Open a directory of ours; make: create it if it does not exist. */
static int
open_directory(int at, const char *name, bool make)
{
	int fd = open_ours(at, name, O_RDONLY | O_DIRECTORY, S_IFDIR);

	if (fd != -ENOENT || !make)
		return fd;
	if (mkdirat(at, name, S_IRWXU) != 0 && errno != EEXIST)
		return -errno;
	return open_ours(at, name, O_RDONLY | O_DIRECTORY, S_IFDIR);
}

static int
open_cache(bool make)
{
	const char *place = secure_getenv("XDG_CACHE_HOME"), *rest = "";
	char path[PATH_MAX];
	int base, fd, n;

	if (place == NULL || *place != '/') {
		place = secure_getenv("HOME");
		rest = "/.cache";
	}
	if (place == NULL || *place != '/')
		return -ENOENT;
	n = snprintf(path, sizeof(path), "%s%s", place, rest);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	if ((base = open_directory(AT_FDCWD, path, make)) < 0)
		return base;
	fd = open_directory(base, "watchctl", make);
	(void)close(base);
	return fd;
}

/* Put the file name for a build id.  False: it is no such id. */
static bool
put_name(char name[NAME_SIZE], const char *key)
{
	const size_t len = strlen(key);

	if (len == 0 || len > KEY_MAX ||
	    strspn(key, "0123456789abcdef") != len)
		return false;
	(void)snprintf(name, NAME_SIZE, "%s" SUFFIX, key);
	return true;
}

/* --- reading --- */

int
index_cache_open(const char *key)
{
	char name[NAME_SIZE];
	int dir, fd;

	if (!put_name(name, key))
		return -EINVAL;
	if ((dir = open_cache(false)) < 0)
		return dir;
	fd = open_ours(dir, name, O_RDONLY, S_IFREG);
	(void)close(dir);
	/* it is in use now, and so not the oldest */
	if (fd >= 0)
		(void)futimens(fd, NULL);
	return fd;
}

/* --- room --- */

static bool
ends_with(const char *name, const char *end)
{
	const size_t len = strlen(name), n = strlen(end);

	return len > n && strcmp(name + len - n, end) == 0;
}

struct oldest {
	char name[NAME_SIZE];
	struct timespec used;
};

/* Add up the sizes of all indexes and find the oldest one.  Unfinished indexes
   whose writer has ended are removed. */
static uint64_t
look(DIR *dir, struct oldest *oldest)
{
	const time_t now = time(NULL);
	const struct dirent *entry;
	uint64_t all = 0;
	struct stat st;

	*oldest->name = '\0';
	rewinddir(dir);
	while ((entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (strlen(name) >= NAME_SIZE || fstatat(dirfd(dir), name,
		    &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
			continue;
		if (ends_with(name, UNFINISHED) &&
		    st.st_mtim.tv_sec + ABANDONED < now)
			(void)unlinkat(dirfd(dir), name, 0);
		if (!ends_with(name, SUFFIX))
			continue;
		all += (uint64_t)st.st_size;
		if (*oldest->name == '\0' ||
		    st.st_mtim.tv_sec < oldest->used.tv_sec ||
		    (st.st_mtim.tv_sec == oldest->used.tv_sec &&
		    st.st_mtim.tv_nsec < oldest->used.tv_nsec)) {
			(void)snprintf(oldest->name, sizeof(oldest->name),
			    "%s", name);
			oldest->used = st.st_mtim;
		}
	}
	return all;
}

static void
make_room(int fd)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct oldest oldest;

	if (dir == NULL) {
		if (copy >= 0)
			(void)close(copy);
		return;
	}
	while (look(dir, &oldest) > ALL_MAX && *oldest.name != '\0' &&
	    unlinkat(fd, oldest.name, 0) == 0)
		;
	(void)closedir(dir);
}

/* --- writing --- */

static void
forget(void)
{
	if (writing.file >= 0)
		(void)close(writing.file);
	if (writing.dir >= 0)
		(void)close(writing.dir);
	writing.file = writing.dir = -1;
}

int
index_cache_begin(const char *key)
{
	struct rlimit limit;

	forget();
	if (!put_name(writing.final, key))
		return -EINVAL;
	/* a file that grows beyond the limit would raise a signal */
	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
	    limit.rlim_cur != RLIM_INFINITY)
		return -EFBIG;
	if ((writing.dir = open_cache(true)) < 0)
		return writing.dir;
	(void)snprintf(writing.name, sizeof(writing.name), "%d" UNFINISHED,
	    (int)getpid());
	(void)unlinkat(writing.dir, writing.name, 0);
	writing.file = openat(writing.dir, writing.name, O_WRONLY | O_CREAT |
	    O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	writing.size = 0;
	if (writing.file >= 0)
		return 0;
	forget();
	return -EACCES;
}

int
index_cache_put(const void *bytes, size_t len)
{
	const char *at = bytes;
	ssize_t n;

	if (writing.file < 0)
		return -EBADF;
	if (len > ONE_MAX - writing.size)
		return -EFBIG;
	writing.size += len;
	for (; len > 0; at += n, len -= (size_t)n) {
		n = write(writing.file, at, len);
		if (n <= 0 && errno != EINTR)
			return -EIO;
		if (n < 0)
			n = 0;
	}
	return 0;
}

int
index_cache_end(bool good)
{
	int err = good && writing.file >= 0 && renameat(writing.dir,
	    writing.name, writing.dir, writing.final) == 0 ? 0 : -EIO;

	if (err == 0)
		make_room(writing.dir);
	else if (writing.dir >= 0)
		(void)unlinkat(writing.dir, writing.name, 0);
	forget();
	return err;
}
