/* short_thread: runs a function in a thread that is separate from the
   program's. */
#ifndef WP_SHORT_THREAD_H
#define WP_SHORT_THREAD_H

/*
 * Have fn(arg) called by a thread of its own, which has ended when this
 * returns: what it opens belongs to no thread, so that
 * prctl(PR_TASK_PERF_EVENTS_DISABLE) does not disable it.  Locked; little
 * stack.  Its result, or -ECHILD: none can be made.
 */
int wp_short_thread(int (*fn)(void *), void *arg);

#endif
