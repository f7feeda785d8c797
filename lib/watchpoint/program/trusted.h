/*
 * trusted: checks that only root can have installed a program.
 */
#ifndef WP_TRUSTED_H
#define WP_TRUSTED_H

/*
 * A descriptor (O_PATH, close-on-exec) of the program at an absolute path, to
 * be executed by execveat(2).  Root owns all directories on the way and the
 * program itself, and only root and its group may write there; none of them is
 * a symbolic link. -EPERM: that is not so; or -errno.
 *
 * Nothing is allocated.
 */
int wp_trusted_open(const char *path);

#endif
