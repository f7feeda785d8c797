/*
 * trusted: checks that only root can have installed a program.
 */
#ifndef WP_TRUSTED_H
#define WP_TRUSTED_H

/*
 * A descriptor (O_PATH, close-on-exec) of the program at an absolute path, for
 * execveat(2).  Root owns the program and all directories on the way to it,
 * only root and its group can write to them, and none of them is a symbolic
 * link.  -EPERM: that is not so; or -errno.
 *
 * Nothing is allocated.
 */
int wp_trusted_open(const char *path);

#endif
