/* replace_file: replaces a file as a whole, or leaves it unchanged. */
#include "util/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 1000,		/* hundredths of a second, for the lock */
	NAMES = 100,		/* tried for the new one */
	READ_MAX = 64 << 20 };

/* Follow a path through links of this user only: those of others may have been
   made to have another file overwritten. */
static int
follow(const char *path, char real[PATH_MAX], const char **why)
{
	struct stat st;

	*why = "";
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode)) {
		memcpy(real, path, strlen(path) + 1);
		return 0;
	}
	*why = "a symbolic link of somebody else";
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return -EPERM;
	*why = "a symbolic link";
	return realpath(path, real) == NULL ? -errno : 0;
}

static int
open_directory(struct replace_file *f)
{
	char *slash = strrchr(f->path, '/');
	char directory[PATH_MAX] = ".";

	f->name = slash == NULL ? f->path : slash + 1;
	if (slash != NULL)
		(void)snprintf(directory, sizeof(directory), "%.*s",
		    slash == f->path ? 1 : (int)(slash - f->path), f->path);
	f->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->directory < 0 ||
	    faccessat(f->directory, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return -errno;
	return 0;
}

static int
lock(int fd)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return 0;	/* there are no locks there */
		if (i == PATIENCE)
			return -EBUSY;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int
look(struct replace_file *f, const char **why)
{
	*why = "";
	f->there = fstatat(f->directory, f->name, &f->st,
	    AT_SYMLINK_NOFOLLOW) == 0;
	if (!f->there)
		return errno == ENOENT && *f->name != '\0' ? 0 : -errno;
	*why = "not a regular file";
	if (!S_ISREG(f->st.st_mode))
		return -EINVAL;
	/* the new file could not be given to that user */
	*why = "somebody else's file";
	return geteuid() != 0 && f->st.st_uid != geteuid() ? -EPERM : 0;
}

int
replace_file_open(struct replace_file *f, const char *path, const char **why)
{
	int err;

	*f = (struct replace_file){.directory = -1};
	if ((err = follow(path, f->path, why)) < 0)
		return err;
	*why = "its directory";
	if ((err = open_directory(f)) < 0 || (err = lock(f->directory)) < 0 ||
	    (err = look(f, why)) < 0)
		replace_file_close(f);
	return err;
}

int
replace_file_read(const struct replace_file *f, struct buffer *to)
{
	int fd, err = 0;
	ssize_t n = 1;

	if (!f->there)
		return 0;
	fd = openat(f->directory, f->name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (err == 0 && n > 0 && buffer_room(to, 1 << 16)) {
		n = read(fd, to->bytes + to->len, 1 << 16);
		if (n < 0)
			err = -errno;
		else
			to->len += (size_t)n;
		if (to->len > READ_MAX)
			err = -EFBIG;
	}
	(void)close(fd);
	return to->failed ? -ENOMEM : err;
}

/* Create a new file in the same directory.  A descriptor or -errno. */
static int
make_new(const struct replace_file *f, char name[NAME_MAX + 1])
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < NAMES; i++) {
		(void)snprintf(name, NAME_MAX + 1, ".%.200s.%d.%d", f->name,
		    (int)getpid(), i);
		fd = openat(f->directory, name, O_WRONLY | O_CREAT | O_EXCL |
		    O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			return -errno;
	}
	return fd < 0 ? -EEXIST : fd;
}

static int
fill(const struct replace_file *f, int fd, const char *bytes, size_t len)
{
	if (f->there && (f->st.st_uid != geteuid() ||
	    f->st.st_gid != getegid()) &&
	    fchown(fd, f->st.st_uid, f->st.st_gid) < 0)
		return -errno;
	if (f->there && fchmod(fd, f->st.st_mode & 07777) < 0)
		return -errno;
	for (size_t at = 0; at < len;) {
		const ssize_t n = write(fd, bytes + at, len - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int
replace_file_write(const struct replace_file *f, const char *bytes, size_t len)
{
	char name[NAME_MAX + 1];
	int fd = make_new(f, name), err;

	if (fd < 0)
		return fd;
	err = fill(f, fd, bytes, len);
	if (close(fd) < 0 && err == 0)
		err = -errno;
	if (err == 0 && renameat(f->directory, name, f->directory,
	    f->name) < 0)
		err = -errno;
	if (err < 0)
		(void)unlinkat(f->directory, name, 0);
	return err;
}

void
replace_file_close(struct replace_file *f)
{
	if (f->directory >= 0)
		(void)close(f->directory);
	f->directory = -1;
}
