/* threads: the threads of this program, while it continues to create others. */
#ifndef WP_THREADS_H
#define WP_THREADS_H

#include <sys/types.h>

/*
 * Call fn for every thread of the process, until a full listing shows no thread
 * that was created since the first call: then no thread could have inherited
 * and also be passed to fn.  Otherwise undo is called, and all starts again; if
 * new threads keep coming, the helper holds the others still.  An -errno of fn
 * ends it, except -ESRCH.  fn is called in a separate thread (short_thread.h),
 * unless there is only one thread.  If the threads had to be held, held (or
 * NULL) is called at the end, while they still are.  Result: 0; 1 if new
 * threads kept coming and could not be held (a thread may be missed or covered
 * twice); -errno.
 */
int wp_threads_each(int (*fn)(void *arg, pid_t tid), void (*undo)(void *arg),
    void (*held)(void *arg), void *arg);

#endif
