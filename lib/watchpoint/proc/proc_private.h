/* proc_private: how the files of a process in /proc are opened. */
#ifndef WP_PROC_PRIVATE_H
#define WP_PROC_PRIVATE_H

#include <stdio.h>

#include "proc/proc.h"

/* "/proc/PID/map_files/START-END" is the longest. */
#define PROC_PATH_MAX 96

/* -errno of a file there: a process that ends while it is read answers ENOENT
   or ESRCH. */
int wp_proc_error(int err);

/* /proc/PID/NAME: a descriptor, or -errno. */
int wp_proc_open(pid_t, const char *name, int flags);

/* The same as a stream; NULL: *err is -errno. */
FILE *wp_proc_fopen(pid_t, const char *name, int *err);

#endif
