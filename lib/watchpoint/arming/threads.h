/* threads: the threads of this program, while it continues to create others. */
#ifndef WP_THREADS_H
#define WP_THREADS_H

#include <sys/types.h>

/*
 * Call fn for every thread of the process until a whole list brings none that
 * is new since fn was first called: then no thread was created in the meantime
 * that could have inherited and be called too.  Otherwise undo is called and it
 * begins anew; if the threads do not settle, the helper holds the others still.
 * fn's -errno ends it; -ESRCH is passed over.  It is called apart
 * (short_thread.h), unless there is but one thread.  If they had to be held,
 * held (or NULL) is called in the end, while they are.  Result: 0; 1 when they
 * did not settle and could not be held (a thread may be missed or covered
 * twice); -errno.
 */
int wp_threads_each(int (*fn)(void *arg, pid_t tid), void (*undo)(void *arg),
    void (*held)(void *arg), void *arg);

#endif
