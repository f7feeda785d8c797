/*
 * regular_file: opens files whose names others have chosen.
 *
 * Opening anything but a regular file could block, or have effects.
 */
#ifndef WP_REGULAR_FILE_H
#define WP_REGULAR_FILE_H

/* Open a file for reading if it is a regular one.  A descriptor, or -errno;
   -ESTALE: it is none. */
int wp_open_regular(const char *path);

#endif
