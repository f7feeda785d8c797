/* roots: the root directories of processes, each one once. */
#include "proc/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/proc.h"

struct wp_root {
	int fd;
	uint64_t dev, ino;
	uint64_t mount;		/* of the root's mount: identifies the mount
				   namespace */
	struct wp_root *next;
};

static bool
identify(int fd, const char *path, struct wp_root *out)
{
	struct statx st;

	if (syscall(SYS_statx, fd, path, AT_EMPTY_PATH,
	    STATX_INO | STATX_MNT_ID, &st) != 0)
		return false;
	*out = (struct wp_root){
		.fd = fd, .ino = st.stx_ino, .mount = st.stx_mnt_id,
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
	};
	return true;
}

static bool
is_same(const struct wp_root *a, const struct wp_root *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mount == b->mount;
}

/* The descriptor of this root if it has been opened before; -1 if it is our
   own; -2 if it is new. */
static int
find_known(const struct wp_roots *roots, const struct wp_root *key)
{
	struct wp_root own;

	if (identify(AT_FDCWD, "/", &own) && is_same(&own, key))
		return -1;
	for (const struct wp_root *r = roots->first; r != NULL; r = r->next) {
		if (is_same(r, key))
			return r->fd;
	}
	return -2;
}

int
wp_roots_find(struct wp_roots *roots, pid_t pid, int *root)
{
	struct wp_root key, *new = NULL;
	int fd = wp_proc_root(pid), err = -ENOMEM;

	if (fd < 0)
		return fd;
	if (!identify(fd, "", &key))
		err = -errno;
	else if ((*root = find_known(roots, &key)) != -2)
		err = 0;
	else if ((new = malloc(sizeof(*new))) != NULL) {
		*new = key;
		new->next = roots->first;
		roots->first = new;
		*root = fd;
		return 0;
	}
	(void)close(fd);
	return err;
}

bool
wp_roots_have(const struct wp_roots *roots, int root)
{
	const struct wp_root *r = roots->first;

	while (r != NULL && r->fd != root)
		r = r->next;
	return r != NULL;
}

void
wp_roots_free(struct wp_roots *roots)
{
	struct wp_root *root;

	while ((root = roots->first) != NULL) {
		roots->first = root->next;
		(void)close(root->fd);
		free(root);
	}
}
